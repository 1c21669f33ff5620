"""Where in the project's own files an error arose: traceback frames and the shell's line numbers."""

import re
from collections.abc import Iterator

from heal.places import Places

MOST_FRAME_LINES = 400
MOST_CODE_LINES = 5

_CHAIN = ("During handling of ", "The above exception ", "Traceback ")

_PYTHON = re.compile(r'^\s{1,20}(?:\|\s{1,4})?File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9})')
_NODE = re.compile(r"^\s{1,20}at (?:.{0,200}\()?(?:file://)?(?P<file>/[^():]{1,500}):(?P<line>\d{1,9}):\d{1,9}\)?$")
_NODE_HEAD = re.compile(r"^(?P<file>/[^:]{1,500}\.[cm]?[jt]s):(?P<line>\d{1,9})$")
_PERL = re.compile(r" at (?P<file>[^\s\"]{1,300}) line (?P<line>\d{1,9})[.,]")
_SHELL = re.compile(r"^(?P<file>[^:]{1,300}): (?:line )?(?P<line>\d{1,9}): ")
_ENVIRON = re.compile(r'^\s{1,20}File "(?:<frozen os>|[^"]{1,500}/os\.py)", line \d{1,9}, in __getitem__')


def place_of(lines: list[str], number: int, places: Places) -> str | None:
    """As "file line N", the innermost frame inside the project that belongs to the error in that line."""
    for match in _frames(lines, number):
        own = places.own(match["file"])
        if own is not None:
            return f"{own} line {match['line']}"
    return None


def asks_environment(lines: list[str], number: int) -> bool:
    """Whether the KeyError in that line came from os.environ."""
    return any(_ENVIRON.match(line) for line in _before(lines, number))


def script_of(line: str) -> str | None:
    """The script that a shell names at the start of its message."""
    match = _SHELL.match(line)
    return match["file"] if match else None


def raised(lines: list[str]) -> int | None:
    """The line with the exception of the first traceback."""
    try:
        start = lines.index("Traceback (most recent call last):")
    except ValueError:
        return None
    rest = range(start + 1, min(len(lines), start + MOST_FRAME_LINES))
    return next((number for number in rest if lines[number] and not lines[number].startswith(" ")), None)


def _frames(lines: list[str], number: int) -> Iterator[re.Match[str]]:
    line = lines[number]
    candidates = [_SHELL.match(line), _PERL.search(line)]
    candidates += [_PYTHON.match(line) for line in _before(lines, number)]
    candidates += [_NODE_HEAD.match(line) for line in lines[max(0, number - MOST_CODE_LINES) : number]]
    candidates += [_NODE.match(line) for line in _after(lines, number)]
    candidates += [_PYTHON.match(line) for line in _chained(lines, number)]
    return (match for match in candidates if match)


def _chained(lines: list[str], number: int) -> list[str]:
    """The lines of the traceback that follows from the one that ends there, the innermost frame first."""
    rest = lines[number + 1 : number + MOST_FRAME_LINES]
    if not any(line.startswith(_CHAIN) for line in rest[:3]):
        return []
    end = next((at for at, line in enumerate(rest) if at > 3 and line and not line.startswith((" ", *_CHAIN))), 0)
    return rest[:end][::-1]


def _before(lines: list[str], number: int) -> Iterator[str]:
    """The lines of the traceback that ends there, the innermost frame first."""
    for line in reversed(lines[max(0, number - MOST_FRAME_LINES) : number]):
        if line and not line.startswith((" ", "\t")):
            return
        yield line


def _after(lines: list[str], number: int) -> Iterator[str]:
    for line in lines[number + 1 : number + MOST_FRAME_LINES]:
        if not line.startswith("    at "):
            return
        yield line
