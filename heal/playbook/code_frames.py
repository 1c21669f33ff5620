"""Did a Python or Node program fail to open a path for writing?  The innermost telling line of its trace says."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heal.playbook.replacing import see

MOST_FRAMES = 60
MOST_CALL_LINES = 6

_STRING = r"""(?:'(?:[^'\\\n]|\\.){1,500}'|"(?:[^"\\\n]|\\.){1,500}")"""
_ERROR = rf"^FileNotFoundError: \[Errno 2\] No such file or directory: (?P<path>{_STRING})(?: -> (?P<to>{_STRING}))?$"
_FRAME = r'^\s+File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,9})'
_MODE = r"(?:mode\s*=\s*)?[rb]?['\"]"
_WRITE = (
    rf"\bopen\w*\([^\n]{{0,300}}?,\s*{_MODE}[bt]?[wax][bt+]{{0,2}}(?:[:|]\w*)?['\"]"
    rf"|(?<!gzip)(?<!bz2)(?<!lzma)(?<!io)(?<!tarfile)\.open\(\s*{_MODE}[bt]?[wax][bt+]{{0,2}}['\"]"
    r"|\bmode\s*=\s*['\"][bt]?[wax]|\bZipFile\([^\n]{0,300}?,\s*(?:mode\s*=\s*)?['\"][wax]"
    r"|\.(?:write_text|write_bytes|touch|savefig|savetxt|tofile|mkdir|to_(?:csv|json|excel|parquet|pickle|html|feather))\("
    r"|\bos\.mkdir\(|\bFileHandler\(|open_func\(self\.baseFilename|_os\.open\(file, flags, 0o600\)"
)
# Of another object than these modules, open() takes the mode first.
_PLAIN_OPEN = r"(?:(?<![\w.])|\b(?:gzip|bz2|lzma|io|codecs|tarfile)\.)open"
_READ = (
    rf"{_PLAIN_OPEN}\([^,\n()]{{0,300}}(?:\([^()\n]{{0,100}}\)[^,\n()]{{0,100}})?\)|\bopen\w*\([^\n]{{0,300}}?,\s*{_MODE}[bt]?r"
    r"|\.open\(\)|\bread_\w{1,20}\(|\.(?:read_text|read_bytes|stat|iterdir|load)\("
    r"|\bopen\w*\((?![^\n]{0,300}\bmode\s*=)[^\n,]{1,300}, (?:encoding|errors|newline)="
    r"|\bos\.(?:listdir|scandir|stat|chdir|remove|unlink)\(|\bZipFile\([^,\n]{0,300}\)"
)
_NODE = (
    r"ENOENT: no such file or directory, (?P<what>open|mkdir|copyfile|rename) '(?P<path>[^'\n]{1,500})'"
    r"(?: -> '(?P<to>[^'\n]{1,500})')?"
)
_NODE_WRITE = r"\b(?:writeFile|appendFile|WriteStream)"
_NODE_READ = r"\b(?:readFile|ReadStream|readdir|opendir|cp\b)"
MOST_NODE_LINES = 12


@dataclass(frozen=True)
class Failed:
    """A path that could not be written, and for a move or copy what was to go there."""

    path: str
    origin: str | None = None


def failed_writes(said: str, command: str) -> Iterator[Failed]:
    """The paths whose writing failed, by the traces in the output."""
    lines = said.splitlines()
    for number, line in enumerate(lines):
        if (match := re.match(_ERROR, line)) is not None:
            yield from _of_python(match, lines[:number], command)
        elif (match := re.search(_NODE, line)) is not None:
            yield from _of_node(match, "\n".join(lines[number + 1 : number + 1 + MOST_NODE_LINES]))


def _of_python(match: re.Match[str], before: list[str], command: str) -> Iterator[Failed]:
    path = _value(match["path"])
    if match["to"] is not None:
        yield Failed(_value(match["to"]), origin=path)
        return
    for source in _sources(before):
        writes, reads = re.search(_WRITE, source) is not None, re.search(_READ, source) is not None
        if writes or reads:
            if writes and not reads:
                yield Failed(path)
            return
    # A program on the command line has no source in the trace: its own text names the path with the call.
    if _writes_literally(command, path):
        yield Failed(path)


def _sources(before: list[str]) -> Iterator[str]:
    """The source lines of the last trace, the innermost first."""
    frames = 0
    for number in range(len(before) - 1, -1, -1):
        line = before[number]
        if line.startswith("Traceback ") or frames > MOST_FRAMES:
            return
        match = re.match(_FRAME, line)
        if match is None:
            continue
        frames += 1
        shown = before[number + 1].strip() if number + 1 < len(before) else ""
        yield _whole_call(Path(match["file"]), int(match["line"]), shown)


def _whole_call(file: Path, number: int, shown: str) -> str:
    """The line, with those after it in the file where a bracket is still open."""
    if shown.count("(") <= shown.count(")"):
        return shown
    seen = see(file)
    if seen is None:
        return shown
    lines = seen.data.decode(errors="replace").splitlines()[number - 1 : number - 1 + MOST_CALL_LINES]
    if not lines or lines[0].strip() != shown:
        return shown
    call = ""
    for line in lines:
        call += line.strip()
        if call.count("(") <= call.count(")"):
            break
    return call


def _writes_literally(command: str, path: str) -> bool:
    name = rf"['\"]{re.escape(path)}['\"]"
    return (
        re.search(
            rf"open\(\s*{name}\s*,\s*{_MODE}[bt]?[wax]|Path\(\s*{name}\s*\)\.(?:write_|touch|mkdir|open\(\s*{_MODE}[wax])"
            rf"|os\.mkdir\(\s*{name}",
            command,
        )
        is not None
        and len(re.findall(name, command)) == 1
    )


def _of_node(match: re.Match[str], stack: str) -> Iterator[Failed]:
    if match["to"] is not None:
        yield Failed(match["to"], origin=match["path"])
    elif match["what"] == "mkdir" or (re.search(_NODE_WRITE, stack) and not re.search(_NODE_READ, stack)):
        yield Failed(match["path"])


def _value(literal: str) -> str:
    value: str = ast.literal_eval(literal)
    return value
