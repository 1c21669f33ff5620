"""Decisions on final failures: the guards in their order, the cards that follow, probation and its counter."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from heal import medic, moves
from heal.guards import Rules
from scheduler import ends
from scheduler.ends import End, Examined
from store import cards, heals, jobs, runs
from store.cards import ALERT, ESCALATION, Card
from store.database import Database
from store.heals import Heal
from store.jobs import Job
from store.runs import Run

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
RULES = Rules("auto", most_automatic=3)
BROKE = Examined({"hits": [], "stderrTail": "boom", "stdoutTail": ""}, "script-error", "it broke")


def fail(database: Database, job: Job, *, examined: Examined | None = BROKE, **columns: Any) -> int:
    """A failed run of the job; its id."""

    def change(session: Session) -> int:
        run = Run(**{"job_id": job.id, "status": "running", "triggered_by": "schedule", "started_at": AT, **columns})
        session.add(run)
        session.flush()
        marked = bool(columns.get("system_marked_failure"))
        over = End(run.id, 1, "failed", AT + timedelta(seconds=1), examined=examined, system_marked=marked)
        ends.end_runs(session, [over])
        return run.id

    return database.write(change)


def decide(database: Database, run_id: int, rules: Rules = RULES) -> str | None:
    return database.write(lambda session: medic.decide(session, run_id, rules))[1]


def open_cards(database: Database) -> list[Card]:
    with database.read() as session:
        return list(cards.listing(session))


def open_heals(database: Database) -> list[Heal]:
    with database.read() as session:
        return list(heals.all_open(session))


def give_up(database: Database, reason: str = "gave up: no idea") -> Heal:
    """The only open heal is abandoned."""
    (heal,) = open_heals(database)
    database.write(lambda session: moves.request_close(session, heal.id, reason))
    database.write(lambda session: moves.abandon(session, heal.id))
    return heal


@pytest.mark.mission("O3", "O4")
def test_a_final_failure_opens_a_heal_and_no_alert(database: Database) -> None:
    run = fail(database, make.job(database))

    assert decide(database, run) == "healed"

    (heal,) = open_heals(database)
    assert (heal.run_id, heal.status, heal.is_manual, heal.cause) == (run, "pending", False, "it broke")
    assert open_cards(database) == []


GUARDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "guard:healing_off": ({"healing_enabled": False}, {}),
    "guard:session_job": ({"target_type": "session"}, {}),
    "guard:one_off": ({"run_mode": "one_off"}, {"triggered_by": "manual"}),
    "guard:cap": ({"consecutive_heal_failures": 3}, {}),
    "heal_run": ({}, {"triggered_by": "heal"}),
}


@pytest.mark.mission("O3")
@pytest.mark.parametrize("decision", GUARDS)
def test_a_guard_that_hits_is_the_decision_and_opens_nothing(database: Database, decision: str) -> None:
    columns, of_run = GUARDS[decision]
    run = fail(database, make.job(database, columns=columns), **of_run)

    assert decide(database, run) == decision

    with database.read() as session:
        assert runs.get(session, run).heal_decision == decision
    assert open_heals(database) == []


OF_JOB: dict[str, dict[str, Any]] = {
    "guard:healing_off": {"healing_enabled": False},
    "guard:session_job": {"target_type": "session"},
    "guard:one_off": {"run_mode": "one_off"},
    "guard:cap": {"consecutive_heal_failures": 3},
}
ORDER = (
    "guard:healing_off",
    "guard:session_job",
    "guard:system_marked",
    "guard:one_off",
    "guard:cap",
    "guard:open_heal",
    "guard:fleet_cap",
)


@pytest.mark.mission("O3")
@pytest.mark.parametrize(("first", "second"), tuple(itertools.combinations(ORDER, 2)))
def test_the_guard_that_comes_first_is_the_decision(database: Database, first: str, second: str) -> None:
    both = (first, second)
    job = make.job(database)
    if "guard:open_heal" in both:
        decide(database, fail(database, job))
    for _ in range(3 if "guard:fleet_cap" in both else 0):
        decide(database, fail(database, make.job(database)), Rules("auto", most_automatic=9))
    columns = {**OF_JOB.get(first, {}), **OF_JOB.get(second, {})}
    change = update(Job).where(Job.id == job.id).values({"name": "both", **columns})
    database.write(lambda session: session.execute(change))
    marked: dict[str, Any] = {"examined": None, "system_marked_failure": True} if "guard:system_marked" in both else {}
    run = fail(database, job, triggered_by="schedule", **marked)

    assert decide(database, run) == first


@pytest.mark.mission("O3")
def test_a_system_marked_failure_heals_only_with_evidence(database: Database) -> None:
    job = make.job(database)
    without = fail(database, job, examined=None, system_marked_failure=True)
    assert decide(database, without) == "guard:system_marked"

    with_evidence = fail(database, job, system_marked_failure=True)

    assert decide(database, with_evidence) == "healed"


@pytest.mark.mission("O3")
def test_one_heal_a_job_and_three_over_all(database: Database) -> None:
    first = make.job(database)
    decide(database, fail(database, first))
    assert decide(database, fail(database, first)) == "guard:open_heal"
    for _ in range(2):
        assert decide(database, fail(database, make.job(database))) == "healed"
    last = make.job(database)

    assert decide(database, fail(database, last)) == "guard:fleet_cap"

    (heal, *_) = open_heals(database)
    database.write(lambda session: moves.request_close(session, heal.id, moves.HUNG))
    database.write(lambda session: moves.abandon(session, heal.id))
    assert decide(database, fail(database, last)) == "healed", "deferred: tried again at its next failed run"


@pytest.mark.mission("O3")
def test_other_reasons_not_to_heal(database: Database) -> None:
    job = make.job(database)
    old = fail(database, job)
    newer = fail(database, job)

    assert decide(database, old) == "superseded"
    assert decide(database, newer, Rules("off", 3)) == "healer_off"
    assert decide(database, fail(database, job), Rules("auto", 3, is_secondary=True)) == "secondary"
    assert decide(database, newer) is None, "a decision is made once"


@pytest.mark.mission("O11")
def test_a_failure_that_nobody_heals_posts_one_alert(database: Database) -> None:
    job = make.job(database, columns={"healing_enabled": False, "name": "backup"})

    for _ in range(2):
        decide(database, fail(database, job))

    (card,) = open_cards(database)
    assert (card.action_kind, card.title, card.preview) == (ALERT, "backup failed", "it broke")
    assert card.payload["lastLines"] == "boom"


@pytest.mark.mission("O11")
def test_an_opening_heal_dismisses_the_alert(database: Database) -> None:
    job = make.job(database, columns={"healing_enabled": False})
    decide(database, fail(database, job))
    database.write(lambda session: setattr(jobs.get(session, job.id), "healing_enabled", True))

    assert decide(database, fail(database, job)) == "healed"

    assert open_cards(database) == []


@pytest.mark.mission("O10")
def test_three_failed_heals_in_a_row_post_one_escalation(database: Database) -> None:
    job = make.job(database, columns={"name": "backup"})
    for _ in range(3):
        assert decide(database, fail(database, job)) == "healed"
        give_up(database)
    assert open_cards(database) == [], "not at the third abandon"

    for _ in range(2):
        assert decide(database, fail(database, job)) == "guard:cap"

    (card,) = open_cards(database)
    assert (card.action_kind, card.title) == (ESCALATION, "backup needs human attention")
    assert card.preview == "3 failed self-heals — last category: script-error"
    assert card.payload == {"escalation": True, "jobId": job.id}


@pytest.mark.mission("O12")
def test_a_green_run_clears_counter_and_cards(database: Database) -> None:
    job = make.job(database, columns={"consecutive_heal_failures": 3})
    decide(database, fail(database, job))

    succeed(database, job)

    with database.read() as session:
        assert jobs.get(session, job.id).consecutive_heal_failures == 0
    assert open_cards(database) == []


REASONS = {
    "gave up: no": True,
    "hung session": True,
    "app restart invalidated session token": True,
    "auto-fire-spawn-failed": True,
    "TTL expired": True,
    "session ended without resume": True,
    "budget exhausted": True,
    "no progress": True,
    "needs you: a key": True,
    "waiting: rain": False,
    "provider unavailable": False,
    "model refused": False,
    "stopped by user": False,
}


@pytest.mark.mission("O7")
@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_counts_as_it_should(database: Database, reason: str) -> None:
    job = make.job(database)
    decide(database, fail(database, job))

    heal = give_up(database, reason)

    with database.read() as session:
        after = jobs.get(session, job.id)
        closed = heals.get(session, heal.id)
    assert (closed.status, closed.abandoned_reason, closed.counts_as_failure) == ("abandoned", reason, REASONS[reason])
    assert (after.consecutive_heal_failures, after.is_active) == (int(REASONS[reason]), True)


def fixed(database: Database, job: Job) -> int:
    """A heal of the job that was fixed just now; its id."""
    decide(database, fail(database, job))
    (heal,) = open_heals(database)

    def change(session: Session) -> None:
        row = heals.get(session, heal.id)
        row.status = "spawned"
        session.flush()
        moves.fix(session, row, "run", "cause", "fix")
        row.closed_at = AT - timedelta(minutes=1)

    database.write(change)
    return heal.id


def succeed(database: Database, job: Job) -> None:
    def change(session: Session) -> None:
        run = Run(job_id=job.id, status="running", triggered_by="schedule", started_at=AT)
        session.add(run)
        session.flush()
        ends.end_runs(session, [End(run.id, 1, "completed", AT + timedelta(seconds=1))])

    database.write(change)


@pytest.mark.mission("B6")
def test_two_green_runs_confirm_a_fix(database: Database) -> None:
    job = make.job(database)
    heal_id = fixed(database, job)

    succeed(database, job)
    with database.read() as session:
        assert heals.get(session, heal_id).probation == "on"
    succeed(database, job)

    with database.read() as session:
        assert heals.get(session, heal_id).probation == "confirmed"


@pytest.mark.mission("B6")
def test_the_same_failure_ends_probation_and_counts_on_from_before_the_fix(database: Database) -> None:
    job = make.job(database, columns={"consecutive_heal_failures": 1})
    heal_id = fixed(database, job)

    assert decide(database, fail(database, job)) == "healed"

    with database.read() as session:
        assert heals.get(session, heal_id).probation == "failed"
        assert jobs.get(session, job.id).consecutive_heal_failures == 2


@pytest.mark.mission("B6")
def test_another_failure_leaves_probation_on(database: Database) -> None:
    job = make.job(database)
    heal_id = fixed(database, job)

    decide(database, fail(database, job, examined=Examined({"hits": []}, "network", "connection refused: db:5432")))

    with database.read() as session:
        assert heals.get(session, heal_id).probation == "on"
