"""The durable feed: what happened, to what, by whom.  Timeline of the pages and audit trail in one."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Index, insert, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from store.clock import now
from store.types import AUTOINCREMENT, Base

MOST_CHANGES = 4_096
"""Bytes of JSON that one event may carry."""


class Event(Base):
    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_job", "job_id", "id", sqlite_where=text("job_id IS NOT NULL")),
        Index("ix_events_run", "run_id", sqlite_where=text("run_id IS NOT NULL")),
        AUTOINCREMENT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    job_id: Mapped[int | None]
    run_id: Mapped[int | None]
    heal_id: Mapped[int | None]
    session_id: Mapped[int | None]
    actor: Mapped[str]
    reason: Mapped[str | None]
    changes: Mapped[dict[str, Any] | None]


_EMPTY: dict[str, Any] = dict.fromkeys(("job_id", "run_id", "heal_id", "session_id", "reason", "changes"))


def record(session: Session, kind: str, actor: str, **facts: Any) -> None:
    """Writes one event beside the change it tells of.  `facts`: the ids, reason, changes."""
    record_all(session, kind, actor, [facts])


def record_all(session: Session, kind: str, actor: str, many: Iterable[dict[str, Any]]) -> None:
    """Writes one event of the same kind for each set of facts, in one statement."""
    at = now()
    rows = [{**_EMPTY, "at": at, "kind": kind, "actor": actor, **_fit(facts)} for facts in many]
    if rows:
        session.connection().execute(insert(Event), rows)
        session.info.setdefault("kinds", set()).add(kind)


def _fit(facts: dict[str, Any]) -> dict[str, Any]:
    changes = facts.get("changes")
    if changes and len(json.dumps(changes)) > MOST_CHANGES:
        facts = {**facts, "changes": {"fields": sorted(changes), "cut": True}}
    return facts


def listing(
    session: Session,
    *,
    kind: str | None = None,
    job_id: int | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[Event]:
    """The newest events, newest first; `kind` may be a prefix such as `heal`.  The next page starts at `before_id`."""
    query = select(Event).order_by(Event.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(Event.id < before_id)
    if kind:
        query = query.where(Event.kind.startswith(kind, autoescape=True))
    if job_id is not None:
        query = query.where(Event.job_id == job_id)
    return session.scalars(query).all()


def of_run(session: Session, run_id: int) -> Sequence[Event]:
    return session.scalars(select(Event).where(Event.run_id == run_id).order_by(Event.id)).all()


def after(session: Session, last_id: int, limit: int) -> Sequence[Event]:
    """Events after `last_id`, oldest first."""
    return session.scalars(select(Event).where(Event.id > last_id).order_by(Event.id).limit(limit)).all()
