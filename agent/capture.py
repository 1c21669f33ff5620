"""Collects what a sandboxed command prints, without growing, and returns when nothing of it is alive."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

MOST_OUTPUT = 65_536
LOOK_SECS = 0.1
GONE_SECS = 10.0
_LONGEST_CUT_LINE = 4_096


@dataclass(frozen=True)
class Completed:
    """How a command ended.  `output` is both streams in order, head and tail when there was too much."""

    exit_code: int
    output: bytes
    timed_out: bool


class Namespace:
    """The first process of a command's own pid namespace: when it is gone, all of them are."""

    def __init__(self, info: int) -> None:
        """`info` is where bubblewrap tells the process id; it is read to its end here."""
        self._file: int | None = None
        try:
            # A namespace that has already ended cannot be opened, and need not be.
            self._file = os.pidfd_open(json.loads(_read_object(info))["child-pid"])
        except (OSError, ValueError, KeyError):
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if self._file is not None:
            _is_ready(self._file, GONE_SECS)
            os.close(self._file)

    def kill(self) -> None:
        if self._file is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._file, signal.SIGKILL)


def _read_object(file: int) -> bytes:
    text = b""
    while b"}" not in text:
        chunk = os.read(file, 4_096)
        if not chunk:
            break
        text += chunk
    return text


def collect(process: "subprocess.Popen[bytes]", output: int, info: int, timeout_secs: float) -> Completed:
    """Reads until the command ends or its time is up; leaves no process behind."""
    deadline = time.monotonic() + timeout_secs
    kept = _Kept()
    with Namespace(info) as namespace:
        try:
            _read(process, output, kept, deadline)
            process.wait(max(0.0, deadline - time.monotonic()))
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
            namespace.kill()
        finally:
            process.kill()
            process.wait()
    return Completed(process.returncode, kept.output(), timed_out)


def _read(process: "subprocess.Popen[bytes]", output: int, kept: "_Kept", deadline: float) -> None:
    """Raises TimeoutExpired.  The end of the command counts, not that of the pipe: a child may hold that."""
    while (left := deadline - time.monotonic()) > 0:
        has_ended = process.poll() is not None
        ready = _is_ready(output, 0 if has_ended else min(LOOK_SECS, left))
        data = os.read(output, MOST_OUTPUT) if ready else b""
        kept.add(data)
        if not data and (ready or has_ended):
            return
    raise subprocess.TimeoutExpired(process.args, deadline)


def _is_ready(file: int, secs: float) -> bool:
    # Not select(): the app may have more than 1,024 files open.
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(secs * 1_000))


class _Kept:
    """The first and the last half of what may be kept."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = MOST_OUTPUT // 2 - len(self._head)
        self._head += data[:room]
        tail = self._tail + data[room:]
        self._left_out += max(0, len(tail) - MOST_OUTPUT // 2)
        self._tail = tail[-(MOST_OUTPUT // 2) :]

    def output(self) -> bytes:
        if not self._left_out:
            return self._head + self._tail
        # A line that was cut may hold half a secret, which no comparison finds.
        head, tail = self._head, self._tail
        if (end := head.rfind(b"\n", -_LONGEST_CUT_LINE)) >= 0:
            head = head[:end]
        if (start := tail.find(b"\n", 0, _LONGEST_CUT_LINE)) >= 0:
            tail = tail[start + 1 :]
        left_out = self._left_out + len(self._head) - len(head) + len(self._tail) - len(tail)
        return head + f"\n[... {left_out:,} bytes left out ...]\n".encode() + tail
