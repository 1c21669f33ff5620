"""What a person's decision on a card does, by the card's kind."""

from collections.abc import Callable

from sqlalchemy.orm import Session

from scheduler import approvals, clock_steps, proposals
from store import cards
from store.cards import APPROVAL, CREATE, NOTICE, REMOVAL, Card
from store.clock import now

_DECIDED: dict[str, Callable[[Session, Card, str, str | None], Card]] = {
    APPROVAL: lambda session, card, kind, reason: approvals.decide(session, card, kind, reason, now()),
    NOTICE: clock_steps.decide_journey,
    CREATE: proposals.decide_job,
    REMOVAL: proposals.decide_removal,
}


def decide(session: Session, card_id: int, kind: str, reason: str | None) -> Card:
    """Closes the card as the person said, with what follows from it.  Raises NotFound, Conflict."""
    card = cards.get(session, card_id)
    by_kind = _DECIDED.get(card.action_kind)
    if by_kind is None or card.status != "pending":
        return cards.resolve(session, card_id, kind, reason)
    return by_kind(session, card, kind, reason)
