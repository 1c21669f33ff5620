"""Runs: one execution of a job, or one slot that did not execute and says why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Index, bindparam, exists, func, select, text
from sqlalchemy.orm import Mapped, Session, aliased, mapped_column

from store.clock import now
from store.lookup import find
from store.types import AUTOINCREMENT, Base, UtcDateTime

ACTIVE = ("pending", "running", "stuck", "awaitingApproval")
LIVE = ("running", "stuck")
FAILED = ("failed", "timeout")
EXECUTED = ("completed", "failed", "timeout", "aborted")
STATUSES = (*ACTIVE, *EXECUTED, "skipped")

IS_ACTIVE_SQL = "status IN ('pending', 'running', 'stuck', 'awaitingApproval')"
"""As text: the partial indexes are made with it, and a statement over many rows cannot expand a list."""


class Run(Base):
    __tablename__ = "cron_runs"
    __table_args__ = (
        # The slot claim: one root run a slot, whoever competes.  Retries share their root's slot.
        Index("uq_cron_runs_slot", "job_id", "slot_at", unique=True, sqlite_where=text("retry_of IS NULL")),
        Index("uq_cron_runs_retry", "root_run_id", "attempt", unique=True, sqlite_where=text("retry_of IS NOT NULL")),
        Index("ix_cron_runs_job", "job_id", "id"),
        Index("ix_cron_runs_status", "status", "id"),
        Index("ix_cron_runs_active", "job_id", sqlite_where=text(IS_ACTIVE_SQL)),
        Index(
            "ix_cron_runs_undecided",
            "id",
            sqlite_where=text("status IN ('failed', 'timeout') AND heal_decision IS NULL AND retry_due_at IS NULL"),
        ),
        Index(
            "ix_cron_runs_retry_due",
            "retry_due_at",
            sqlite_where=text("retry_due_at IS NOT NULL AND retry_run_id IS NULL"),
        ),
        AUTOINCREMENT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("cron_jobs.id", ondelete="CASCADE"))
    slot_at: Mapped[datetime | None]
    slots_covered: Mapped[int] = mapped_column(default=1)
    status: Mapped[str]
    skip_reason: Mapped[str | None]
    triggered_by: Mapped[str]
    attempt: Mapped[int] = mapped_column(default=1)
    retry_of: Mapped[int | None]
    root_run_id: Mapped[int | None]
    retry_number: Mapped[int] = mapped_column(default=0)
    retry_due_at: Mapped[datetime | None]
    retry_run_id: Mapped[int | None]
    heal_id: Mapped[int | None]
    claimed_at: Mapped[datetime] = mapped_column(default=now)
    not_before: Mapped[datetime | None]
    approval_expires_at: Mapped[datetime | None]
    submitted_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]
    exit_code: Mapped[int | None]
    signal: Mapped[int | None]
    error: Mapped[str | None]
    category: Mapped[str | None]
    cause: Mapped[str | None]
    system_marked_failure: Mapped[bool] = mapped_column(default=False)
    failure_evidence_json: Mapped[dict[str, Any] | None]
    heal_decision: Mapped[str | None]
    suppressed: Mapped[bool] = mapped_column(default=False)
    wake_context: Mapped[str | None]
    log_bytes: Mapped[int] = mapped_column(default=0)
    log_cut: Mapped[bool] = mapped_column(default=False)
    """Whether the disk was full while it ran: its log may end too early."""

    abort_reason: Mapped[str | None]
    pid: Mapped[int | None]
    process_start: Mapped[int | None]
    boot_id: Mapped[str | None]


def get(session: Session, run_id: int) -> Run:
    """The run; raises NotFound."""
    return find(session, Run, "run", run_id)


def listing(
    session: Session,
    *,
    job_id: int | None = None,
    status: str | None = None,
    since: datetime | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[Run]:
    """The newest runs, newest first; the next page starts at `before_id`."""
    query = select(Run).order_by(Run.id.desc()).limit(limit)
    wanted: list[ColumnElement[bool]] = []
    if job_id is not None:
        wanted.append(Run.job_id == job_id)
    if status is not None:
        wanted.append(Run.status == status)
    if since is not None:
        wanted.append(Run.claimed_at >= since)
    if before_id is not None:
        wanted.append(Run.id < before_id)
    return session.scalars(query.where(*wanted)).all()


def active_of(session: Session, job_id: int) -> Sequence[Run]:
    """Runs of the job that have not ended, oldest first."""
    return session.scalars(select(Run).where(Run.job_id == job_id, text(IS_ACTIVE_SQL)).order_by(Run.id)).all()


def jobs_with_active(session: Session, job_ids: Sequence[int]) -> set[int]:
    if len(job_ids) > 500:  # a burst: the partial index over all active runs is smaller than the list
        return set(session.scalars(select(Run.job_id).where(text(IS_ACTIVE_SQL))))
    return set(session.scalars(select(Run.job_id).where(text(IS_ACTIVE_SQL), Run.job_id.in_(job_ids))))


def all_active(session: Session) -> Sequence[Run]:
    # Ordered here: asked for the order of ids, SQLite reads a million rows in it rather than the few of the index.
    return sorted(session.scalars(select(Run).where(text(IS_ACTIVE_SQL))), key=lambda run: run.id)


def undecided(session: Session, limit: int = 50) -> Sequence[Run]:
    """Final failures that the medic has not decided on, oldest first."""
    return session.scalars(
        select(Run)
        .where(
            text("status IN ('failed', 'timeout') AND heal_decision IS NULL AND retry_due_at IS NULL"),
        )
        .order_by(Run.id)
        .limit(limit)
    ).all()


def ended_later(session: Session, run: Run) -> bool:
    """Whether another execution of the job was claimed after `run` and has ended since."""
    later = select(Run.id).where(Run.job_id == run.job_id, Run.id > run.id, Run.status.in_(EXECUTED)).limit(1)
    return session.scalar(later) is not None


def latest_failed(session: Session, job_id: int) -> Run | None:
    """The newest run of the job that failed of itself."""
    return session.scalar(
        select(Run).where(Run.job_id == job_id, Run.status.in_(FAILED)).order_by(Run.id.desc()).limit(1)
    )


_child = aliased(Run)
# Made once: an alias made anew at each call costs two milliseconds, and this is asked at every step of the dispatcher.
_RETRIES_DUE = (
    select(Run)
    .where(text("cron_runs.retry_due_at IS NOT NULL AND cron_runs.retry_run_id IS NULL"))
    .where(
        Run.retry_due_at <= bindparam("at", type_=UtcDateTime),
        ~exists().where(_child.job_id == Run.job_id, _child.status.in_(ACTIVE)),
    )
    .order_by(Run.retry_due_at)
)


def retries_due(session: Session, at: datetime) -> Sequence[Run]:
    """Failed runs whose retry time has come, without a child yet, of jobs with nothing active."""
    return session.scalars(_RETRIES_DUE, {"at": at}).all()


def next_retry_at(session: Session) -> datetime | None:
    return session.scalar(
        select(Run.retry_due_at)
        .where(text("retry_due_at IS NOT NULL AND retry_run_id IS NULL"))
        .order_by(Run.retry_due_at)
        .limit(1)
    )


def tally(session: Session, column: str) -> dict[str, int]:
    """How many runs there are for each value of `column`."""
    attribute = getattr(Run, column)
    return dict(session.execute(select(attribute, func.count()).group_by(attribute)).all())


def system_marked(session: Session) -> int:
    """How many runs ended without anybody who could vouch for how: marked, and without evidence."""
    unwitnessed = (Run.system_marked_failure, Run.failure_evidence_json.is_(None))
    return session.scalar(select(func.count()).select_from(Run).where(*unwitnessed)) or 0


def of_ids(session: Session, run_ids: Sequence[int]) -> Sequence[Run]:
    """The runs that there are of these."""
    return session.scalars(select(Run).where(Run.id.in_(run_ids))).all()
