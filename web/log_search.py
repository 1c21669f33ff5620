"""Finding words in a log of any length: the file is looked through by the page, never read into memory."""

import mmap
from dataclasses import dataclass
from pathlib import Path

MOST_SHOWN = 50
MOST_COUNTED = 10_000
MOST_LINE_BYTES = 300
CONTEXT_BYTES = 100


@dataclass(frozen=True)
class Match:
    """A line that matches: where it stands, its number, and its text around the match."""

    offset: int
    line: int
    text: str


@dataclass(frozen=True)
class Found:
    matches: tuple[Match, ...]
    count: int
    is_more: bool
    """Whether counting stopped before the end."""


def find_in(path: Path, sought: str) -> Found:
    """The first lines that hold the words, in the very letters, and how many places there are."""
    wanted = sought.encode()
    try:
        size = path.stat().st_size
        file = path.open("rb")
    except FileNotFoundError:
        return Found((), 0, is_more=False)
    with file:
        if not wanted or not size:
            return Found((), 0, is_more=False)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _look(view, wanted)


def _look(view: mmap.mmap, wanted: bytes) -> Found:
    matches: list[Match] = []
    count, at = 0, view.find(wanted)
    line, counted_to = 1, 0
    while at >= 0 and count < MOST_COUNTED:
        count += 1
        if len(matches) < MOST_SHOWN:
            line, counted_to = line + _newlines(view, counted_to, at), at
            if not matches or matches[-1].line != line:
                matches.append(Match(at, line, _around(view, at, len(wanted))))
        at = view.find(wanted, at + len(wanted))
    return Found(tuple(matches), count, is_more=at >= 0)


def _newlines(view: mmap.mmap, begin: int, end: int) -> int:
    count, step = 0, 1 << 24
    for start in range(begin, end, step):
        count += view[start : min(end, start + step)].count(b"\n")
    return count


def _around(view: mmap.mmap, at: int, length: int) -> str:
    begin = max(view.rfind(b"\n", max(0, at - CONTEXT_BYTES), at) + 1, at - CONTEXT_BYTES, 0)
    end = view.find(b"\n", at + length, at + length + MOST_LINE_BYTES)
    return view[begin : end if end >= 0 else at + length + MOST_LINE_BYTES].decode(errors="replace").strip("\0\r")
