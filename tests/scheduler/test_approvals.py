"""Approvals: a slot waits for the person, is run, rejected or expires, and never blocks the next slot."""

from datetime import UTC, datetime, timedelta

import make
import pytest

from scheduler import approvals, claims, jobs
from scheduler.slots import plan
from store import cards, runs
from store import jobs as stored
from store.cards import Card
from store.database import Database
from store.errors import Conflict
from store.jobs import Job
from store.runs import Run

pytestmark = pytest.mark.mission("O14")

SLOT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
LATER = SLOT + timedelta(minutes=5)


def claim(database: Database, at: datetime) -> None:
    with database.read() as session:
        plans = [plan(job, at, at) for job in stored.due(session, at)]
    database.write(lambda session: claims.claim(session, plans, at))


def waiting(database: Database) -> tuple[Job, Run, Card]:
    job = make.job(database, due=SLOT, requireApproval=True, name="pay")
    claim(database, SLOT + timedelta(seconds=1))
    with database.read() as session:
        (run,) = runs.listing(session, job_id=job.id)
        (card,) = cards.listing(session)
    return job, run, card


def decide(database: Database, card: Card, kind: str, at: datetime = LATER) -> Card:
    return database.write(lambda session: approvals.decide(session, cards.get(session, card.id), kind, "because", at))


def fresh(database: Database, run: Run) -> Run:
    with database.read() as session:
        return runs.get(session, run.id)


def test_a_due_slot_waits_and_asks_with_its_time_limit(database: Database) -> None:
    _, run, card = waiting(database)

    assert (run.status, run.approval_expires_at) == ("awaitingApproval", SLOT + timedelta(hours=1))
    assert (card.action_kind, card.title, card.payload["command"]) == ("cron.run_approval", "Run pay?", "true")


def test_an_approved_run_may_start(database: Database) -> None:
    _, run, card = waiting(database)

    assert decide(database, card, "approve").status == "approved"

    assert fresh(database, run).status == "pending"


def test_a_rejected_run_is_skipped_with_its_reason(database: Database) -> None:
    _, run, card = waiting(database)

    decided = decide(database, card, "reject")

    assert (decided.status, decided.reason) == ("rejected", "because")
    skipped = fresh(database, run)
    assert (skipped.status, skipped.skip_reason) == ("skipped", "approvalRejected")


def test_an_answer_counts_once(database: Database) -> None:
    _, run, card = waiting(database)
    decide(database, card, "reject")

    with pytest.raises(Conflict):
        decide(database, card, "approve")

    assert fresh(database, run).status == "skipped"


def test_what_was_changed_since_is_not_approved(database: Database) -> None:
    job, run, card = waiting(database)
    database.write(lambda session: jobs.edit(session, job.id, {"command": "rm everything"}))

    with pytest.raises(Conflict, match="was changed"):
        decide(database, card, "approve")

    assert fresh(database, run).status == "awaitingApproval"


def test_an_unanswered_run_expires_and_the_next_slot_asks_anew(database: Database) -> None:
    job, run, card = waiting(database)
    next_slot = SLOT + timedelta(hours=1)
    with database.read() as session:
        over = approvals.expired(session, next_slot)

    database.write(lambda session: approvals.expire(session, over, next_slot))
    claim(database, next_slot)

    assert (fresh(database, run).status, fresh(database, run).skip_reason) == ("skipped", "approvalExpired")
    with database.read() as session:
        assert cards.get(session, card.id).status == "expired"
        newest = runs.listing(session, job_id=job.id, limit=1)[0]
        assert (newest.status, newest.slot_at) == ("awaitingApproval", next_slot)
        assert len(cards.listing(session)) == 1
    with pytest.raises(Conflict):
        decide(database, card, "approve", next_slot)
