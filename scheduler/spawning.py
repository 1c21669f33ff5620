"""Starting a run's process: its own session, default signals, output straight into its log files."""

import errno
import os
import signal
from collections.abc import Mapping
from typing import Any

SHELL = "/bin/sh"
NOT_FOUND = 127
NOT_EXECUTABLE = 126

_ALL_SIGNALS = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class SpawnError(Exception):
    """No process was started; `exit_code` is what a shell would have said, None when there is no such word."""

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LogError(SpawnError):
    """There is no file for what the process prints; it may be started once there is."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the log file cannot be written: {path} ({reason})", None)


def spawn(order: Mapping[str, Any]) -> int:
    """Starts the process of a START message; its pid.  Raises SpawnError.

    Changes the working folder of this process: the caller is single-threaded.
    """
    cwd, env = order["cwd"], order["env"]
    try:
        os.chdir(cwd)
    except OSError as error:
        raise SpawnError(f"the working folder cannot be entered: {cwd} ({error.strerror})", None) from error
    argv: list[str] = order["argv"]
    program = _resolve(argv[0], env.get("PATH", "")) if order["direct"] else argv[0]
    try:
        return _execute(program, argv, env, order)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without #!: a shell runs it itself, and so do we
            return _execute(SHELL, [SHELL, program, *argv[1:]], env, order)
        raise _explain(error, argv[0], program, order) from error
    finally:
        os.chdir("/")


def _execute(program: str, argv: list[str], env: Mapping[str, str], order: Mapping[str, Any]) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, order["stdout"], _LOG_FLAGS, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, order["stderr"], _LOG_FLAGS, 0o600),
    ]
    return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=_ALL_SIGNALS)


def _resolve(name: str, path: str) -> str:
    """The file that `name` means with this PATH and the working folder, as execvp would choose it."""
    candidates = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in path.split(":")]
    blocked = None
    for candidate in candidates:
        if os.path.isfile(candidate):  # noqa: PTH113 - on the path of every start
            if os.access(candidate, os.X_OK):
                return candidate
            blocked = blocked or candidate
    if blocked or ("/" in name and os.path.isdir(name)):  # noqa: PTH112
        raise SpawnError(f"[Errno 13] Permission denied: '{name}'", NOT_EXECUTABLE)
    raise SpawnError(f"[Errno 2] No such file or directory: '{name}'", NOT_FOUND)


def _explain(error: OSError, name: str, program: str, order: Mapping[str, Any]) -> SpawnError:
    for stream in ("stdout", "stderr"):
        try:
            os.close(os.open(order[stream], _LOG_FLAGS, 0o600))
        except OSError as reason:
            return LogError(order[stream], str(reason.strerror))
    said = f"[Errno {error.errno}] {error.strerror}: '{name}'"
    if error.errno == errno.ENOENT:
        interpreter = _interpreter(program)
        missing = f" (its interpreter {interpreter!r} does not exist)" if interpreter else ""
        return SpawnError(said + missing, NOT_FOUND)
    return SpawnError(said, NOT_EXECUTABLE if error.errno == errno.EACCES else None)


def _interpreter(program: str) -> str | None:
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - relative to the run's folder, which is ours just now
            first = file.readline(256)
    except OSError:
        return None
    return first[2:].rstrip(b"\n").decode(errors="replace").lstrip(" ") if first.startswith(b"#!") else None
