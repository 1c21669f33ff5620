"""The terminalizer: the first end of a run wins, and carries everything that follows from it."""

from datetime import UTC, datetime, timedelta

import make
import pytest
from sqlalchemy.orm import Session

from scheduler import claims, ends
from scheduler.ends import End, Examined
from store import cards, events, jobs, runs
from store.cards import ALERT, Card
from store.database import Database
from store.heals import Heal
from store.jobs import Job
from store.runs import Run

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
EVIDENCE = Examined({"hits": ["ENOENT"]}, "missing-file", "missing file: in.csv")


def running(database: Database, job: Job, triggered_by: str = "schedule") -> Run:
    def change(session: Session) -> Run:
        run = Run(job_id=job.id, status="running", triggered_by=triggered_by, started_at=AT)
        session.add(run)
        session.flush()
        return run

    return database.write(change)


def end(
    database: Database, run: Run, status: str, examined: Examined | None = None, exit_code: int | None = None
) -> list[int]:
    over = End(run.id, run.attempt, status, AT + timedelta(seconds=2), exit_code=exit_code, examined=examined)
    return database.write(lambda session: ends.end_runs(session, [over]))


def fresh(database: Database, run: Run) -> Run:
    with database.read() as session:
        return runs.get(session, run.id)


@pytest.mark.mission("L4")
def test_the_first_end_wins_and_a_later_one_is_only_recorded(database: Database) -> None:
    run = running(database, make.job(database))
    end(database, run, "aborted")
    assert end(database, run, "completed") == []
    assert fresh(database, run).status == "aborted"
    with database.read() as session:
        assert [event.kind for event in events.of_run(session, run.id)] == ["run.aborted", "run.late"]


@pytest.mark.mission("L4")
def test_an_end_of_another_attempt_changes_nothing(database: Database) -> None:
    run = running(database, make.job(database))
    stale = End(run.id, run.attempt + 1, "failed", AT)
    assert database.write(lambda session: ends.end_runs(session, [stale])) == []
    assert fresh(database, run).status == "running"


@pytest.mark.mission("O2")
def test_a_failure_and_its_evidence_are_one_write(database: Database) -> None:
    run = running(database, make.job(database))
    end(database, run, "failed", EVIDENCE)
    after = fresh(database, run)
    assert (after.category, after.cause, after.failure_evidence_json) == (
        "missing-file",
        "missing file: in.csv",
        {"hits": ["ENOENT"]},
    )
    assert (after.heal_decision, after.duration_ms) == (None, 2_000)


@pytest.mark.mission("L5")
def test_a_failed_scheduled_run_carries_its_retry_and_has_one_child(database: Database) -> None:
    job = make.job(database, retries=1, retryBackoffSecs=30)
    run = running(database, job)
    end(database, run, "failed", EVIDENCE)
    due = AT + timedelta(seconds=32)
    assert fresh(database, run).retry_due_at == due
    children = [database.write(lambda session: claims.claim_retry(session, run.id, due)) for _ in range(2)]
    assert children[0] is not None
    assert children[1] is None
    child = fresh(database, Run(id=children[0]))
    assert (child.retry_of, child.root_run_id, child.attempt, child.triggered_by) == (run.id, run.id, 2, "retry")


@pytest.mark.mission("L5")
@pytest.mark.parametrize("triggered_by", ["manual", "wake", "heal"])
def test_a_run_by_hand_is_final_at_once(database: Database, triggered_by: str) -> None:
    run = running(database, make.job(database, retries=3), triggered_by)
    end(database, run, "failed", EVIDENCE)
    assert fresh(database, run).retry_due_at is None


@pytest.mark.mission("O12")
@pytest.mark.parametrize(("triggered_by", "cleared"), [("schedule", True), ("manual", True), ("heal", False)])
def test_a_green_run_clears_counter_and_cards_in_its_own_commit(
    database: Database, triggered_by: str, cleared: bool
) -> None:
    job = make.job(database, columns={"consecutive_heal_failures": 3})
    card = Card(
        action_kind=ALERT,
        target=f"job:{job.id}",
        job_id=job.id,
        title="t",
        preview="p",
        payload={"jobId": 1, "runId": 1, "attempts": 1, "lastLines": "", "decision": None},
    )
    database.write(lambda session: cards.post(session, card))
    end(database, running(database, job, triggered_by), "completed")
    with database.read() as session:
        left = cards.listing(session)
        counter = jobs.get(session, job.id).consecutive_heal_failures
    assert (counter, len(left)) == ((0, 0) if cleared else (3, 1))


@pytest.mark.mission("B6")
def test_two_green_scheduled_runs_confirm_a_fix_on_probation(database: Database) -> None:
    job = make.job(database)
    database.write(lambda session: session.add(Heal(job_id=job.id, run_id=900, status="fixed", probation="on")))
    seen = []
    for _ in range(2):
        end(database, running(database, job), "completed")
        with database.read() as session:
            seen.append(session.get_one(Heal, 1).probation)
    assert seen == ["on", "confirmed"]


@pytest.mark.mission("O12")
def test_ends_of_several_jobs_in_one_group_touch_only_their_own(database: Database) -> None:
    green, red = (make.job(database, columns={"consecutive_heal_failures": 2}) for _ in range(2))
    over = [
        End(running(database, green).id, 1, "completed", AT),
        End(running(database, red).id, 1, "failed", AT, examined=EVIDENCE),
    ]
    database.write(lambda session: ends.end_runs(session, over))
    with database.read() as session:
        counters = [jobs.get(session, job.id).consecutive_heal_failures for job in (green, red)]
    assert counters == [0, 2]


@pytest.mark.mission("L5")
@pytest.mark.parametrize(
    ("status", "code", "is_retried"),
    [("failed", 75, True), ("failed", 1, False), ("failed", None, False), ("timeout", None, False)],
)
def test_a_job_may_name_the_exit_codes_that_are_worth_another_try(
    database: Database, status: str, code: int | None, is_retried: bool
) -> None:
    run = running(database, make.job(database, retries=3, retryOn=[75, 111]))

    end(database, run, status, exit_code=code)

    assert (fresh(database, run).retry_due_at is not None) is is_retried
