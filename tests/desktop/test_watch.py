"""The watch: a stopped clock is wound up again, a worker that hangs is told, and both only once."""

import threading
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from desktop.loops import Loop
from desktop.watch import Watch
from scheduler.alarm import Alarm

pytestmark = pytest.mark.mission("L3")


class Hanging:
    """A worker whose step takes until it is told."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def step(self) -> bool:
        self.begun.set()
        self.go_on.wait(30)
        return False

    def next_at(self) -> datetime | None:
        return None


@pytest.fixture
def rings() -> list[float]:
    return []


@pytest.fixture
def alarm(rings: list[float]) -> Iterator[Alarm]:
    made = Alarm(lambda: rings.append(time.monotonic()))
    made.start()
    yield made
    made.stop()


def test_a_clock_that_stopped_is_wound_up_and_told_once(alarm: Alarm, rings: list[float]) -> None:
    told: list[str] = []
    ahead = 0.0
    watch = Watch(alarm, {}, told.append, lambda: time.monotonic() + ahead)
    watch.look()
    assert (watch.stall, rings) == (None, [])
    alarm.stop()
    ahead = 91.0

    watch.look()

    assert told == ["The scheduler's clock has not ticked for 91 s; it has been started anew."]
    assert len(rings) == 1, "it rang at once"
    watch.look()
    assert len(told) == 1, "the same stall is told once"
    ahead = 0.0
    watch.look()
    assert watch.stall is None


def test_a_worker_that_hangs_is_named(alarm: Alarm) -> None:
    told: list[str] = []
    ahead = 0.0
    worker = Hanging()
    loop = Loop("medic", worker)
    thread = threading.Thread(target=loop.run)
    watch = Watch(alarm, {"medic": loop}, told.append, lambda: time.monotonic() + ahead)
    thread.start()
    assert worker.begun.wait(30)
    ahead, alarm.rang_at = 181.0, time.monotonic() + 181

    watch.look()

    assert watch.stall == "A part of the scheduler (medic) hangs since 3 min. Restart Cronmend."
    assert told == [watch.stall]
    worker.go_on.set()
    loop.stop()
    thread.join(30)
    watch.look()
    assert watch.stall is None
