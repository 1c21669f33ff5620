"""The watch: a thread beside the others that sees when the alarm clock or a worker has stopped."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from desktop.loops import Loop
from scheduler.alarm import Alarm

log = logging.getLogger("engine")

EVERY_SECS = 15.0
LATE_SECS = 90.0
"""The alarm rings every 30 s; three missed rings are no hiccup."""

STUCK_SECS = 180.0
"""No step of a worker takes that long: what waits does so between steps."""


class Watch:
    """Elapsed time is time awake, so that a night asleep is no stall.  `warn` is called once a stall.

    `trouble` says why nothing can be written at present, if that is so.
    """

    def __init__(
        self,
        alarm: Alarm,
        loops: Mapping[str, Loop],
        warn: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._alarm = alarm
        self._loops = loops
        self._warn = warn
        self._clock = clock
        self._trouble = trouble
        self._ending = threading.Event()
        self.stall: str | None = None
        """What has stopped, in a sentence for the page; None when all is well."""

    def run(self) -> None:
        """The body of the thread."""
        while not self._ending.wait(EVERY_SECS):
            try:
                self.look()
            except Exception:
                log.exception("[engine] the watch failed; it goes on")

    def stop(self) -> None:
        self._ending.set()

    def look(self) -> None:
        """Judges, winds a stopped alarm up again, and tells what is new."""
        at = self._clock()
        found = self._stalled(at)
        if found is not None and self.stall is None:
            log.error("[engine] %s", found)
            self._warn(found)
        elif found is None and self.stall is not None:
            log.info("[engine] the scheduler is well again")
        self.stall = found

    def _stalled(self, at: float) -> str | None:
        silent = at - self._alarm.rang_at
        if silent > LATE_SECS:
            self._alarm.restart()
            return f"The scheduler's clock has not ticked for {round(silent)} s; it has been started anew."
        for name, loop in self._loops.items():
            busy = at - loop.busy_since if loop.busy_since is not None else 0.0
            if busy > STUCK_SECS:
                return f"A part of the scheduler ({name}) hangs since {round(busy / 60)} min. Restart Cronmend."
        return self._trouble()
