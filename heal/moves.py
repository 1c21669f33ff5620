"""The moves of a heal: pending → spawned → fixed | abandoned, each one conditional update with its event."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from store import cards, events, heals, jobs
from store.cards import ALERT, ESCALATION, NEEDS_YOU
from store.clock import now
from store.heals import OPEN, Heal
from store.jobs import Job
from store.runs import Run
from store.sessions import Conversation

SPAWN_FAILED = "auto-fire-spawn-failed"
APP_RESTART = "app restart invalidated session token"
TTL_EXPIRED = "TTL expired"
FINALIZE_FAILED = "manual-heal-finalize-failed"
NO_RESUME = "session ended without resume"
HUNG = "hung session"
STOPPED_BY_USER = "stopped by user"

_NOT_COUNTED = ("waiting: ", "provider unavailable", "model refused", STOPPED_BY_USER)


@dataclass(frozen=True)
class Spawned:
    """The session and the worker process of a heal; `start` is in raw clock ticks since the boot `boot_id`."""

    session_id: int
    pid: int
    start: int
    boot_id: str


def insert(session: Session, run: Run, job: Job, *, is_manual: bool) -> Heal:
    """A pending heal for the run: from here on no slot of the job starts by itself."""
    heal = Heal(
        job_id=job.id,
        run_id=run.id,
        is_manual=is_manual,
        category=run.category,
        cause=run.cause,
        failures_before=job.consecutive_heal_failures,
    )
    session.add(heal)
    session.flush()
    _tell(session, "heal.opened", heal, reason="by hand" if is_manual else None)
    cards.dismiss_for_job(session, job.id, (ALERT,), "a heal opened")
    return heal


def mark_spawned(session: Session, heal_id: int, worker: Spawned) -> bool:
    """pending → spawned, with the job's pause in the same commit."""
    moved = _move(
        session,
        heal_id,
        ("pending",),
        status="spawned",
        session_id=worker.session_id,
        worker_pid=worker.pid,
        worker_start=worker.start,
        worker_boot_id=worker.boot_id,
        spawned_at=now(),
    )
    if moved:
        heal = heals.get(session, heal_id)
        jobs.get(session, heal.job_id).paused_heal_id = heal_id
        _tell(session, "heal.spawned", heal, session_id=worker.session_id)
    return moved


def mark_gone(session: Session, heal_id: int) -> bool:
    """The worker was let go: from now on it looks and acts."""
    result = session.execute(update(Heal).where(Heal.id == heal_id, Heal.went_at.is_(None)).values(went_at=now()))
    if result.rowcount:  # type: ignore[attr-defined]
        _tell(session, "heal.went", heals.get(session, heal_id))
    return bool(result.rowcount)  # type: ignore[attr-defined]


def request_close(session: Session, heal_id: int, reason: str, actor: str = "heal") -> bool:
    """Step 1 of closing: the first reason wins, and from here on the session's token opens nothing."""
    result = session.execute(
        update(Heal)
        .where(Heal.id == heal_id, Heal.status.in_(OPEN), Heal.closing_reason.is_(None))
        .values(closing_reason=reason)
    )
    if result.rowcount:  # type: ignore[attr-defined]
        heal = heals.get(session, heal_id)
        events.record(
            session,
            "heal.closing",
            actor,
            job_id=heal.job_id,
            run_id=heal.run_id,
            heal_id=heal_id,
            session_id=heal.session_id,
            reason=reason,
        )
    return bool(result.rowcount)  # type: ignore[attr-defined]


def abandon(session: Session, heal_id: int) -> bool:
    """Step 3 of closing: abandoned with the reason of step 1, counter, own pause lifted, session ended."""
    heal = heals.get(session, heal_id)
    reason = heal.closing_reason or NO_RESUME
    counts = not heal.is_manual and not reason.startswith(_NOT_COUNTED)
    moved = _move(
        session,
        heal_id,
        OPEN,
        status="abandoned",
        abandoned_reason=reason,
        counts_as_failure=counts,
        closed_at=now(),
    )
    if not moved:
        return False
    job = jobs.get(session, heal.job_id)
    if counts:
        job.consecutive_heal_failures += 1
    _lift(job, heal_id)
    end_session(session, heal, "failed")
    _tell(session, "heal.abandoned", heal, reason=reason, changes={"failures": job.consecutive_heal_failures})
    return True


def fix(session: Session, heal: Heal, proof: str, root_cause: str | None, fixed_by: str | None) -> bool:
    """spawned → fixed: counter 0, own pause lifted, the job's cards closed, probation on."""
    moved = _move(
        session,
        heal.id,
        ("spawned",),
        status="fixed",
        closed_at=now(),
        proof=proof,
        root_cause=root_cause,
        fix=fixed_by,
        probation="on",
        counts_as_failure=False,
    )
    if not moved:
        return False
    job = jobs.get(session, heal.job_id)
    job.consecutive_heal_failures = 0
    _lift(job, heal.id)
    cards.dismiss_for_job(session, job.id, (ALERT, ESCALATION, NEEDS_YOU), "fixed by a heal")
    _tell(session, "heal.fixed", heal, reason=proof)
    return True


def end_session(session: Session, heal: Heal, status: str) -> None:
    """The heal's conversation is over."""
    if heal.session_id is not None:
        conversation = session.get_one(Conversation, heal.session_id)
        if conversation.status == "running":
            conversation.status, conversation.ended_at = status, now()
            events.record(
                session, "session.ended", "heal", job_id=heal.job_id, session_id=heal.session_id, reason=status
            )


def _lift(job: Job, heal_id: int) -> None:
    if job.paused_heal_id == heal_id:
        job.paused_heal_id = None


def _move(session: Session, heal_id: int, before: tuple[str, ...], **values: Any) -> bool:
    # A heal that is being closed may only be abandoned, never spawned or fixed.
    allowed = [Heal.id == heal_id, Heal.status.in_(before)]
    if values["status"] != "abandoned":
        allowed.append(Heal.closing_reason.is_(None))
    result = session.execute(update(Heal).where(*allowed).values(**values))
    return bool(result.rowcount)  # type: ignore[attr-defined]


def _tell(session: Session, kind: str, heal: Heal, **facts: Any) -> None:
    facts.setdefault("session_id", heal.session_id)
    events.record(session, kind, "heal", job_id=heal.job_id, run_id=heal.run_id, heal_id=heal.id, **facts)
