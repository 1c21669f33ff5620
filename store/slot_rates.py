"""How many of a job's due slots came to a green end: what was missed counts, not only what ran."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from store.runs import ACTIVE, Run

NOBODY_WAITED = ("paused", "approvalRejected")


@dataclass(frozen=True)
class SlotRate:
    """Of the `due` slots since `since`, so many were green, by the run itself or by one of its retries."""

    due: int
    green: int
    since: datetime | None


def slot_rate(session: Session, job_id: int) -> SlotRate:
    """Over the runs of the job that are kept; slots inside a person's pause are none that anybody waits for."""
    retry = aliased(Run)
    is_green = or_(
        Run.status == "completed",
        exists(select(retry.id).where(retry.root_run_id == Run.id, retry.status == "completed")),
    )
    due, green, since = session.execute(
        select(
            func.coalesce(func.sum(Run.slots_covered), 0),
            func.count().filter(is_green),
            func.min(Run.slot_at),
        ).where(
            Run.job_id == job_id,
            Run.slot_at.is_not(None),
            Run.retry_of.is_(None),
            Run.status.not_in(ACTIVE),
            or_(Run.skip_reason.is_(None), Run.skip_reason.not_in(NOBODY_WAITED)),
        )
    ).one()
    return SlotRate(due, green, since)
