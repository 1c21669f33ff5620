"""Sessions: conversations in a project, message by message."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from store.clock import now
from store.lookup import find
from store.types import AUTOINCREMENT, Base


class Conversation(Base):
    """A session.  The class has another name only because SQLAlchemy's Session is used beside it everywhere."""

    __tablename__ = "sessions"
    __table_args__ = AUTOINCREMENT

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    origin: Mapped[str]
    job_id: Mapped[int | None]
    run_id: Mapped[int | None]
    title: Mapped[str]
    status: Mapped[str] = mapped_column(default="running")
    provider: Mapped[str | None]
    model: Mapped[str | None]
    tools: Mapped[list[str]] = mapped_column(default=list)
    error: Mapped[str | None]
    tokens_in: Mapped[int] = mapped_column(default=0)
    tokens_out: Mapped[int] = mapped_column(default=0)
    cost_usd: Mapped[float] = mapped_column(default=0.0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    ended_at: Mapped[datetime | None]


class Message(Base):
    """One message, stored as it arrived; content is the model API's own list of blocks."""

    __tablename__ = "session_messages"
    __table_args__ = (Index("uq_session_messages_seq", "session_id", "seq", unique=True), AUTOINCREMENT)

    id: Mapped[int] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    seq: Mapped[int]
    role: Mapped[str]
    provider: Mapped[str | None]
    content: Mapped[list[Any]]
    usage: Mapped[dict[str, Any] | None]
    stop_reason: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(default=now)


def get(session: Session, session_id: int) -> Conversation:
    """The session; raises NotFound."""
    return find(session, Conversation, "session", session_id)


def listing(session: Session, *, project_id: int | None = None, limit: int = 100) -> Sequence[Conversation]:
    """The newest sessions, newest first."""
    query = select(Conversation).order_by(Conversation.id.desc()).limit(limit)
    if project_id is not None:
        query = query.where(Conversation.project_id == project_id)
    return session.scalars(query).all()


def at_work(session: Session) -> Sequence[Conversation]:
    """Sessions whose turn has not ended, oldest first."""
    return session.scalars(select(Conversation).where(Conversation.status == "running").order_by(Conversation.id)).all()


def of_run(session: Session, run_id: int) -> Conversation | None:
    """The newest session of a run."""
    return session.scalar(select(Conversation).where(Conversation.run_id == run_id).order_by(Conversation.id.desc()))


def messages(session: Session, session_id: int) -> Sequence[Message]:
    return session.scalars(select(Message).where(Message.session_id == session_id).order_by(Message.seq)).all()


def append(session: Session, message: Message) -> None:
    """Adds the message at the end of its session."""
    last = session.scalar(select(func.max(Message.seq)).where(Message.session_id == message.session_id))
    message.seq = (last or 0) + 1
    session.add(message)
    session.flush()
