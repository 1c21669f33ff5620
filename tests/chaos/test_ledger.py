"""Years of slots through the shipped dispatcher, recorder and store, with kills, sleeps and clock steps at random.

Only the wall clock and the keeper are substituted.  What is due comes from an oracle that shares no code with the
product: each due slot must be in exactly one row.  CHAOS_SEEDS=25 makes it ten thousand days.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import make
import pytest
from conftest import spawn_thread
from sqlalchemy import select
from support.cron_oracle import fire_times

from agent.sessions import Sessions
from scheduler.dispatcher import Dispatcher
from scheduler.ends import Examined
from scheduler.environment import Surroundings
from scheduler.keeper_link import KeeperUnreachable, Report, Start
from scheduler.logs import LogFolder
from scheduler.recorder import Recorder, adopt
from scheduler.session_runs import SessionRuns
from store import clock
from store.database import Database
from store.runs import Run
from store.upgrade import upgrade

pytestmark = [pytest.mark.mission("B1", "B2", "L3"), pytest.mark.timeout(900)]

SEEDS = range(int(os.environ.get("CHAOS_SEEDS", "4")))
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 400
END = BEGIN + timedelta(days=DAYS)

JOBS: tuple[dict[str, Any], ...] = (
    {"schedule": "0 3 * * *", "timezone": "Europe/Berlin"},
    {"schedule": "30 2 * * *", "timezone": "America/New_York", "catchUp": "all", "catchUpMaxAgeSecs": 864_000},
    {"schedule": "0 */6 * * *", "timezone": "Europe/Berlin", "overlap": "queue"},
    {"schedule": "0 9 * * 1-5", "timezone": "America/New_York", "catchUp": "skip"},
    {"schedule": "15 1 13 * 5", "timezone": "Europe/Berlin", "retries": 2, "retryBackoffSecs": 600},
    {"schedule": "45 */4 * * *", "timezone": "America/New_York", "overlap": "parallel", "jitterSecs": 60},
)


class Killed(BaseException):
    """The app dies here."""


@dataclass
class World:
    """The clock and the keeper: what runs goes on when the app dies."""

    random: random.Random
    at: float = BEGIN.timestamp()
    known: dict[tuple[int, int], datetime] = field(default_factory=dict)
    """The attempts it has, and when each ends."""

    dead_at: int = 0
    """How many starts are left until the app dies, 0: it does not."""

    def start(self, starts: Sequence[Start]) -> None:
        for start in starts:
            self.dead_at -= 1
            if self.dead_at == 0 and self.random.random() < 0.5:
                raise Killed
            self.known.setdefault((start.run, start.attempt), clock.now() + timedelta(seconds=self._lasts()))
            if self.dead_at == 0:
                raise Killed
        if self.random.random() < 0.01:
            raise KeeperUnreachable("the keeper does not answer")

    def _lasts(self) -> float:
        return self.random.choice((0.5, 20.0, 300.0, 30_000.0))

    def hurry(self) -> None:
        """No command lasts longer because the clock was set."""
        longest = clock.now() + timedelta(seconds=30_000)
        self.known = {key: min(end, longest) for key, end in self.known.items()}

    def acknowledge(self, ids: Sequence[tuple[int, int]]) -> None:
        for one in ids:
            self.known.pop(one, None)

    def ended(self) -> list[Report]:
        now = clock.now()
        over = [(key, end) for key, end in self.known.items() if end <= now]
        return [_report(key, "ended", end, int(self.random.random() < 0.1)) for key, end in over]

    def living(self) -> list[Report]:
        now = clock.now()
        return [_report(key, "running", now, None) for key, end in self.known.items() if end > now]


def _report(key: tuple[int, int], state: Any, at: datetime, code: int | None) -> Report:
    facts: dict[str, Any] = {"pid": 1, "start_time": 1, "boot_id": "b", "signal": None, "known": True}
    return Report(*key, state=state, at=at, started_at=at, exit_code=code, **facts)


@dataclass
class App:
    """One life of the app over the same files."""

    dispatcher: Dispatcher
    recorder: Recorder

    def work(self, world: World) -> None:
        """Everything that is due at this instant."""
        while True:
            over = world.ended()
            self.recorder.take(over)
            worked = self.recorder.step()
            if not self.dispatcher.step() and not worked:
                return


def begin(database: Database, world: World, folder: Path) -> App:
    logs, surroundings = LogFolder(folder / "logs"), Surroundings({"HOME": "/", "PATH": "/bin"}, lambda: 100_000)
    sessions = SessionRuns(database, Sessions(database, make.office(), spawn_thread), logs, folder / "workspace")
    keeper: Any = world
    dispatcher = Dispatcher(database, keeper, logs, surroundings, sessions)
    recorder = Recorder(database, keeper, logs, lambda _: Examined({}, "unknown", "it broke"), surroundings)
    recorder.on_refused = dispatcher.refused
    dispatcher.knows(adopt(database, [*world.living(), *world.ended()], recorder))
    return App(dispatcher, recorder)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: half a million commits."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    yield made
    shutil.rmtree(made)


@cache
def due(schedule: str, zone: str) -> list[datetime]:
    return fire_times(schedule, zone, BEGIN, END)


def live(database: Database, world: World, folder: Path) -> None:
    """From beginning to end, with what happens to a laptop."""
    app = begin(database, world, folder)
    while world.at <= END.timestamp():
        chance = world.random.random()
        if chance < 0.01:
            world.dead_at = world.random.randint(1, 3)
        try:
            app.work(world)
        except Killed:
            world.dead_at = 0
            world.at += world.random.choice((1.0, 60.0, 7_200.0))
            app = begin(database, world, folder)
            continue
        if chance < 0.03:  # asleep, or closed
            world.at += world.random.choice((100.0, 4_000.0, 90_000.0, 400_000.0))
            if world.random.random() < 0.5:
                app = begin(database, world, folder)
        elif chance < 0.04:  # the clock is set back
            world.at -= world.random.choice((2.0, 90.0, 3_700.0))
        elif chance < 0.042:
            be_wrong_for_a_moment(world, app)
        coming = app.dispatcher.next_at()
        ends = min(world.known.values(), default=None)
        soonest = min(at.timestamp() for at in (coming, ends, END + timedelta(seconds=1)) if at is not None)
        world.at = max(world.at + 0.01, soonest)
    world.dead_at = 0
    app.work(world)


def be_wrong_for_a_moment(world: World, app: App) -> None:
    """The clock is far ahead, and set right again."""
    truly, world.dead_at = world.at, 0
    for moment in (truly + world.random.choice((9_000.0, 20_000_000.0)), truly + 60.0):
        world.at = moment
        world.hurry()
        app.work(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_due_slot_is_in_one_row(folder: Path, seed: int) -> None:
    world = World(random.Random(seed))
    with clock.simulated(lambda: world.at):
        upgrade(folder / "cronmend.db", folder / "backups")
        database = Database(folder / "cronmend.db")
        database.start(spawn_thread)
        for job in JOBS:
            make.job(database, **job)

        live(database, world, folder)

        with database.read() as session:
            rows = session.scalars(select(Run).where(Run.slot_at.is_not(None)).order_by(Run.id)).all()
        database.close()
    for number, job in enumerate(JOBS, 1):
        slots = due(job["schedule"], job["timezone"])
        place = {slot: index for index, slot in enumerate(slots)}
        covered: list[int] = []
        for row in rows:
            if row.job_id == number and row.retry_of is None and row.slot_at is not None and row.slot_at <= END:
                first = place[row.slot_at]
                covered += range(first, min(first + row.slots_covered, len(slots)))
        assert sorted(covered) == list(range(len(slots))), f"job {number}: a slot is lost, made up or doubled"
        ran = [row for row in rows if row.job_id == number and row.status in ("completed", "failed")]
        assert len(ran) > len(slots) / 4, "they really ran"
    assert not [row for row in rows if row.system_marked_failure], "the keeper knew every end"
