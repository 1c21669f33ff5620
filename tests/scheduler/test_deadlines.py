"""Deadlines: no green run in time after a slot is one card, which a green run closes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from sqlalchemy.orm import Session

from scheduler import deadlines, ends
from scheduler.ends import End
from store import cards
from store.cards import Card
from store.database import Database
from store.jobs import Job
from store.runs import Run

pytestmark = pytest.mark.mission("B12")

SLOT = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
LATE = SLOT + timedelta(hours=1, seconds=1)


def run(database: Database, job: Job, **columns: Any) -> int:
    def change(session: Session) -> int:
        made = Run(**{"job_id": job.id, "status": "failed", "triggered_by": "schedule", "slot_at": SLOT, **columns})
        session.add(made)
        session.flush()
        return made.id

    return database.write(change)


def look(database: Database, at: datetime) -> list[Card]:
    with database.read() as session:
        late = deadlines.find_late(session, at)
    for job_id, run_id in late:
        database.write(lambda session, job_id=job_id, run_id=run_id: deadlines.tell(session, job_id, run_id))  # type: ignore[misc]
    with database.read() as session:
        return list(cards.listing(session))


@pytest.fixture
def job(database: Database) -> Job:
    return make.job(database, name="backup", expectWithinSecs=3_600)


@pytest.mark.parametrize(
    "columns", [{}, {"status": "skipped", "skip_reason": "overlap"}, {"status": "skipped", "skip_reason": "appClosed"}]
)
def test_a_slot_without_a_green_run_in_time_is_told_once(database: Database, job: Job, columns: dict[str, Any]) -> None:
    run(database, job, **columns)
    assert look(database, SLOT + timedelta(minutes=59)) == []

    (card,) = look(database, LATE)

    assert (card.title, card.job_id) == ("backup has no green run", job.id)
    assert "due at 2026-12-01T03:00:00.000Z" in card.preview
    database.write(lambda session: cards.resolve(session, card.id, "dismiss", None))
    assert look(database, LATE + timedelta(hours=9)) == [], "the same slot is told once"


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "completed", "completed_at": SLOT + timedelta(minutes=5)},
        {"status": "skipped", "skip_reason": "paused"},
        {"status": "skipped", "skip_reason": "merged"},
    ],
)
def test_nothing_is_told_of_what_was_green_or_not_expected(
    database: Database, job: Job, columns: dict[str, Any]
) -> None:
    run(database, job, **columns)

    assert look(database, LATE) == []


def test_a_green_run_closes_it(database: Database, job: Job) -> None:
    run(database, job)
    assert len(look(database, LATE)) == 1
    alive = run(database, job, status="running", slot_at=SLOT + timedelta(days=1), started_at=LATE)

    database.write(lambda session: ends.end_runs(session, [End(alive, 1, "completed", LATE)]))

    assert look(database, LATE) == []


def test_a_run_by_a_heal_is_no_green_run(database: Database, job: Job) -> None:
    run(database, job)
    run(database, job, status="completed", slot_at=None, triggered_by="heal", completed_at=LATE)

    assert len(look(database, LATE)) == 1
