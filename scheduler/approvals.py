"""Approvals: a slot of a job that asks first waits for the person, and never longer than until the next slot."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from store import cards, events, jobs
from store.cards import APPROVAL, Card
from store.clock import iso
from store.errors import Conflict
from store.jobs import Job
from store.runs import IS_ACTIVE_SQL, Run

LONGEST_WAIT = timedelta(hours=24)


def ask(session: Session, expiries: Mapping[int, datetime], at: datetime) -> None:
    """Posts the card of each run that has just begun to wait.  `expiries`: by job, the time of its next slot."""
    waiting = session.scalars(
        select(Run).where(
            Run.status == "awaitingApproval", Run.approval_expires_at.is_(None), Run.job_id.in_(list(expiries))
        )
    ).all()
    for run in waiting:
        run.approval_expires_at = min(expiries[run.job_id], at + LONGEST_WAIT)
        job = jobs.get(session, run.job_id)
        cards.post(session, _card(job, run))
        events.record(session, "run.awaiting", "engine", job_id=job.id, run_id=run.id)


def _card(job: Job, run: Run) -> Card:
    return Card(
        action_kind=APPROVAL,
        target=f"run:{run.id}",
        job_id=job.id,
        run_id=run.id,
        title=f"Run {job.name}?",
        preview=(job.command or job.prompt or "")[:500],
        payload={
            "jobId": job.id,
            "runId": run.id,
            "command": job.command or job.prompt,
            "slotAt": iso(run.slot_at) if run.slot_at else None,
            "expiresAt": iso(run.approval_expires_at) if run.approval_expires_at else None,
            "jobUpdatedAt": iso(job.updated_at),
        },
    )


def decide(session: Session, card: Card, kind: str, reason: str | None, at: datetime) -> Card:
    """Approves or rejects the run of an approval card.

    Raises Conflict `already_resolved`, `approval_expired`, and `job_changed` when it is another job than was shown.
    """
    run = session.get(Run, card.run_id) if card.run_id else None
    if run is None or run.status != "awaitingApproval" or (run.approval_expires_at or at) < at:
        raise Conflict("This run no longer waits for an answer.", code="approval_expired")
    if kind == "approve" and iso(jobs.get(session, run.job_id).updated_at) != card.payload["jobUpdatedAt"]:
        raise Conflict("The job was changed since this was asked; reject it, and look at the job.", code="job_changed")
    decided = cards.resolve(session, card.id, "approve" if kind == "approve" else "reject", reason)
    if kind == "approve":
        run.status = "pending"
        events.record(session, "run.claimed", "person", job_id=run.job_id, run_id=run.id, reason="approved")
    else:
        run.status, run.skip_reason, run.completed_at = "skipped", "approvalRejected", at
        events.record(session, "run.skipped", "person", job_id=run.job_id, run_id=run.id, reason="approvalRejected")
    return decided


def expired(session: Session, at: datetime) -> Sequence[int]:
    """The runs that have waited long enough."""
    waiting = select(Run.id).where(Run.status == "awaitingApproval", Run.approval_expires_at <= at)
    return session.scalars(waiting).all()


def earliest_expiry(session: Session) -> datetime | None:
    # The plus keeps SQLite at the small index of what is active: by that of the status it reads a long history.
    return session.scalar(
        select(func.min(Run.approval_expires_at)).where(text(IS_ACTIVE_SQL), text("+status = 'awaitingApproval'"))
    )


def expire(session: Session, run_ids: Sequence[int], at: datetime) -> None:
    """Ends their waiting, and closes their cards: a later slot must not wait for an old question."""
    for run_id in run_ids:
        moved = session.execute(
            update(Run)
            .where(Run.id == run_id, Run.status == "awaitingApproval")
            .values(status="skipped", skip_reason="approvalExpired", completed_at=at)
        )
        if moved.rowcount:  # type: ignore[attr-defined]
            run = session.get_one(Run, run_id)
            events.record(session, "run.skipped", "engine", job_id=run.job_id, run_id=run_id, reason="approvalExpired")
            cards.expire(session, APPROVAL, f"run:{run_id}")
