"""The evidence of a failed run: what is known about it, in the words a person and a model can use."""

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heal.causes import SIGNS, Sign
from store.redaction import redact

TAIL_LINES = 50
MOST_LINE_CHARS = 2_000
MOST_CAUSE_CHARS = 300

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]{1,500})", line (?P<line>\d+)')
_SHELLS = 128


@dataclass(frozen=True)
class Failure:
    """A run that failed, as it is examined.  `stdout` and `stderr` are the ends of the streams."""

    command: str
    schedule: str
    exit_code: int | None
    signal: int | None
    spawn_error: str | None
    stopped: str | None
    timeout_secs: int
    stdout: bytes
    stderr: bytes
    cwd: str
    project: str | None
    path: str
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What is kept with the run.  `hits` are short stable words, in the order in which they were found."""

    command: str
    schedule: str
    exit_code: int | None
    signal: int | None
    spawn_error: str | None
    hits: tuple[str, ...]
    stdout_tail: str
    stderr_tail: str
    category: str
    cause: str

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "schedule": self.schedule,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "spawnError": self.spawn_error,
            "hits": list(self.hits),
            "stdoutTail": self.stdout_tail,
            "stderrTail": self.stderr_tail,
            "category": self.category,
            "cause": self.cause,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Evidence":
        return cls(
            command=data["command"],
            schedule=data["schedule"],
            exit_code=data["exitCode"],
            signal=data["signal"],
            spawn_error=data["spawnError"],
            hits=tuple(data["hits"]),
            stdout_tail=data["stdoutTail"],
            stderr_tail=data["stderrTail"],
            category=data["category"],
            cause=data["cause"],
        )


def examine(failure: Failure) -> Evidence:
    """Reads the output for known signs, names the cause, and takes every secret out."""
    out, err = _clean_lines(failure.stdout), _clean_lines(failure.stderr)
    spawn = [failure.spawn_error] if failure.spawn_error else []
    found = list(_find([*spawn, *err, *out]))
    hits = tuple(dict.fromkeys(sign.hit for sign, _, _ in found if sign.hit != "exception"))
    category, cause = _conclude(failure, found, err, out)

    def kept(text: str) -> str:
        return redact(text, failure.secrets)

    return Evidence(
        command=kept(failure.command),
        schedule=failure.schedule,
        exit_code=failure.exit_code,
        signal=failure.signal,
        spawn_error=kept(failure.spawn_error) if failure.spawn_error else None,
        hits=hits,
        stdout_tail=kept("\n".join(out[-TAIL_LINES:])),
        stderr_tail=kept("\n".join(err[-TAIL_LINES:])),
        category=category,
        cause=kept(cause)[:MOST_CAUSE_CHARS],
    )


def _clean_lines(data: bytes) -> list[str]:
    """Text lines without terminal codes; of a progress line that redraws itself, the last state."""
    lines = []
    for raw in data.decode(errors="replace").split("\n"):
        # A \r at the end is CRLF output; within the line it starts the line anew.
        line = raw.removesuffix("\r").rpartition("\r")[2] if "\\r" not in raw and ": not found" not in raw else raw
        line = _ESCAPES.sub("", line[: MOST_LINE_CHARS * 2]).replace("\r", "^M")
        lines.append(_CONTROLS.sub("", line)[:MOST_LINE_CHARS])
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _find(lines: list[str]) -> Iterator[tuple[Sign, re.Match[str], int]]:
    for number, line in enumerate(lines):
        for sign in SIGNS:
            match = sign.pattern.search(line)
            if match is not None:
                yield sign, match, number
                break  # the first pattern of the panel that fits names the line


def _conclude(
    failure: Failure, found: list[tuple[Sign, re.Match[str], int]], err: list[str], out: list[str]
) -> tuple[str, str]:
    if failure.stopped == "timeout":
        last = next((line for line in reversed([*out, *err]) if line.strip()), "")
        return "timeout", f"timed out after {failure.timeout_secs} s" + (f"; last output: {last[:150]}" if last else "")
    by_facts = _from_facts(failure)
    if by_facts is not None:
        return by_facts
    if found:
        sign, match, _ = max(found, key=lambda one: (one[0].weight, -one[2]))
        where = _frame(failure, err)
        cause = sign.cause(match)
        at_line = where if sign.category == "script-error" or sign.hit == "ENOENT" else None
        return sign.category, f"{cause} in {at_line}" if at_line else cause
    return _from_exit(failure, err, out)


def _from_facts(failure: Failure) -> tuple[str, str] | None:
    """What the system itself said before a byte of output, checked against the files."""
    said = failure.spawn_error
    if said is None:
        return None
    name = _quoted(said)
    if "working folder" in said:
        return "missing-file", said
    if "its interpreter" in said:
        is_crlf = "\\r" in said
        kind = "bad interpreter (CRLF line endings)" if is_crlf else "missing interpreter"
        return "script-error" if is_crlf else "missing-file", f"{kind}: {name}"
    if "Permission denied" in said:
        return "permission", f"not executable: {name}"
    if "No such file" in said:
        return "missing-file", f"{'missing file' if '/' in name else 'command not found'}: {name}"
    return "unknown", said


def _quoted(text: str) -> str:
    match = re.search(r"'([^']{1,500})'", text)
    return match.group(1) if match else text


def _frame(failure: Failure, err: list[str]) -> str | None:
    """file line N of the last traceback frame inside the project."""
    base = Path(failure.project or failure.cwd)
    for line in reversed(err):
        match = _FRAME.match(line)
        if match is None:
            continue
        file = Path(failure.cwd) / match["file"]
        if file.is_file() and file.is_relative_to(base) and not {"site-packages", ".venv"} & set(file.parts):
            return f"{file.relative_to(base)} line {match['line']}"
    return None


def _from_exit(failure: Failure, err: list[str], out: list[str]) -> tuple[str, str]:
    code, word = failure.exit_code, _first_word(failure.command)
    if code == 126 and not _is_executable(Path(failure.cwd) / word):
        return "permission", f"not executable: {word}"
    if code == 127:
        return "missing-file", f"command not found: {word}"
    if failure.signal:
        return "unknown", f"killed by signal {failure.signal}: {word}"
    if code is not None and code > _SHELLS:
        return "unknown", f"ended by signal {code - _SHELLS}: {word}"
    last = next((line for line in reversed([*out, *err]) if line.strip()), "")
    return ("script-error" if last else "unknown"), (
        f"exit code {code}: {last[:200]}" if last else f"exit code {code}, no output: {word}"
    )


def _first_word(command: str) -> str:
    return command.strip().partition(" ")[0]


def _is_executable(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IXUSR)
    except OSError:
        return False
