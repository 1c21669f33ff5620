"""Cards: the rows of the inbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Index, select, text, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from store import events
from store.clock import now
from store.errors import Conflict
from store.lookup import find
from store.payloads import INVALID, shape_of
from store.types import AUTOINCREMENT, Base

ALERT = "cron.failure_alert"
ESCALATION = "cron.failure_heal"
NEEDS_YOU = "heal.needs_you"
PROPOSAL = "heal.proposal"
NOTICE = "scheduler.notice"
APPROVAL = "cron.run_approval"
CREATE = "cron.create"
REMOVAL = "project.delete"


class Card(Base):
    __tablename__ = "cli_pending_actions"
    __table_args__ = (
        Index(
            "uq_cli_pending_actions_open", "action_kind", "target", unique=True, sqlite_where=text("status = 'pending'")
        ),
        Index("ix_cli_pending_actions_job", "job_id", "status"),
        AUTOINCREMENT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    action_kind: Mapped[str]
    target: Mapped[str]
    job_id: Mapped[int | None]
    run_id: Mapped[int | None]
    title: Mapped[str]
    preview: Mapped[str]
    payload: Mapped[dict[str, Any]]
    status: Mapped[str] = mapped_column(default="pending")
    snoozed_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)
    resolved_at: Mapped[datetime | None]
    dispatched_at: Mapped[datetime | None]
    resolution: Mapped[str | None]
    reason: Mapped[str | None]


def get(session: Session, card_id: int) -> Card:
    """The card; raises NotFound."""
    return find(session, Card, "card", card_id)


def listing(session: Session, *, status: str | None = "pending", limit: int = 100) -> Sequence[Card]:
    """The newest cards, newest first; all of them with `status` None."""
    query = select(Card).order_by(Card.id.desc()).limit(limit)
    if status is not None:
        query = query.where(Card.status == status)
    return session.scalars(query).all()


def post(session: Session, card: Card) -> bool:
    """Opens the card unless one of the same kind and target is open already; True when it was opened.

    Raises ValueError for a payload that its kind does not have.
    """
    if shape_of(card.action_kind, card.payload) == INVALID:
        raise ValueError(f"{card.action_kind} does not hold {sorted(card.payload)}")
    known = select(Card.id).where(
        Card.action_kind == card.action_kind, Card.target == card.target, Card.status == "pending"
    )
    if session.scalar(known) is not None:
        return False
    session.add(card)
    session.flush()
    events.record(session, "card.opened", "app", job_id=card.job_id, run_id=card.run_id, reason=card.action_kind)
    return True


def jobs_with_open(session: Session, kinds: Sequence[str]) -> set[int]:
    """The jobs that have an open card of one of these kinds."""
    query = select(Card.job_id).where(Card.status == "pending", Card.action_kind.in_(kinds), Card.job_id.is_not(None))
    return {job_id for job_id in session.scalars(query) if job_id is not None}


def dismiss_for_job(session: Session, job_id: int, kinds: Sequence[str], reason: str) -> int:
    """Closes the job's open cards of these kinds; returns how many."""
    result = session.execute(
        update(Card)
        .where(Card.job_id == job_id, Card.status == "pending", Card.action_kind.in_(kinds))
        .values(status="dismissed", resolution="auto", reason=reason, resolved_at=now())
    )
    closed: int = result.rowcount  # type: ignore[attr-defined]
    if closed:
        events.record(session, "card.resolved", "app", job_id=job_id, reason=reason)
    return closed


_STATUS_OF = {"approve": "approved", "reject": "rejected", "dismiss": "dismissed"}


def resolve(session: Session, card_id: int, kind: str, reason: str | None) -> Card:
    """Closes an open card as the person said.  Raises NotFound, Conflict `already_resolved`."""
    card = get(session, card_id)
    if card.status != "pending":
        raise Conflict(f"Already decided: {card.status}.", code="already_resolved")
    card.status, card.resolution, card.reason, card.resolved_at = _STATUS_OF[kind], kind, reason, now()
    events.record(session, "card.resolved", "person", job_id=card.job_id, run_id=card.run_id, reason=kind)
    return card


def reopen(session: Session, card_id: int) -> Card:
    """Takes back a person's dismissal or snooze.  Raises NotFound, Conflict when that is not what closed it."""
    card = get(session, card_id)
    shape = shape_of(card.action_kind, card.payload)
    was_dismissed = card.resolution == "dismiss" or (card.resolution == "approve" and shape == "escalation")
    if not was_dismissed and card.snoozed_until is None:
        raise Conflict("What was decided here has had its effect; it cannot be taken back.", code="not_undoable")
    known = select(Card.id).where(
        Card.action_kind == card.action_kind, Card.target == card.target, Card.status == "pending", Card.id != card.id
    )
    if session.scalar(known) is not None:
        raise Conflict("There is a newer card of the same kind by now.", code="not_undoable")
    card.status, card.resolution, card.reason, card.resolved_at, card.snoozed_until = "pending", None, None, None, None
    events.record(session, "card.opened", "person", job_id=card.job_id, run_id=card.run_id, reason="undone")
    return card


def expire(session: Session, kind: str, target: str) -> None:
    """Closes the open card of this kind and target because its time is over."""
    result = session.execute(
        update(Card)
        .where(Card.action_kind == kind, Card.target == target, Card.status == "pending")
        .values(status="expired", resolution="auto", reason="nobody answered in time", resolved_at=now())
    )
    if result.rowcount:  # type: ignore[attr-defined]
        events.record(session, "card.resolved", "app", reason="expired")


def snooze(session: Session, card_id: int, until: datetime) -> Card:
    """Hides an open card until then.  Raises NotFound, Conflict `already_resolved`."""
    card = get(session, card_id)
    if card.status != "pending":
        raise Conflict(f"Already decided: {card.status}.", code="already_resolved")
    card.snoozed_until = until
    events.record(session, "card.snoozed", "person", job_id=card.job_id, reason=card.action_kind)
    return card
