"""A clock that was wrong, a machine that travels, zones with new rules: nothing stands still, nothing runs twice."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import make
import pytest
from conftest import spawn_thread
from sqlalchemy import select

from agent.sessions import Sessions
from scheduler.clock_steps import Rules, follow_rules
from scheduler.dispatcher import Dispatcher
from scheduler.ends import End, end_runs
from scheduler.environment import Surroundings
from scheduler.keeper_link import Start
from scheduler.logs import LogFolder
from scheduler.session_runs import SessionRuns
from store import cards, clock, jobs
from store.database import Database
from store.jobs import Job
from store.runs import Run
from web.decisions import decide

pytestmark = pytest.mark.mission("B2", "L3")

BEGIN = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)


class Keeper:
    """Takes what it is given: only the clock and this are not the product's own."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def start(self, starts: Sequence[Start]) -> None:
        self.taken += [start.run for start in starts]


class World:
    """The shipped dispatcher on a database, and a clock that may be set."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.at = BEGIN
        self.keeper = Keeper()
        self.restart()

    def seconds(self) -> float:
        return self.at.timestamp()

    def restart(self) -> None:
        surroundings = Surroundings({"HOME": "/", "PATH": "/bin"}, lambda: 100_000)
        logs = LogFolder(self.folder / "logs")
        sessions = Sessions(self.database, make.office(), spawn_thread)
        session_runs = SessionRuns(self.database, sessions, logs, self.folder)
        keeper: Any = self.keeper
        self.dispatcher = Dispatcher(self.database, keeper, logs, surroundings, session_runs)

    def go(self, until: datetime) -> None:
        """Time passes; what starts ends at once."""
        while True:
            while self.dispatcher.step():
                self.finish()
            coming = self.dispatcher.next_at()
            if coming is None or coming > until:
                break
            self.at = max(self.at, coming)
        self.at = until

    def set_clock(self, at: datetime) -> None:
        self.at = at
        self.dispatcher.step()
        self.dispatcher.next_at()
        self.finish()

    def finish(self) -> None:
        over = [End(run, 1, "completed", self.at, started_at=self.at) for run in self.keeper.taken]
        self.keeper.taken.clear()
        if over:
            self.database.write(lambda session: end_runs(session, over))

    def slots_that_ran(self, job: Job) -> list[str]:
        """Starts of the job, by the wall clock of the moment."""
        with self.database.read() as session:
            found = session.scalars(select(Run).where(Run.job_id == job.id, Run.status == "completed"))
            return [f"{run.started_at:%d %H:%M}" for run in found if run.started_at]

    def fresh(self, job: Job) -> Job:
        with self.database.read() as session:
            return jobs.get(session, job.id)


@pytest.fixture
def world(database: Database, tmp_path: Path) -> Any:
    made = World(database, tmp_path)
    with clock.simulated(made.seconds):
        yield made


def at(text: str, day: int = 2) -> datetime:
    hour, minute = map(int, text.split(":"))
    return BEGIN.replace(day=day, hour=hour, minute=minute)


def test_after_an_hour_back_fixed_times_do_not_repeat_and_intervals_go_on(world: World) -> None:
    fixed = make.job(world.database, schedule="0 9 * * *")
    every = make.job(world.database, schedule="*/30 * * * *")
    world.go(at("9:40"))

    world.set_clock(at("8:40"))
    world.go(at("10:10"))

    assert world.slots_that_ran(fixed) == ["02 09:00"]
    assert world.slots_that_ran(every) == ["02 09:00", "02 09:30", "02 09:00", "02 09:30", "02 10:00"]
    assert world.fresh(fixed).next_run_at == at("9:00", day=3)


@pytest.mark.parametrize("schedule", ["0 9 * * *", "*/30 * * * *", "0 9,21 * * *"])
@pytest.mark.parametrize("is_closed", [False, True], ids=["running", "closed meanwhile"])
def test_a_clock_that_was_far_ahead_for_a_minute_costs_no_slot(world: World, schedule: str, *, is_closed: bool) -> None:
    job = make.job(world.database, schedule=schedule, catchUp="all")
    world.go(at("8:40"))
    world.set_clock(BEGIN + timedelta(days=335))
    world.go(world.at + timedelta(minutes=1))
    ran_ahead = len(world.slots_that_ran(job))

    if is_closed:
        world.restart()
    world.set_clock(at("8:42"))
    world.go(at("9:40"))

    expected = ["02 09:00", "02 09:30"] if "/" in schedule else ["02 09:00"]
    assert world.slots_that_ran(job)[ran_ahead:] == expected
    with world.database.read() as session:
        rows = session.scalars(select(Run).where(Run.job_id == job.id, Run.slot_at > world.at)).all()
    assert rows == []


def test_a_waiting_retry_is_as_far_off_as_it_was(world: World) -> None:
    job = make.job(world.database, schedule="0 9 * * *", retries=1, retryBackoffSecs=600)
    world.set_clock(BEGIN + timedelta(days=300))
    world.go(world.at + timedelta(seconds=10))
    failing = make.job(world.database, schedule="* * * * *", retries=1, retryBackoffSecs=600)
    with world.database.read() as session:
        newest = session.scalars(select(Run).where(Run.job_id == job.id).order_by(Run.id.desc())).first()
    assert newest is not None

    def fail(session: Any) -> None:
        run = session.get(Run, newest.id)
        run.status, run.retry_due_at, run.retry_run_id = "failed", world.at + timedelta(seconds=600), None

    world.database.write(fail)

    world.set_clock(at("8:45"))

    with world.database.read() as session:
        assert session.get_one(Run, newest.id).retry_due_at == at("8:55")
    assert world.fresh(failing).next_run_at == at("8:46")


def test_ten_years_ahead_are_no_storm_and_lose_nothing_that_comes(world: World) -> None:
    minutely = make.job(world.database, schedule="* * * * *")
    daily = make.job(world.database, schedule="0 9 * * *", catchUp="all")

    world.set_clock(BEGIN.replace(year=2036))
    world.go(world.at + timedelta(minutes=2))

    with world.database.read() as session:
        rows = session.scalars(select(Run)).all()
    assert len(rows) < 30
    assert len(world.slots_that_ran(minutely)) == 3
    assert world.fresh(minutely).next_run_at == world.at + timedelta(minutes=1)
    assert world.fresh(daily).next_run_at == world.at.replace(hour=9, minute=0)


def test_new_rules_of_a_zone_move_the_next_run_and_are_told(world: World) -> None:
    job = make.job(world.database, name="Report", schedule="0 9 * * *", columns={"next_run_at": at("10:00")})
    kept = make.job(world.database, schedule="0 9 * * *")

    rules, before = Rules("2026f", "UTC"), Rules("2026e", "UTC")
    world.database.write(lambda session: follow_rules(session, rules, before, world.at))

    assert (world.fresh(job).next_run_at, world.fresh(kept).next_run_at) == (at("9:00"), at("9:00"))
    with world.database.read() as session:
        (card,) = cards.listing(session)
    assert card.title == "Time zones have new rules"
    assert "Report" in card.preview


@pytest.mark.parametrize(("kind", "zone", "hour"), [("dismiss", "Europe/Berlin", 8), ("approve", "Asia/Tokyo", 0)])
def test_a_machine_in_another_zone_is_asked_about_once(world: World, kind: str, zone: str, hour: int) -> None:
    job = make.job(world.database, schedule="0 9 * * *", timezone="Europe/Berlin")
    other = make.job(world.database, schedule="0 9 * * *", timezone="UTC")
    here, before = Rules("2026f", "Asia/Tokyo"), Rules("2026f", "Europe/Berlin")
    for _ in range(2):
        world.database.write(lambda session: follow_rules(session, here, before, world.at))
    with world.database.read() as session:
        (card,) = cards.listing(session)
    assert (card.title, card.preview.split(".")[0]) == (
        "This computer is in Asia/Tokyo now",
        "1 job keeps the time of Europe/Berlin",
    )

    world.database.write(lambda session: decide(session, card.id, kind, None))

    moved = world.fresh(job)
    assert (moved.timezone, world.fresh(other).timezone) == (zone, "UTC")
    assert moved.next_run_at is not None
    assert moved.next_run_at.hour == hour
