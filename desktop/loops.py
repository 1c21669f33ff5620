"""The threads that do the work: each steps until there is nothing, then sleeps until its time or a nudge."""

import logging
import threading
import time
from collections.abc import Callable, Container
from datetime import datetime
from typing import Protocol

from store.clock import now
from store.storage_trouble import Unwritable

log = logging.getLogger("engine")

SWEEP_SECS = 60.0
"""The longest sleep: a nudge that was lost costs no more than this."""

AFTER_ERROR_SECS = 1.0


class Worker(Protocol):
    """Work found in the database."""

    def step(self) -> bool:
        """Does what is due; True when there was any."""

    def next_at(self) -> datetime | None:
        """When there is more to do, as far as is known."""


class Loop:
    """One worker on a named thread of its own."""

    def __init__(self, name: str, worker: Worker, set_alarm: Callable[[datetime | None], None] | None = None) -> None:
        self.name = name
        self._worker = worker
        self._set_alarm = set_alarm
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self.busy_since: float | None = None
        """When the step that runs now began, on the clock that counts time awake."""

    def nudge(self) -> None:
        """There may be work: called after the commit that made it."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """The body of the thread."""
        while not self._stopping.is_set():
            self._wake.clear()
            self.busy_since = time.monotonic()
            try:
                if self._worker.step():
                    continue
                pause = self._pause()
            except Unwritable:  # the writer has said so, once
                pause = AFTER_ERROR_SECS
            except Exception:
                # A worker that fails once must come back: everything it needs is in the database.
                log.exception("[engine] %s failed; it goes on", self.name)
                pause = AFTER_ERROR_SECS
            self.busy_since = None
            self._wake.wait(pause)

    def _pause(self) -> float:
        at = self._worker.next_at()
        if self._set_alarm is not None:
            self._set_alarm(at)
            return SWEEP_SECS
        return SWEEP_SECS if at is None else min(SWEEP_SECS, max(0.0, (at - now()).total_seconds()))


class Threads:
    """Named threads of the app, so that a stop can wait for them and a stall can name one."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def spawn(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads = [known for known in self._threads if known.is_alive()]
        self._threads.append(thread)
        return thread

    def join(self, secs: float, besides: Container[str] = ()) -> list[str]:
        """Waits for all of them but `besides`, at most `secs` in all; the names of those that did not end."""
        deadline = time.monotonic() + secs
        awaited = [thread for thread in self._threads if thread.name not in besides]
        for thread in awaited:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in awaited if thread.is_alive()]
