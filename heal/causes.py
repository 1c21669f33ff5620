"""Finding the known failure texts in output, and which of them is the cause."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from heal.panel import CATEGORIES

# A log may repeat one text a hundred thousand times.
MOST_LOOKS = 50

_WARNED = 4
# Tools quote names in three ways; the panel knows one.
_QUOTES = str.maketrans("\u2018\u2019`", "'''")
_WARNING = re.compile(r"(?i)\bwarn(?:ing)?\b")


@dataclass(frozen=True)
class Sign:
    """A row of the panel."""

    needle: str
    hit: str
    weight: int
    cause: str
    text: str
    category: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a line first calls for it: most runs of the app need a few of them."""
        return re.compile(self.text)


@dataclass(frozen=True)
class Found:
    """A sign in one line of the output.  `line` counts from 0; a mere warning weighs less."""

    sign: Sign
    line: int
    weight: int
    words: dict[str, str]

    @property
    def hit(self) -> str:
        """A short stable word, such as ENOENT."""
        hit = self.sign.hit.format(**self.words)
        return hit if hit.endswith(".Error") else hit.rpartition(".")[2]

    @property
    def cause(self) -> str:
        """The cause in words, with the object that the text names."""
        return self.sign.cause.format(**self.words).rstrip(": ")


SIGNS = tuple(
    sorted(
        (
            Sign(needle, hit, weight, cause, pattern, category)
            for category, rows in CATEGORIES.items()
            for needle, hit, weight, cause, pattern in rows
        ),
        key=lambda sign: -sign.weight,
    )
)


def find(lines: list[str]) -> list[Found]:
    """The signs in the output, at most one a line, in the order of the lines."""
    quoted = "\n".join(lines).translate(_QUOTES)
    lines, text = quoted.split("\n"), quoted.lower()
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    found: dict[int, Found] = {}
    for sign in SIGNS:
        for number in _lines_with(sign.needle, text, starts):
            match = sign.pattern.search(lines[number]) if number not in found else None
            if match is not None:
                found[number] = _found(sign, number, match)
    return [found[number] for number in sorted(found)]


def gravest(found: Iterable[Found]) -> Found | None:
    """The most exact sign; among equals the first, since later errors often only follow from it."""
    return max(found, key=lambda one: (one.weight, -one.line), default=None)


def _found(sign: Sign, number: int, match: re.Match[str]) -> Found:
    words = {name: _plain(name, value or "") for name, value in match.groupdict().items()}
    is_warning = _WARNING.search(match.string) is not None
    return Found(sign, number, sign.weight - (_WARNED if is_warning else 0), words)


def _plain(name: str, value: str) -> str:
    return value.strip(" '\"") if name in ("file", "name") else value.strip()


def _lines_with(needle: str, text: str, starts: list[int]) -> Iterator[int]:
    at = text.find(needle)
    for _ in range(MOST_LOOKS):
        if at < 0:
            return
        number = bisect_right(starts, at) - 1
        yield number
        at = text.find(needle, starts[number + 1])
