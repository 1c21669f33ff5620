"""What a run that has not started yet waits for."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from store import runs, settings
from store.jobs import Job
from store.runs import LIVE, Run


def why_waiting(session: Session, run: Run, job: Job, environment: Mapping[str, str], at: datetime) -> str | None:
    """In words, as the end of a sentence; None when it starts in a moment."""
    if run.status != "pending":
        return None
    if run.not_before is not None and run.not_before > at:
        return "for its turn: it starts a little after its time on purpose"
    limits = settings.read(session, environment)
    alive = [other for other in runs.all_active(session) if other.status in LIVE]
    before = next((other for other in alive if other.job_id == job.id), None)
    if before is not None and job.overlap != "parallel":
        return f"for run {before.id} of this job to end"
    if job.pool is not None:
        members = {job.id: job.name for job in session.scalars(select(Job).where(Job.pool == job.pool))}
        holders = [other for other in alive if other.job_id in members]
        if len(holders) >= limits["CRONMEND_POOLS"].value.get(job.pool, 1):
            return f"for a place in the pool {job.pool}: run {holders[0].id} of {members[holders[0].job_id]} has it"
    most = limits["MAX_PARALLEL_JOBS"].value
    if most and len(alive) >= most:
        return f"for a place: {len(alive)} runs are at work, and {most} is the most that you allow"
    return None
