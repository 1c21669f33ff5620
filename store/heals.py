"""Heals: attempts to repair a job after its final failure, what they edited, and what proved them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ForeignKey, Index, func, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from store.clock import now
from store.lookup import find
from store.types import AUTOINCREMENT, Base

OPEN = ("pending", "spawned")
_OPEN_SQL = "status IN ('pending', 'spawned')"


class Heal(Base):
    __tablename__ = "cron_heal_attempts"
    __table_args__ = (
        Index("uq_cron_heal_attempts_open", "job_id", unique=True, sqlite_where=text(_OPEN_SQL)),
        Index("ix_cron_heal_attempts_job", "job_id", "id"),
        Index("ix_cron_heal_attempts_session", "session_id", sqlite_where=text("session_id IS NOT NULL")),
        AUTOINCREMENT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("cron_jobs.id", ondelete="CASCADE"))
    run_id: Mapped[int] = mapped_column(unique=True)
    status: Mapped[str] = mapped_column(default="pending")
    is_manual: Mapped[bool] = mapped_column(default=False)
    category: Mapped[str | None]
    cause: Mapped[str | None]
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id"))
    worker_pid: Mapped[int | None]
    worker_start: Mapped[int | None]
    worker_boot_id: Mapped[str | None]
    closing_reason: Mapped[str | None]
    abandoned_reason: Mapped[str | None]
    counts_as_failure: Mapped[bool | None]
    failures_before: Mapped[int] = mapped_column(default=0)
    probation: Mapped[str] = mapped_column(default="none")
    probation_green: Mapped[int] = mapped_column(default=0)
    root_cause: Mapped[str | None]
    fix: Mapped[str | None]
    proof: Mapped[str | None]
    cost_usd: Mapped[float] = mapped_column(default=0.0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    spawned_at: Mapped[datetime | None]
    went_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]
    undone_at: Mapped[datetime | None]


class HealEdit(Base):
    """One file of the project that a heal set out to change.  The row is written before the file is touched."""

    __tablename__ = "heal_edits"

    heal_id: Mapped[int] = mapped_column(ForeignKey("cron_heal_attempts.id", ondelete="CASCADE"), primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    before: Mapped[str | None]
    after: Mapped[str | None]
    by: Mapped[str] = mapped_column(default="tool")
    at: Mapped[datetime] = mapped_column(default=now)


class Verification(Base):
    """What the app itself saw prove a fix, bound to a digest of the changed files and the job's definition."""

    __tablename__ = "verifications"
    __table_args__ = (Index("ix_verifications_heal", "heal_id", "id"), AUTOINCREMENT)

    id: Mapped[int] = mapped_column(primary_key=True)
    heal_id: Mapped[int] = mapped_column(ForeignKey("cron_heal_attempts.id", ondelete="CASCADE"))
    kind: Mapped[str]
    digest: Mapped[str]
    run_id: Mapped[int | None]
    detail: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(default=now)


def get(session: Session, heal_id: int) -> Heal:
    """The heal; raises NotFound."""
    return find(session, Heal, "heal", heal_id)


def listing(
    session: Session, *, job_id: int | None = None, status: str | None = None, limit: int = 100
) -> Sequence[Heal]:
    """The newest heals, newest first."""
    query = select(Heal).order_by(Heal.id.desc()).limit(limit)
    if job_id is not None:
        query = query.where(Heal.job_id == job_id)
    if status is not None:
        query = query.where(Heal.status == status)
    return session.scalars(query).all()


def open_for(session: Session, job_id: int) -> Heal | None:
    return session.scalar(select(Heal).where(Heal.job_id == job_id, text(_OPEN_SQL)))


def jobs_with_open(session: Session) -> set[int]:
    return set(session.scalars(select(Heal.job_id).where(text(_OPEN_SQL))))


def all_open(session: Session) -> Sequence[Heal]:
    return session.scalars(select(Heal).where(text(_OPEN_SQL)).order_by(Heal.id)).all()


def of_session(session: Session, session_id: int) -> Heal | None:
    return session.scalar(select(Heal).where(Heal.session_id == session_id))


def open_automatic(session: Session) -> int:
    """How many automatic heals are open over all jobs."""
    query = select(func.count()).select_from(Heal).where(text(_OPEN_SQL), Heal.is_manual.is_(False))
    return session.scalar(query) or 0


def on_probation(session: Session) -> dict[int, Heal]:
    """The newest heal on probation of each job that has one."""
    query = select(Heal).where(Heal.probation == "on").order_by(Heal.id)
    return {heal.job_id: heal for heal in session.scalars(query)}


def edits(session: Session, heal_id: int) -> Sequence[HealEdit]:
    return session.scalars(select(HealEdit).where(HealEdit.heal_id == heal_id).order_by(HealEdit.path)).all()


def latest_verification(session: Session, heal_id: int) -> Verification | None:
    query = select(Verification).where(Verification.heal_id == heal_id).order_by(Verification.id.desc())
    return session.scalar(query.limit(1))


def of_run(session: Session, run_id: int) -> Heal | None:
    return session.scalar(select(Heal).where(Heal.run_id == run_id))
