"""Deadlines: a job that has no green run in time after its slot is told, whatever the reason was."""

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from store import cards, jobs
from store.cards import NOTICE, Card
from store.clock import iso, now
from store.database import Database
from store.jobs import Job
from store.runs import Run

EVERY = timedelta(seconds=60)
NOT_EXPECTED = ("paused", "blocked", "merged", "approvalRejected")
"""Slots that nobody waits for."""


class Deadlines:
    """A worker of desktop.loops: looks once a minute."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = now() + EVERY

    def next_at(self) -> datetime | None:
        return self._next

    def step(self) -> bool:
        at = now()
        if at < self._next:
            return False
        self._next = at + EVERY
        with self._database.read() as session:
            late = find_late(session, at)
        if late:
            self._database.write(lambda session: _tell_all(session, late))
        return bool(late)


def find_late(session: Session, at: datetime) -> list[tuple[int, int]]:
    """Job and slot row of every job whose last expected slot has had no green run by its deadline."""
    waiting = session.scalars(select(Job).where(Job.expect_within_secs.is_not(None), jobs.NOT_HELD)).all()
    found = []
    for job in waiting:
        slot = _last_expected(session, job, at - timedelta(seconds=job.expect_within_secs or 0))
        if slot is not None and not _was_green_since(session, job, slot):
            found.append((job.id, slot.id))
    return found


def _last_expected(session: Session, job: Job, until: datetime) -> Run | None:
    return session.scalar(
        select(Run)
        .where(Run.job_id == job.id, Run.retry_of.is_(None), Run.slot_at <= until)
        .where(Run.skip_reason.is_(None) | Run.skip_reason.not_in(NOT_EXPECTED))
        .order_by(Run.slot_at.desc())
        .limit(1)
    )


def _was_green_since(session: Session, job: Job, slot: Run) -> bool:
    green = select(Run.id).where(
        Run.job_id == job.id,
        Run.status == "completed",
        Run.triggered_by != "heal",
        Run.completed_at >= slot.slot_at,
    )
    return session.scalar(green.limit(1)) is not None


def _tell_all(session: Session, late: list[tuple[int, int]]) -> None:
    for job_id, run_id in late:
        tell(session, job_id, run_id)


def tell(session: Session, job_id: int, run_id: int) -> None:
    """One card a missed slot, also when it has been dismissed; a green run closes it."""
    job, slot = jobs.get(session, job_id), session.get_one(Run, run_id)
    target = f"late:{job_id}"
    told = session.scalars(select(Card).where(Card.action_kind == NOTICE, Card.target == target)).all()
    due = iso(slot.slot_at or now())
    if any(card.payload.get("slotAt") == due or card.status == "pending" for card in told):
        return
    cards.post(
        session,
        Card(
            action_kind=NOTICE,
            target=target,
            job_id=job_id,
            run_id=run_id,
            title=f"{job.name} has no green run",
            preview=f"It was due at {due}, and nothing was green within {job.expect_within_secs} s.",
            payload={"jobId": job_id, "slotAt": due},
        ),
    )
