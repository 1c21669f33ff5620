"""Process facts from /proc: who a process is, and which processes belong to a run."""

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


def boot_id() -> str:
    """The kernel's name for this boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Process:
    """One line of /proc/PID/stat.  `start_time` is in raw clock ticks since the boot."""

    pid: int
    parent: int
    session: int
    start_time: int
    state: str


def look_up(pid: int) -> Process | None:
    """The process, None when there is none; a zombie is one still."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may hold anything, brackets and spaces too: read after the last one.
    fields = text[text.rfind(b")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode())


def is_alive(pid: int, start_time: int) -> bool:
    """Whether that very process still runs: pids are given again, a pid with its start time is not."""
    process = look_up(pid)
    return process is not None and process.start_time == start_time and process.state not in "ZX"


def members(leader: int, started: int, marks: Iterable[str]) -> list[Process]:
    """The living processes of a run: its session, its descendants, and those that left both but kept its environment.

    `started`: the start time of the run's process; nothing older can belong to it.
    """
    everything = {process.pid: process for process in _all() if process.start_time >= started}
    found = {pid for pid, process in everything.items() if leader in (pid, process.session)}
    wanted = [mark.encode() for mark in marks]
    if wanted:
        strays = (pid for pid, process in everything.items() if process.parent in (1, os.getpid()))
        found |= {pid for pid in strays if _carries(pid, wanted)}
    grown = True
    while grown:
        below = {pid for pid, process in everything.items() if process.parent in found} - found
        found |= below
        grown = bool(below)
    found.discard(os.getpid())
    return [everything[pid] for pid in sorted(found) if everything[pid].state not in "ZX"]


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signals each that is still itself."""
    for process in processes:
        if is_alive(process.pid, process.start_time):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def _all() -> Iterable[Process]:
    for name in os.listdir(_PROC):  # noqa: PTH208 - names alone are wanted, and this runs while a run is stopped
        if name.isdigit() and (process := look_up(int(name))) is not None:
            yield process


def _carries(pid: int, marks: list[bytes]) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(mark in environment for mark in marks)
