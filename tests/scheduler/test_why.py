"""Why a job ran or did not at a moment: the ledger first, the schedule where the ledger has nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from sqlalchemy.orm import Session

from scheduler import claims
from scheduler.slots import plan
from scheduler.why import Answer, explain
from store import jobs
from store.clock import now
from store.database import Database
from store.jobs import Job
from store.runs import Run

pytestmark = pytest.mark.mission("B1")

SLOT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def ask(database: Database, job: Job, at: datetime) -> Answer:
    with database.read() as session:
        return explain(session, jobs.get(session, job.id), at)


def at_nine(database: Database, **columns: Any) -> Job:
    made = {"created_at": datetime(2026, 1, 1, tzinfo=UTC), **columns}
    return make.job(database, due=SLOT, schedule="0 9 * * *", columns=made)


def claim(database: Database, at: datetime, up_since: datetime | None = None) -> None:
    with database.read() as session:
        plans = [plan(job, at, up_since or at) for job in jobs.due(session, at)]
    database.write(lambda session: claims.claim(session, plans, at))


def test_a_slot_that_ran_names_its_run_and_how_late_it_was(database: Database) -> None:
    job = at_nine(database)
    claim(database, SLOT)

    def end(session: Session) -> None:
        run = session.get_one(Run, 1)
        run.status, run.started_at = "completed", SLOT + timedelta(seconds=7)

    database.write(end)

    assert ask(database, job, SLOT + timedelta(seconds=30)) == Answer(
        SLOT, "ran", "It ran, 7 s later: run 1, completed.", 1
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"person_paused_at": SLOT}, "It did not run: the job was paused."),
        ({"blocked_reason": "the zone is gone"}, "It did not run: the job was blocked."),
    ],
)
def test_each_slot_of_a_long_pause_is_answered(database: Database, columns: dict[str, Any], said: str) -> None:
    job = at_nine(database, **columns)
    for days in range(3):
        claim(database, SLOT + timedelta(days=days, seconds=1))

    answers = [ask(database, job, SLOT + timedelta(days=days)) for days in range(3)]

    assert [(answer.kind, answer.sentence, answer.run_id) for answer in answers] == [("skipped", said, 1)] * 3


@pytest.mark.parametrize(
    ("catch_up", "said"),
    [
        ("once", "It did not run: it was missed, and merged into a later run of the job."),
        ("skip", "It did not run: Cronmend was closed, and the job does not catch up."),
    ],
)
def test_what_was_missed_says_what_became_of_it(database: Database, catch_up: str, said: str) -> None:
    job = at_nine(database, catch_up=catch_up)
    back = SLOT + timedelta(days=2, minutes=10)
    claim(database, back, up_since=back)

    assert [ask(database, job, SLOT + timedelta(days=days)).sentence for days in range(2)] == [said, said]


@pytest.mark.parametrize(
    ("line", "at", "said"),
    [
        ("0 9 * * *", "2026-12-01T10:00", "does not match hour 9"),
        ("30 9 * * 1-5", "2026-12-05T09:00", "does not match minute 30, day of week 1-5"),
        ("0 9 13 * 5", "2026-12-02T09:00", "does not match day of month 13 or day of week 5"),
        ("0 9 1 1 *", "2026-12-02T09:00", "does not match month 1, day of month 1"),
    ],
)
def test_what_is_no_time_of_the_job_says_which_field_is_against_it(
    database: Database, line: str, at: str, said: str
) -> None:
    job = make.job(database, schedule=line, columns={"created_at": datetime(2026, 1, 1, tzinfo=UTC)})

    answer = ask(database, job, datetime.fromisoformat(at).replace(tzinfo=UTC))

    assert answer.kind == "notASlot"
    assert said in answer.sentence
    assert "The next time after it is" in answer.sentence


def test_a_time_that_the_clocks_skip_is_explained(database: Database) -> None:
    made = {"created_at": datetime(2026, 1, 1, tzinfo=UTC)}
    job = make.job(database, schedule="*/30 2 * * *", timezone="America/New_York", columns=made)

    answer = ask(database, job, datetime(2026, 11, 1, 6, 15, tzinfo=UTC))

    assert "does not match minute */30, hour 2" in answer.sentence


def test_the_future_and_the_time_before_the_job(database: Database) -> None:
    job = make.job(database, schedule="* * * * *")
    soon = now() + timedelta(hours=1)

    assert ask(database, job, soon).sentence == "It will run then."
    assert ask(database, job, now() - timedelta(days=1)).sentence == "The job did not exist yet."
    database.write(lambda session: setattr(jobs.get(session, job.id), "person_paused_at", now()))
    assert ask(database, job, soon).sentence == "It is due then, but will not run as it is: you paused the job."


def test_a_run_by_hand_is_found_by_its_start(database: Database) -> None:
    job = at_nine(database)
    at = datetime(2026, 11, 3, 14, 20, 30, tzinfo=UTC)
    run = Run(job_id=job.id, status="completed", triggered_by="manual", started_at=at)
    database.write(lambda session: session.add(run))

    assert ask(database, job, at).sentence == "Run 1 was started then (manual)."
