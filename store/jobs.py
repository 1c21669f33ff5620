"""Jobs: a schedule plus a target."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ForeignKey, Index, and_, func, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from store import events
from store.clock import now
from store.lookup import find
from store.sessions import Conversation
from store.types import AUTOINCREMENT, Base


class Job(Base):
    __tablename__ = "cron_jobs"
    __table_args__ = (
        Index("ix_cron_jobs_next_run", "next_run_at", sqlite_where=text("next_run_at IS NOT NULL")),
        AUTOINCREMENT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    target_type: Mapped[str]
    command: Mapped[str | None]
    recipe: Mapped[str | None]
    prompt: Mapped[str | None]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))
    cwd: Mapped[str | None]
    env: Mapped[dict[str, str]] = mapped_column(default=dict)
    schedule: Mapped[str | None]
    schedule_text: Mapped[str | None]
    timezone: Mapped[str]
    run_mode: Mapped[str] = mapped_column(default="recurring")
    run_at: Mapped[datetime | None]
    overlap: Mapped[str] = mapped_column(default="skip")
    catch_up: Mapped[str] = mapped_column(default="once")
    catch_up_max_age_secs: Mapped[int | None]
    jitter_secs: Mapped[int] = mapped_column(default=0)
    timeout_secs: Mapped[int | None]
    retries: Mapped[int] = mapped_column(default=0)
    retry_backoff_secs: Mapped[int] = mapped_column(default=30)
    retry_on: Mapped[list[int]] = mapped_column(default=list)
    pool: Mapped[str | None]
    effects: Mapped[str] = mapped_column(default="unknown")
    verify_command: Mapped[str | None]
    cleanup_command: Mapped[str | None]
    expect_within_secs: Mapped[int | None]
    success_when: Mapped[list[str]] = mapped_column(default=list)
    require_approval: Mapped[bool] = mapped_column(default=False)
    healing_enabled: Mapped[bool] = mapped_column(default=True)
    consecutive_heal_failures: Mapped[int] = mapped_column(default=0)
    deliver_to: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)

    # Each owner of a pause has its own column, so that lifting one never lifts another's.
    person_paused_at: Mapped[datetime | None]
    person_paused_until: Mapped[datetime | None]
    breaker_paused_at: Mapped[datetime | None]
    paused_session_id: Mapped[int | None]
    paused_heal_id: Mapped[int | None]
    blocked_reason: Mapped[str | None]
    done_at: Mapped[datetime | None]

    next_run_at: Mapped[datetime | None]
    last_run_id: Mapped[int | None]
    last_run_status: Mapped[str | None]
    last_run_started_at: Mapped[datetime | None]
    last_run_duration_ms: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)

    @property
    def paused_by(self) -> str | None:
        """Who holds the job still, the person first: `person`, `breaker`, `session`, `heal <id>` or None."""
        if self.person_paused_at:
            return "person"
        if self.breaker_paused_at:
            return "breaker"
        if self.paused_session_id:
            return "session"
        return f"heal {self.paused_heal_id}" if self.paused_heal_id else None

    @property
    def is_active(self) -> bool:
        return not (self.paused_by or self.blocked_reason or self.done_at)


NOT_HELD = and_(
    Job.person_paused_at.is_(None),
    Job.breaker_paused_at.is_(None),
    Job.paused_session_id.is_(None),
    Job.paused_heal_id.is_(None),
    Job.blocked_reason.is_(None),
    Job.done_at.is_(None),
)
"""What `is_active` says, for the database."""


def get(session: Session, job_id: int) -> Job:
    """The job; raises NotFound."""
    return find(session, Job, "job", job_id)


def listing(session: Session, *, after_id: int = 0, limit: int = 1_000) -> Sequence[Job]:
    """Jobs in the order they were made, a page after `after_id`."""
    return session.scalars(select(Job).where(Job.id > after_id).order_by(Job.id).limit(limit)).all()


def names(session: Session, job_ids: set[int]) -> dict[int, str]:
    """The names of those of these jobs that are there."""
    found = session.execute(select(Job.id, Job.name).where(Job.id.in_(job_ids)))
    return dict(found.all())


def due(session: Session, at: datetime, limit: int = -1) -> Sequence[Job]:
    """Jobs with a slot at or before `at`, oldest slot first; all of them, or so many."""
    return session.scalars(
        select(Job).where(Job.next_run_at <= at).order_by(Job.next_run_at, Job.id).limit(limit)
    ).all()


def earliest_slot(session: Session) -> datetime | None:
    return session.scalar(
        select(Job.next_run_at).where(Job.next_run_at.is_not(None)).order_by(Job.next_run_at).limit(1)
    )


def next_to_run(session: Session) -> Job | None:
    """The active job whose slot comes first."""
    return session.scalar(select(Job).where(Job.next_run_at.is_not(None), NOT_HELD).order_by(Job.next_run_at).limit(1))


def resuming(session: Session, at: datetime) -> Sequence[Job]:
    """Jobs whose person's pause was to end at or before `at`."""
    return session.scalars(select(Job).where(Job.person_paused_until <= at)).all()


def earliest_resume(session: Session) -> datetime | None:
    return session.scalar(select(func.min(Job.person_paused_until)))


def lift_hand_fixes(session: Session, session_id: int | None) -> list[int]:
    """Lifts the pause of a session that repairs its job by hand; with None of all whose session is gone.

    Returns the jobs that are free of it.
    """
    held = select(Job).where(Job.paused_session_id.is_not(None))
    if session_id is not None:
        held = held.where(Job.paused_session_id == session_id)
    else:
        living = select(Conversation.id).where(Conversation.status != "archived")
        held = held.where(Job.paused_session_id.not_in(living))
    freed = []
    for job in session.scalars(held):
        events.record(session, "job.resumed", "person", job_id=job.id, session_id=session_id, reason="fixed by hand")
        job.paused_session_id, job.updated_at = None, now()
        freed.append(job.id)
    return freed


def counts(session: Session) -> tuple[int, int]:
    """How many jobs there are, and how many of them are active."""
    total = session.scalar(select(func.count()).select_from(Job)) or 0
    live = session.scalar(select(func.count()).select_from(Job).where(NOT_HELD)) or 0
    return total, live
