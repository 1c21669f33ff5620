"""Finding files by name and lines by pattern, in bounded time and without showing what is redacted."""

import contextlib
import fnmatch
import itertools
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import PurePosixPath
from types import FrameType

from agent.confinement import files_below, read_file
from agent.tools import ToolError, Workspace
from store.redaction import redact

MOST_NAMES = 200
MOST_LINES = 1_000
MOST_FILES = 20_000
MOST_LINE_CHARS = 2_000
MOST_PATTERN_CHARS = 1_000
CPU_SECS = 5.0
_TICK_SECS = 0.1
_BINARY_LOOK = 8_192
_NESTED = re.compile(r"[*+}][?+]?\)+[*+{]")


def find_names(workspace: Workspace, start: PurePosixPath, pattern: str) -> str:
    """Files whose path under `start` matches, newest first.  Raises ToolError for a pattern that leads out."""
    wanted = PurePosixPath(pattern)
    if wanted.is_absolute() or ".." in wanted.parts or not wanted.parts:
        raise ToolError("The pattern must be relative, without '..'.")
    names = list(itertools.islice(files_below(workspace, start), MOST_FILES + 1))
    found = [name for name in names[:MOST_FILES] if _matches(name.relative_to(start).parts, wanted.parts)]
    found.sort(key=lambda name: (-_changed_at(workspace, name), str(name)))
    lines = [str(name) for name in found[:MOST_NAMES]]
    if len(found) > MOST_NAMES:
        lines.append(f"[{len(found) - MOST_NAMES:,} more left out]")
    if len(names) > MOST_FILES:
        lines.append(_only_first())
    return "\n".join(lines) or "no matches"


def find_lines(workspace: Workspace, start: PurePosixPath, pattern: str) -> str:
    """Lines that match a regular expression, as path:line:text.  Raises ToolError for a bad or too slow pattern."""
    if len(pattern) > MOST_PATTERN_CHARS:
        raise ToolError(f"The pattern is too long (at most {MOST_PATTERN_CHARS:,} characters).")
    lines: list[str] = []
    with _cpu_limit(pattern):
        try:
            compiled = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolError(f"The pattern cannot be used: {error}.") from None
        names = list(itertools.islice(files_below(workspace, start), MOST_FILES + 1))
        for name in names[:MOST_FILES]:
            lines += itertools.islice(_lines(workspace, name, compiled), MOST_LINES + 1 - len(lines))
            if len(lines) > MOST_LINES:
                return "\n".join([*lines[:MOST_LINES], f"[more than {MOST_LINES:,} lines; use a narrower pattern]"])
    if len(names) > MOST_FILES:
        lines.append(_only_first())
    return "\n".join(lines) or "no matches"


def _only_first() -> str:
    return f"[only the first {MOST_FILES:,} files were looked at; give a path]"


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the path matches; `**` stands for any number of folders, at the end for everything below."""
    states = _with_skips({0}, pattern)
    for part in parts:
        moved = {state if pattern[state] == "**" else state + 1 for state in states if _fits(part, pattern, state)}
        states = _with_skips(moved, pattern)
    return len(pattern) in states


def _fits(part: str, pattern: tuple[str, ...], state: int) -> bool:
    return state < len(pattern) and (pattern[state] == "**" or fnmatch.fnmatchcase(part, pattern[state]))


def _with_skips(states: set[int], pattern: tuple[str, ...]) -> set[int]:
    found = set(states)
    for state in sorted(states):
        while state < len(pattern) and pattern[state] == "**":
            state += 1  # noqa: PLW2901 - walks on from where it is
            found.add(state)
    return found


def _changed_at(workspace: Workspace, name: PurePosixPath) -> float:
    try:
        return (workspace.project / name).lstat().st_mtime
    except OSError:
        return 0.0


def _lines(workspace: Workspace, name: PurePosixPath, pattern: re.Pattern[str]) -> Iterator[str]:
    try:
        data = read_file(workspace, name).data
    except (OSError, ToolError):
        return
    if b"\0" in data[:_BINARY_LOOK]:
        return
    text = data.decode(errors="replace")
    if not any(pattern.search(line[:MOST_LINE_CHARS]) for line in text.split("\n")):
        return
    # Only what is shown may match: else a pattern could feel out a secret character by character.
    for number, line in enumerate(redact(text, workspace.secrets).split("\n"), 1):
        shown = line.removesuffix("\r")[:MOST_LINE_CHARS]
        if pattern.search(shown):
            yield f"{name}:{number}:{shown}"


@contextlib.contextmanager
def _cpu_limit(pattern: str) -> Iterator[None]:
    """Ends a pattern that backtracks for ever.  Raises ToolError.

    `re` holds the interpreter while it searches, so no thread can stop it; a signal in the main thread can.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        if _NESTED.search(pattern):
            raise ToolError("The pattern repeats a repetition, which can take for ever; use a simpler one.")
        yield
        return
    is_on = True

    def expire(_number: int, _frame: FrameType | None) -> None:
        if is_on:
            raise ToolError(f"The search took more than {CPU_SECS:.0f} s; use a simpler pattern or give a path.")

    before = signal.signal(signal.SIGVTALRM, expire)
    # It ticks on, because an exception that comes during a clean-up is swallowed.
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECS, _TICK_SECS)
    try:
        yield
    finally:
        is_on = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)  # discards a tick that is on its way
        signal.signal(signal.SIGVTALRM, before or signal.SIG_DFL)
