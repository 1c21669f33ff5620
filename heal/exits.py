"""What the system itself says of a run without known texts: it did not start, or how it ended."""

import errno
import re
import signal

from heal.places import Places, first_word

Conclusion = tuple[str, str]

_QUOTED = re.compile(r"'([^']{1,500})'")
_CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS}
)
MOST_COMMAND_CHARS = 80

TIMED_OUT, NOT_EXECUTABLE, NOT_FOUND = 124, 126, 127
_BY_SIGNAL, _MOST_SIGNAL = 128, 64
_NO_CONNECTION = 255


def of_spawn(said: str, places: Places) -> Conclusion:
    """Why no process was started."""
    match = _QUOTED.search(said)
    name = match[1] if match else said
    denied, absent = f"[Errno {errno.EACCES}]" in said, f"[Errno {errno.ENOENT}]" in said
    if "working folder" in said:
        return ("permission" if "Permission denied" in said else "missing-file"), said
    if "its interpreter" in said:
        is_crlf = "\\r" in said
        kind = "bad interpreter (CRLF line endings)" if is_crlf else "missing interpreter"
        by_text = ("script-error" if is_crlf else "missing-file"), f"{kind}: {name}"
        return places.interpreter_fault(name) or by_text
    if denied:
        kind = "is a folder, not a program" if places.is_folder(name) else "not executable"
        return "permission", f"{kind}: {name}"
    if absent:
        return missing_command(name, places)
    return ("script-error" if "[Errno" in said else "unknown"), said


def missing_command(name: str, places: Places) -> Conclusion:
    """A program that was not found by its name or path."""
    if "/" in name:
        shown = places.shown(name)
        return places.interpreter_fault(name) or ("missing-file", f"missing file: {shown}{_still(name, places)}")
    folder = places.elsewhere(name)
    hint = f" (it is in {places.shown(folder)}, which is not on the job's PATH)" if folder else ""
    return "missing-file", f"command not found: {name}{hint}"


def of_signal(number: int, command: str) -> Conclusion:
    """A process that a signal ended.  Who sent a SIGKILL is not known: it need not be the lack of memory."""
    word = shortened(command)
    try:
        which = signal.Signals(number)
    except ValueError:
        return "unknown", f"killed by signal {number}: {word}"
    if which in _CRASHES:
        return "script-error", f"crashed with signal {number} ({which.name}): {word}"
    if which == signal.SIGPIPE:
        return "script-error", f"wrote to a pipe that no one reads (signal {number}, SIGPIPE): {word}"
    return "unknown", f"killed by signal {number} ({which.name}): {word}"


def of_code(code: int | None, command: str, places: Places) -> Conclusion | None:
    """Exit codes with a meaning of their own; None for the others."""
    word = first_word(command)
    if code == TIMED_OUT:
        return "timeout", f"exit code 124, as `timeout` ends a command: {shortened(command)}"
    if code == NOT_EXECUTABLE:
        unset = f"not executable: {word}" if places.lacks_exec_bit(word) else None
        return "permission", unset or f"exit code 126, a program could not be started: {shortened(command)}"
    if code == NOT_FOUND:
        is_there = places.file(word) is not None or places.finds(word)
        fault = places.interpreter_fault(word) if is_there else missing_command(word, places)
        return fault or ("missing-file", f"exit code 127, a command was not found: {shortened(command)}")
    if code == _NO_CONNECTION and word in ("ssh", "scp", "sftp"):
        return "network", f"{word} could not connect (exit code 255)"
    if code is not None and _BY_SIGNAL < code <= _BY_SIGNAL + _MOST_SIGNAL:
        category, cause = of_signal(code - _BY_SIGNAL, command)
        return category, f"{cause} (exit code {code})"
    return None


def shortened(command: str) -> str:
    """The command as far as one line holds it."""
    line = " ".join(command.split())
    return line if len(line) <= MOST_COMMAND_CHARS else f"{line[:MOST_COMMAND_CHARS]}…"


def _still(name: str, places: Places) -> str:
    return " (it exists now)" if places.file(name) is not None else ""
