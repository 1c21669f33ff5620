"""The app's side of a worker: a child process of its own group that can be ended whole at any time."""

import contextlib
import json
import logging
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psutil

from agent.wire import Spec
from store.redaction import redact

log = logging.getLogger("cron-heal")

PASSED_ON = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "TMPDIR")
KILL_SECS = 10.0
LOOK_SECS = 0.005
STDERR_LINES = 40
STDERR_CHARS = 4_000


class WorkerProcess:
    """One parked session process.  `on_line` and `on_exit` are called on its own reader thread.

    `start_time` is in raw clock ticks since the boot `boot_id`: together with the pid they name the process for good.
    """

    def __init__(
        self,
        command: Sequence[str],
        spec: Spec,
        on_line: Callable[[dict[str, Any]], None],
        on_exit: Callable[[int], None],
        spawn_thread: Callable[[str, Callable[[], None]], object],
    ) -> None:
        self._on_line = on_line
        self._on_exit = on_exit
        self._secrets = spec.secrets
        self._sending = threading.Lock()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._said: deque[str] = deque(maxlen=STDERR_LINES)
        self.pid = self._process.pid
        self.start_time = start_time_of(self.pid) or 0
        self.boot_id = read_boot_id()
        self._send(spec.to_json())
        spawn_thread(f"session {spec.session_id}", self._read)
        spawn_thread(f"session {spec.session_id} stderr", self._read_errors)

    def go(self) -> None:
        """The session may begin."""
        self._send({"type": "go"})

    def reply(self, number: int, *, ok: bool, **facts: Any) -> None:
        """Answers what the session asked."""
        self._send({"type": "reply", "id": number, "ok": ok, **facts})

    def stop(self) -> None:
        """The session is to end soon, by itself."""
        self._send({"type": "stop"})

    def kill(self) -> bool:
        """Ends the process with everything it started; whether all of it is gone."""
        gone = _kill(self.pid, self.start_time)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_SECS)
        return gone and self._process.returncode is not None

    def _send(self, message: Mapping[str, Any]) -> None:
        pipe = self._process.stdin
        # A worker that has just ended tells so through its exit.
        with self._sending, contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                pipe.write(json.dumps(message) + "\n")
                pipe.flush()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            message = _object(line)
            if message is None:
                self._said.append(line[-STDERR_CHARS:])
            else:
                self._on_line(message)
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._on_exit(code)

    def _read_errors(self) -> None:
        with self._process.stderr or contextlib.nullcontext():
            self._said.extend(line[-STDERR_CHARS:] for line in self._process.stderr or ())
        if self._said:
            said = redact("".join(self._said)[-STDERR_CHARS:], self._secrets)
            log.info("[cron-heal] session process %d wrote: %s", self.pid, said)


def _object(line: str) -> dict[str, Any] | None:
    """The JSON object of a line; None for anything else."""
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return None


def kill_tree(pid: int, start_time: int, boot_id: str) -> bool:
    """Ends a worker of an earlier start of the app; a process that only has its pid is left alone."""
    if boot_id != read_boot_id() or start_time_of(pid) != start_time:
        return True
    return _kill(pid, start_time)


def _kill(pid: int, start_time: int) -> bool:
    """Ends the worker's session with everything below it; whether all of it is gone in time."""
    deadline = time.monotonic() + KILL_SECS
    tree: set[psutil.Process] = set()
    # Stopped before it is looked below: what is stopped starts nothing more.
    while found := set(_members(pid, start_time, tree)) - tree:
        tree |= found
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.suspend()
    for process in tree:
        with contextlib.suppress(psutil.Error):
            process.kill()
    while any(_lives(process) for process in tree):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECS)
    return True


def _members(pid: int, start_time: int, known: set[psutil.Process]) -> Iterator[psutil.Process]:
    """Living processes of the worker's session, and the children of those known to belong to it."""
    # The number of a session is not given again while it has members: another process of this number means none.
    if start_time_of(pid) not in (start_time, None):
        return
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if (os.getsid(process.pid) == pid or process.parent() in known) and _lives(process):
                yield process


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}


def start_time_of(pid: int) -> int | None:
    """The start time of a process in raw clock ticks since the boot; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return None
    return int(text[text.rfind(b")") + 2 :].split()[19])


def read_boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
        return file.read().strip()
