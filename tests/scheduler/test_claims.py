"""Claims: one run a slot, and a reason for each slot that does not run."""

from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest

from scheduler import claims
from scheduler.slots import plan
from store import cards, jobs, runs
from store.database import Database
from store.jobs import Job
from store.runs import Run

SLOT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def claim(database: Database, at: datetime, up_since: datetime | None = None) -> None:
    with database.read() as session:
        plans = [plan(job, at, up_since or at) for job in jobs.due(session, at)]
    database.write(lambda session: claims.claim(session, plans, at))


def rows_of(database: Database, job: Job) -> list[Run]:
    with database.read() as session:
        return list(reversed(runs.listing(session, job_id=job.id)))


@pytest.mark.mission("L3")
def test_a_due_slot_becomes_one_pending_run_and_the_job_moves_on(database: Database) -> None:
    job = make.job(database, due=SLOT)
    claim(database, SLOT + timedelta(seconds=1))
    (run,) = rows_of(database, job)
    assert (run.status, run.slot_at, run.triggered_by) == ("pending", SLOT, "schedule")
    with database.read() as session:
        assert jobs.get(session, job.id).next_run_at == SLOT + timedelta(hours=1)


@pytest.mark.mission("L3")
def test_two_dispatchers_with_the_same_plan_make_one_run(database: Database) -> None:
    job = make.job(database, due=SLOT)
    with database.read() as session:
        plans = [plan(due, SLOT, SLOT) for due in jobs.due(session, SLOT)]
    for _ in range(2):
        database.write(lambda session: claims.claim(session, plans, SLOT))
    assert len(rows_of(database, job)) == 1


@pytest.mark.mission("L3")
def test_a_plan_for_a_job_edited_meanwhile_writes_nothing(database: Database) -> None:
    job = make.job(database, due=SLOT)
    with database.read() as session:
        plans = [plan(due, SLOT, SLOT) for due in jobs.due(session, SLOT)]
    database.write(lambda session: setattr(jobs.get(session, job.id), "updated_at", SLOT + timedelta(seconds=5)))
    database.write(lambda session: claims.claim(session, plans, SLOT))
    assert rows_of(database, job) == []


@pytest.mark.mission("B1")
@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"person_paused_at": SLOT}, "paused"),
        ({"paused_heal_id": 7}, "paused"),
        ({"blocked_reason": "its time zone is gone"}, "blocked"),
        ({"blocked_reason": "its time zone is gone", "person_paused_at": SLOT}, "blocked"),
    ],
)
def test_a_slot_of_a_job_held_still_says_why_it_did_not_run(
    database: Database, columns: dict[str, object], reason: str
) -> None:
    job = make.job(database, due=SLOT, columns=columns)
    claim(database, SLOT)
    (run,) = rows_of(database, job)
    assert (run.status, run.skip_reason) == ("skipped", reason)


@pytest.mark.mission("B1")
@pytest.mark.parametrize(
    ("overlap", "second"),
    [("skip", ("skipped", "overlap")), ("queue", ("pending", None)), ("parallel", ("pending", None))],
)
def test_a_slot_that_meets_an_unfinished_run_follows_the_overlap_rule(
    database: Database, overlap: str, second: tuple[str, str | None]
) -> None:
    job = make.job(database, due=SLOT, overlap=overlap)
    claim(database, SLOT)
    claim(database, SLOT + timedelta(hours=1))
    later = rows_of(database, job)[1]
    assert (later.status, later.skip_reason) == second


@pytest.mark.mission("B2")
@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("once", [("skipped", "merged", 3), ("pending", None, 1)]),
        ("skip", [("skipped", "appClosed", 4)]),
        (
            "all",
            [("pending", None, 1)] * 4,
        ),
    ],
)
def test_slots_missed_while_the_app_was_closed_follow_the_catch_up_rule(
    database: Database, catch_up: str, expected: list[tuple[str, str | None, int]]
) -> None:
    job = make.job(database, due=SLOT, catchUp=catch_up, catchUpMaxAgeSecs=86_400)
    start = SLOT + timedelta(hours=3, minutes=30)
    claim(database, start, up_since=start)
    assert [(run.status, run.skip_reason, run.slots_covered) for run in rows_of(database, job)] == expected


