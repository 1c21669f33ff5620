"""When a run counts as a success beyond its exit code: what it must print or produce, how long it may take."""

import mmap
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scheduler.logs import RunLogs

FORMS = "write prints TEXT, not prints TEXT, creates FILE, takes at least 5s, takes at most 10m, or exits 0,3"

_UNITS = {"s": 1, "m": 60, "h": 3_600}
_DURATION = r"(?P<count>[0-9]{1,6}) ?(?P<unit>s|m|h)(?:ec(?:ond)?s?|in(?:ute)?s?|ours?)?"
MOST_CODE = 255
_CLOCK_SLACK_SECS = 0.1
"""File systems round the time of a change."""


@dataclass(frozen=True)
class Ran:
    """An end that conditions judge."""

    exit_code: int | None
    started_at: datetime
    secs: float
    logs: RunLogs
    folder: str


Check = Callable[[Ran, re.Match[str]], str | None]


def read_condition(text: str) -> str:
    """The condition in its usual form; raises ValueError with the forms there are."""
    said = text.strip()
    for pattern, form, _ in _KINDS:
        match = pattern.fullmatch(said)
        if match is not None and not (pattern is _EXITS and max(_codes(match)) > MOST_CODE):
            codes = ",".join(map(str, _codes(match))) if pattern is _EXITS else ""
            return form.format(**{**match.groupdict(), "codes": codes})
    raise ValueError(f"“{said}” is no condition; {FORMS}")


def accepted_codes(conditions: Sequence[str]) -> set[int]:
    """The exit codes that are a success."""
    named = [match for condition in conditions if (match := _EXITS.fullmatch(condition))]
    return {code for match in named for code in _codes(match)} or {0}


def _codes(match: re.Match[str]) -> list[int]:
    return sorted({int(code) for code in re.findall(r"[0-9]+", match["codes"])})


def find_unmet(conditions: Sequence[str], ran: Ran) -> str | None:
    """The first condition that is not met, in words; None when all are."""
    for condition in conditions:
        for pattern, _, check in _KINDS:
            match = pattern.fullmatch(condition)
            if match is not None:
                unmet = check(ran, match)
                if unmet is not None:
                    return unmet
                break
    return None


def _prints(ran: Ran, match: re.Match[str]) -> str | None:
    return None if _is_printed(ran.logs, match["text"]) else f"it did not print “{match['text']}”"


def _prints_not(ran: Ran, match: re.Match[str]) -> str | None:
    return f"it printed “{match['text']}”" if _is_printed(ran.logs, match["text"]) else None


def _is_printed(logs: RunLogs, text: str) -> bool:
    return any(_holds(path, text.encode()) for path in (logs.out, logs.err))


def _holds(path: Path, wanted: bytes) -> bool:
    """Whether the file holds the bytes; read by the page, so that its size is no matter."""
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return view.find(wanted) >= 0
    except FileNotFoundError:
        return False


def _creates(ran: Ran, match: re.Match[str]) -> str | None:
    """A file, or one of a pattern, that was written since the start and is not empty."""
    named = Path(match["file"]).expanduser()
    root = Path(named.anchor) if named.is_absolute() else Path(ran.folder)
    exact = root / named
    pattern = str(named.relative_to(named.anchor))
    found = [exact] if exact.is_file() else [path for path in root.glob(pattern) if path.is_file()]
    if not found:
        return f"it did not produce {match['file']}"
    since = ran.started_at.timestamp() - _CLOCK_SLACK_SECS
    if not any(path.stat().st_mtime >= since for path in found):
        return f"it did not produce {match['file']} anew: the file is older than the run"
    return None if any(path.stat().st_size for path in found) else f"it left {match['file']} empty"


def _lasts(ran: Ran, match: re.Match[str]) -> str | None:
    least = int(match["count"]) * _UNITS[match["unit"]]
    return f"it took {ran.secs:.1f} s, and at least {least} s are expected" if ran.secs < least else None


def _ends_soon(ran: Ran, match: re.Match[str]) -> str | None:
    most = int(match["count"]) * _UNITS[match["unit"]]
    return f"it took {ran.secs:.1f} s, and at most {most} s are expected" if ran.secs > most else None


def _exits(ran: Ran, match: re.Match[str]) -> str | None:
    return None if ran.exit_code in accepted_codes([match[0]]) else f"exit code {ran.exit_code}"


_EXITS = re.compile(r"exits?(?: with)?(?: codes?)? (?P<codes>[0-9]{1,3}(?:(?:, ?| or | )[0-9]{1,3}){0,20})")
_KINDS: tuple[tuple[re.Pattern[str], str, Check], ...] = (
    (re.compile(r"(?:must )?(?:not|never) prints? (?P<text>.+)"), "not prints {text}", _prints_not),
    (re.compile(r"(?:must )?prints? (?P<text>.+)"), "prints {text}", _prints),
    (re.compile(r"(?:must )?(?:create|produce|write)s? (?P<file>.+)"), "creates {file}", _creates),
    (re.compile(rf"(?:takes? )?(?:at least|min(?:imum)?) {_DURATION}"), "takes at least {count}{unit}", _lasts),
    (re.compile(rf"(?:takes? )?(?:at most|max(?:imum)?) {_DURATION}"), "takes at most {count}{unit}", _ends_soon),
    (_EXITS, "exits {codes}", _exits),
)
