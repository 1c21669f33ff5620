"""At start and every minute: nothing stays paused by a heal that is over."""

from datetime import timedelta

import make
import pytest
from sqlalchemy.orm import Session

from heal import moves, reconciler
from heal.moves import Spawned
from heal.reconciler import StrayWatch
from store import cards, heals, jobs, projects
from store.cards import Card
from store.clock import now
from store.database import Database
from store.runs import Run
from store.sessions import Conversation

pytestmark = pytest.mark.mission("O9")


def open_heal(database: Database, *, spawned: bool, age: timedelta = timedelta()) -> tuple[int, int]:
    """A heal, pending or spawned; its id and its job's."""
    job = make.job(database)

    def change(session: Session) -> tuple[int, int]:
        run = Run(job_id=job.id, status="failed", triggered_by="schedule", heal_decision="healed")
        session.add(run)
        session.flush()
        heal = moves.insert(session, run, jobs.get(session, job.id), is_manual=False)
        heal.created_at = now() - age
        if spawned:
            project = projects.add(session, database.path.parent)
            conversation = Conversation(project_id=project.id, origin="heal", title="t")
            session.add(conversation)
            session.flush()
            moves.mark_spawned(session, heal.id, Spawned(conversation.id, 1, 1, "an earlier boot"))
        return heal.id, job.id

    return database.write(change)


def closing_reason(database: Database, heal_id: int) -> str | None:
    with database.read() as session:
        return heals.get(session, heal_id).closing_reason


def test_a_spawned_heal_of_the_last_start_is_closed(database: Database) -> None:
    heal_id, _ = open_heal(database, spawned=True)

    reconciler.reconcile(database)

    assert closing_reason(database, heal_id) == "app restart invalidated session token"


@pytest.mark.parametrize(("days", "reason"), [(6, None), (8, "TTL expired")])
def test_a_pending_heal_is_spawned_again_unless_it_is_too_old(
    database: Database, days: int, reason: str | None
) -> None:
    heal_id, _ = open_heal(database, spawned=False, age=timedelta(days=days))

    reconciler.reconcile(database)

    assert closing_reason(database, heal_id) == reason


def test_a_closing_that_was_cut_short_keeps_its_reason(database: Database) -> None:
    heal_id, _ = open_heal(database, spawned=True)
    database.write(lambda session: moves.request_close(session, heal_id, moves.HUNG))

    reconciler.reconcile(database)

    assert closing_reason(database, heal_id) == "hung session"


def test_a_pause_without_a_heal_is_lifted_and_told(database: Database) -> None:
    heal_id, job_id = open_heal(database, spawned=True)
    database.write(lambda session: setattr(heals.get(session, heal_id), "status", "abandoned"))
    watch = StrayWatch(database)

    assert watch.step()

    with database.read() as session:
        assert jobs.get(session, job_id).is_active
    assert not watch.step()


def test_a_living_heals_pause_stays(database: Database) -> None:
    _, job_id = open_heal(database, spawned=True)

    StrayWatch(database).step()

    with database.read() as session:
        assert not jobs.get(session, job_id).is_active


@pytest.mark.mission("O13")
def test_legacy_requests_are_drained_once_and_escalations_left_alone(database: Database) -> None:
    heal_id, _ = open_heal(database, spawned=False)
    payloads = {"heal:1": {"healAttemptId": heal_id}, "job:1": {"escalation": True, "jobId": 1}}

    def plant(session: Session) -> None:
        for target, payload in payloads.items():
            card = Card(action_kind="cron.failure_heal", target=target, title="t", preview="p", payload=payload)
            session.add(card)

    database.write(plant)

    for _ in range(2):
        reconciler.reconcile(database)

    with database.read() as session:
        legacy, escalation = reversed(cards.listing(session, status=None))
        assert (legacy.status, legacy.dispatched_at is not None) == ("approved", True)
        assert escalation.status == "pending"
        assert heals.get(session, heal_id).status == "pending", "the medic spawns it"
