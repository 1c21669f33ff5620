"""The alarm clock, and the only importer of APScheduler: it wakes the dispatcher and does nothing else."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger("engine")

AT_LEAST_EVERY_SECS = 30
JUMP_SECS = 5.0
"""Wall and monotonic time may drift by less; more is a resume from sleep or a clock step."""


class Alarm:
    """Rings at the next slot and at least every 30 s.  Owns no slot and runs no job."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._clock = _wind_up()
        self.rang_at = time.monotonic()
        """When it rang last, on the clock that counts time awake."""

        self._wall = time.time()
        self._steady = time.monotonic()
        self.last_tick_at: datetime | None = None

    def start(self) -> None:
        self._clock.add_job(self._tick, "interval", seconds=AT_LEAST_EVERY_SECS, id="sweep")
        self._clock.start()

    def stop(self) -> None:
        if self._clock.running:
            self._clock.shutdown(wait=False)

    def restart(self) -> None:
        """Another clock in place of one that stopped; it rings at once, and so learns the next instant."""
        self.stop()
        self._clock = _wind_up()
        self.start()
        self._tick()

    def set(self, at: datetime | None) -> None:
        """The next instant to ring at, in place of the one before."""
        if at is None:
            if self._clock.get_job("next"):
                self._clock.remove_job("next")
            return
        self._clock.add_job(self._tick, "date", run_date=at, id="next", replace_existing=True)

    def _tick(self) -> None:
        wall, steady = time.time(), time.monotonic()
        jump = (wall - self._wall) - (steady - self._steady)
        self._wall, self._steady = wall, steady
        if abs(jump) > JUMP_SECS:
            log.warning(
                "[engine] the clock moved by %.0f s against elapsed time: resume from sleep or a clock step", jump
            )
        self.rang_at = steady
        self.last_tick_at = datetime.fromtimestamp(wall, tz=UTC)
        self._ring()


def _wind_up() -> BackgroundScheduler:
    # The debug executor calls straight from the timer thread: no pool to wait in, no misfire to lose.
    return BackgroundScheduler(
        executors={"default": DebugExecutor()},
        job_defaults={"misfire_grace_time": None, "coalesce": True},
        timezone=UTC,
    )
