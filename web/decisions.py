"""What a person's decision on a card does, by the card's kind."""

from sqlalchemy.orm import Session

from scheduler import approvals
from store import cards
from store.cards import APPROVAL, Card
from store.clock import now


def decide(session: Session, card_id: int, kind: str, reason: str | None) -> Card:
    """Closes the card as the person said, with what follows from it.  Raises NotFound, Conflict."""
    card = cards.get(session, card_id)
    if card.action_kind == APPROVAL and card.status == "pending":
        return approvals.decide(session, card, kind, reason, now())
    return cards.resolve(session, card_id, kind, reason)
