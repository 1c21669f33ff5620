"""Claims: the durable decision who runs a slot, made before anything starts."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, insert, select, text, update
from sqlalchemy.dialects.sqlite import insert as insert_or_ignore
from sqlalchemy.orm import Session

from scheduler import absence, approvals
from scheduler.approvals import LONGEST_WAIT
from scheduler.cronline import REBOOT
from scheduler.slots import Plan, SlotRow
from store import events, heals, jobs, runs
from store.clock import now
from store.errors import Conflict
from store.jobs import Job
from store.runs import Run

MOST_QUEUED = 100
ENDURING = ("paused", "blocked", "overlap")
SETTLE = timedelta(seconds=5)
"""After a start or a resume the network may not be there yet."""

APART = {"command": timedelta(seconds=1), "session": timedelta(seconds=30)}
"""Between the starts of what was missed: sessions cost money, so that a person can still stop them."""


def claim(session: Session, plans: Sequence[Plan], at: datetime, present: Sequence[Job] | None = None) -> int:
    """Writes the rows of all plans whose job is unchanged, and moves each job to its next slot.

    `present`: the jobs as this transaction sees them, when it has read them already.  Returns how many rows were
    written.  A slot that another claim took first keeps its first row.
    """
    due = {job.id: job for job in (jobs.due(session, at) if present is None else present)}
    current = [plan for plan in plans if _is_unchanged(plan, due.get(plan.job_id))]
    busy = runs.jobs_with_active(session, [plan.job_id for plan in current])
    healing = heals.jobs_with_open(session)
    moment = _Present(healing, busy, _Pace(at), at)
    rows = [row for plan in current for row in _rows(session, plan, due[plan.job_id], moment)]
    if rows:
        session.connection().execute(insert_or_ignore(Run).on_conflict_do_nothing(), rows)
        _record(session, rows)
        _drop_retries(session, {row["job_id"] for row in rows if row["status"] == "pending"})
    absence.tell(session, current, rows, at)
    asking = {
        plan.job_id: plan.next_run_at or at + LONGEST_WAIT for plan in current if due[plan.job_id].require_approval
    }
    if asking:
        approvals.ask(session, asking, at)
    _advance(session, current)
    return len(rows)


def _is_unchanged(plan: Plan, job: Job | None) -> bool:
    return job is not None and (job.next_run_at, job.updated_at) == (plan.seen_next_run_at, plan.seen_updated_at)


def _drop_retries(session: Session, job_ids: set[int]) -> None:
    """The next slot is the better retry: one that still waits is dropped, and its run is not healed either."""
    waiting = text("retry_due_at IS NOT NULL AND retry_run_id IS NULL")
    for run in session.scalars(select(Run).where(waiting)):
        if run.job_id in job_ids:
            run.retry_due_at, run.heal_decision = None, "superseded"
            run.error = f"{run.error or run.status}; the next slot came before its retry"
            told = {"job_id": run.job_id, "run_id": run.id, "reason": "the next slot"}
            events.record(session, "run.retry_dropped", "engine", **told)


class _Pace:
    """When what was missed begins: after a moment for network and disks, and one after another."""

    def __init__(self, at: datetime) -> None:
        self._next = {"command": at + SETTLE, "session": at + SETTLE}

    def take(self, target_type: str) -> datetime:
        kind = "session" if target_type == "session" else "command"
        begins = self._next[kind]
        self._next[kind] = begins + APART[kind]
        return begins


@dataclass(frozen=True)
class _Present:
    """What holds at the moment of the claim: jobs with an open heal, jobs with a live run."""

    healing: set[int]
    busy: set[int]
    pace: _Pace
    at: datetime


def _rows(session: Session, plan: Plan, job: Job, present: _Present) -> list[dict[str, Any]]:
    held = _hold(job, present.healing)
    slots = plan.rows
    if held is not None:
        slots = (SlotRow(slots[0].slot_at, skip_reason=held, slots_covered=sum(slot.slots_covered for slot in slots)),)
    rows = [_row(session, plan, job, slot, present) for slot in slots]
    # A job that is held for long, or whose run is long, has one row for all of it.
    return rows[1:] if rows[0]["skip_reason"] in ENDURING and _extend_last(session, rows[0], present.at) else rows


def _hold(job: Job, healing: set[int]) -> str | None:
    """Why no slot of this job runs at present, if that is so."""
    if job.blocked_reason:
        return "blocked"
    return "paused" if job.id in healing or not job.is_active else None


def _row(session: Session, plan: Plan, job: Job, slot: SlotRow, present: _Present) -> dict[str, Any]:
    reason = slot.skip_reason or _overlap(session, plan, present.busy)
    is_catch_up = slot.triggered_by == "catch_up"
    begins = present.pace.take(job.target_type) if is_catch_up and not reason else None
    return {
        "job_id": plan.job_id,
        "slot_at": slot.slot_at,
        "slots_covered": slot.slots_covered,
        "status": "skipped" if reason else "awaitingApproval" if job.require_approval else "pending",
        "skip_reason": reason,
        "triggered_by": slot.triggered_by,
        "claimed_at": present.at,
        "not_before": None if reason else begins or _jittered(plan, present.at),
        "completed_at": present.at if reason else None,
    }


def _extend_last(session: Session, row: dict[str, Any], at: datetime) -> bool:
    """Adds the slots to the job's newest row when that says the same."""
    last = session.scalar(
        select(Run)
        .where(Run.job_id == row["job_id"], Run.slot_at.is_not(None), Run.retry_of.is_(None))
        .order_by(Run.id.desc())
        .limit(1)
    )
    if last is None or (last.status, last.skip_reason) != ("skipped", row["skip_reason"]):
        return False
    last.slots_covered += row["slots_covered"]
    last.completed_at = at
    return True


