"""A real keeper for a test: started through the real link, its reports collected."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scheduler.keeper_link import KeeperLink, Report, Start

KEEPER = (sys.executable, "-P", "-m", "scheduler.keeper")


class Kept:
    """One link to the keeper of `state`, and what it has reported."""

    def __init__(self, state: Path, epoch: int = 1) -> None:
        self.state = state
        self.reports: list[Report] = []
        self.lost = threading.Event()
        self._threads: list[threading.Thread] = []
        self.link = KeeperLink(state, KEEPER, self._spawn, self.reports.extend, self.lost.set)
        self.known = self.link.connect(epoch)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name)
        thread.start()
        self._threads.append(thread)

    def start(self, run: int, *argv: str, folder: Path, **changes: Any) -> Start:
        order = self.order(run, *argv, folder=folder, **changes)
        self.link.start([order])
        return order

    def order(self, run: int, *argv: str, folder: Path, **changes: Any) -> Start:
        facts = {
            "run": run,
            "attempt": 1,
            "argv": argv,
            "direct": True,
            "cwd": str(folder),
            "env": {"PATH": os.environ["PATH"], "CRONMEND_RUN_ID": str(run)},
            "stdout": str(folder / f"{run}.out"),
            "stderr": str(folder / f"{run}.err"),
            "timeout_secs": 60.0,
            "grace_secs": 0.5,
        }
        return Start(**{**facts, **changes})

    def until(self, run: int, *states: str, secs: float = 20) -> Report:
        """The first report of the run in one of these states."""
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline:
            for report in [*self.known, *self.reports]:
                if report.run == run and report.state in states:
                    return report
            time.sleep(0.01)
        raise AssertionError(f"run {run} never was {states}: {self.reports}")

    def ended(self, run: int) -> Report:
        return self.until(run, "ended", "lost", "refused")

    def close(self) -> None:
        self.link.close()
        for thread in self._threads:
            thread.join(10)

    def kill_keeper(self) -> None:
        assert self.link.pid is not None
        os.kill(self.link.pid, signal.SIGKILL)
        assert self.lost.wait(10)
        self.close()


def wait_until(holds: Callable[[], object], secs: float = 20) -> None:
    """Fails unless it comes to hold."""
    deadline = time.monotonic() + secs
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.01)