@pytest.mark.mission("B2")
def test_what_was_missed_runs_one_after_another_after_a_moment(database: Database) -> None:
    job = make.job(database, due=SLOT, catchUp="all", catchUpMaxAgeSecs=86_400)
    other = make.job(database, due=SLOT)
    start = SLOT + timedelta(hours=3, minutes=30)

    claim(database, start, up_since=start)

    begins = [run.not_before for made in (job, other) for run in rows_of(database, made) if run.status == "pending"]
    assert begins == [start + timedelta(seconds=5 + number) for number in range(5)]


@pytest.mark.mission("B2")
def test_the_newest_of_all_runs_when_one_is_in_time(database: Database) -> None:
    job = make.job(database, due=SLOT)
    late = SLOT + timedelta(hours=3, seconds=10)

    claim(database, late, up_since=late)

    rows = [(run.slot_at, run.skip_reason, run.slots_covered, run.not_before) for run in rows_of(database, job)]
    assert rows == [(SLOT, "merged", 3, None), (SLOT + timedelta(hours=3), None, 1, None)]


@pytest.mark.mission("B1")
@pytest.mark.parametrize("reason", ["paused", "blocked", "overlap"])
def test_slots_that_are_held_for_long_share_one_row(database: Database, reason: str) -> None:
    held: dict[str, Any] = {
        "paused": {"person_paused_at": SLOT},
        "blocked": {"blocked_reason": "the zone is gone"},
        "overlap": {},
    }
    job = make.job(database, due=SLOT, columns=held[reason])
    if reason == "overlap":
        database.write(lambda session: session.add(Run(job_id=job.id, status="running", triggered_by="manual")))

    for hours in range(4):
        claim(database, SLOT + timedelta(hours=hours, seconds=1))

    rows = [run for run in rows_of(database, job) if run.slot_at]
    assert [(run.slot_at, run.skip_reason, run.slots_covered) for run in rows] == [(SLOT, reason, 4)]


@pytest.mark.mission("B2")
def test_a_long_absence_is_one_calm_card_and_a_short_one_none(database: Database) -> None:
    for name, rule in (("backup", "once"), ("brief", "once"), ("mail", "skip")):
        make.job(database, due=SLOT, name=name, catchUp=rule, catchUpMaxAgeSecs=7_200 if name == "brief" else 864_000)
    make.job(database, due=SLOT, name="paused", columns={"person_paused_at": SLOT})
    back = SLOT + timedelta(days=3, minutes=30)
    database.write(lambda session: setattr(jobs.get(session, 2), "schedule", "0 9 * * *"))

    claim(database, back, up_since=back)
    claim(database, back + timedelta(hours=1), up_since=back)

    with database.read() as session:
        (card,) = cards.listing(session)
    assert card.title == "Jobs were due while Cronmend was away for 3 days"
    assert card.payload["caughtUp"] == 2
    assert card.preview.startswith("2 runs catch up now; 148 missed slots were left out")


@pytest.mark.mission("L5")
def test_the_next_slot_takes_the_place_of_a_retry_that_waits(database: Database) -> None:
    job = make.job(database, due=SLOT, retries=3, retryBackoffSecs=7_200)
    failed = Run(
        job_id=job.id,
        slot_at=SLOT - timedelta(hours=1),
        status="failed",
        triggered_by="schedule",
        error="exit code 1",
        retry_due_at=SLOT + timedelta(hours=1),
    )
    database.write(lambda session: session.add(failed))

    claim(database, SLOT + timedelta(seconds=1))

    first, second = rows_of(database, job)
    assert (first.retry_due_at, first.heal_decision) == (None, "superseded")
    assert first.error == "exit code 1; the next slot came before its retry"
    assert (second.slot_at, second.status) == (SLOT, "pending")
    with database.read() as session:
        assert runs.retries_due(session, SLOT + timedelta(days=1)) == []
        assert runs.undecided(session) == [], "and no heal is opened for it"