def _overlap(session: Session, plan: Plan, busy: set[int]) -> str | None:
    if plan.job_id not in busy or plan.overlap in ("parallel", "replace"):
        return None
    if plan.overlap == "queue" and len(runs.active_of(session, plan.job_id)) < MOST_QUEUED:
        return None
    return "overlap"


def _jittered(plan: Plan, at: datetime) -> datetime | None:
    if not plan.jitter_secs:
        return None
    return at + timedelta(milliseconds=random.randint(1, plan.jitter_secs * 1_000))  # noqa: S311 - spread, not secrecy


def _advance(session: Session, plans: Sequence[Plan]) -> None:
    if plans:
        table = Job.__table__
        statement = (
            update(table)  # type: ignore[arg-type]
            .where(table.c.id == bindparam("job"), table.c.next_run_at == bindparam("seen"))
            .values(next_run_at=bindparam("following"))
        )
        session.connection().execute(
            statement,
            [{"job": plan.job_id, "seen": plan.seen_next_run_at, "following": plan.next_run_at} for plan in plans],
        )


def _record(session: Session, rows: list[dict[str, Any]]) -> None:
    claimed = [{"job_id": row["job_id"]} for row in rows if row["status"] == "pending"]
    skipped = [{"job_id": row["job_id"], "reason": row["skip_reason"]} for row in rows if row["status"] == "skipped"]
    events.record_all(session, "run.claimed", "engine", claimed)
    events.record_all(session, "run.skipped", "engine", skipped)


def claim_reboot(session: Session, at: datetime) -> int:
    """A run of every active job that runs at a start of the machine; how many there are."""
    waiting = session.scalars(select(Job).where(Job.schedule == REBOOT, jobs.NOT_HELD)).all()
    pace = _Pace(at)
    plans = [Plan(job.id, at, job.updated_at, (SlotRow(at),), None, job.jitter_secs, job.overlap) for job in waiting]
    present = _Present(heals.jobs_with_open(session), set(), pace, at)
    rows = [row for plan, job in zip(plans, waiting, strict=True) for row in _rows(session, plan, job, present)]
    for row in rows:
        row["not_before"] = row["not_before"] or (at + SETTLE if row["skip_reason"] is None else None)
    if rows:
        session.connection().execute(insert(Run), rows)
        _record(session, rows)
    return len(rows)


def claim_retry(session: Session, source_id: int, at: datetime) -> int | None:
    """The child run of a failed run whose retry is due; None when there is one already, or the job may not run."""
    source = runs.get(session, source_id)
    if source.retry_due_at is None or source.retry_run_id is not None:
        return None
    job = jobs.get(session, source.job_id)
    if not job.is_active or heals.open_for(session, job.id) or runs.active_of(session, job.id):
        return None
    child = Run(
        job_id=job.id,
        slot_at=source.slot_at,
        status="pending",
        triggered_by="retry",
        attempt=source.attempt + 1,
        retry_of=source.id,
        root_run_id=source.root_run_id or source.id,
        retry_number=source.retry_number + 1,
        claimed_at=at,
    )
    session.add(child)
    session.flush()
    source.retry_run_id = child.id
    events.record(session, "run.claimed", "engine", job_id=job.id, run_id=child.id, reason=f"retry of {source.id}")
    return child.id


def claim_by_hand(
    session: Session, job_id: int, triggered_by: str, *, heal_id: int | None = None, context: str | None = None
) -> int:
    """A run that uses no slot: asked for by a person, a wake or a heal.  Works on a paused job, leaves the pause.

    Raises NotFound; Conflict when a heal asks while another run of the job is alive.
    """
    job = jobs.get(session, job_id)
    if triggered_by == "heal" and runs.active_of(session, job_id):
        raise Conflict("Another run of this job has not ended yet; try again when it has.", code="already_running")
    result = session.execute(
        insert(Run).values(
            job_id=job.id,
            status="pending",
            triggered_by=triggered_by,
            heal_id=heal_id,
            wake_context=context,
            claimed_at=now(),
        )
    )
    run_id: int = result.inserted_primary_key[0]  # type: ignore[attr-defined]
    actor = "heal" if triggered_by == "heal" else "person"
    events.record(session, "run.claimed", actor, job_id=job.id, run_id=run_id, heal_id=heal_id, reason=triggered_by)
    return run_id
