"""The inbox over HTTP: list, show, resolve."""

from datetime import datetime
from typing import Any

from flask import Blueprint, jsonify
from flask.typing import ResponseReturnValue

from scheduler.instants import parse_instant
from scheduler.zones import local_timezone
from store import cards
from store.clock import now
from store.errors import Invalid
from web import decisions
from web.api import access, asked, shapes
from web.desk import desk

blueprint = Blueprint("inbox", __name__)

STATUSES = ("pending", "approved", "rejected", "dismissed", "expired", "all")
KINDS = ("approve", "reject", "dismiss", "snooze")


@blueprint.get("/inbox")
def list_cards() -> ResponseReturnValue:
    """Open cards, newest first; closed ones with `status`."""
    access.only_the_person()
    status = asked.choice("status", STATUSES) or "pending"
    with desk().database.read() as session:
        rows = cards.listing(session, status=None if status == "all" else status, limit=asked.limit())
    return jsonify([shapes.card(row) for row in rows])


@blueprint.get("/inbox/<int:card_id>")
def show_card(card_id: int) -> ResponseReturnValue:
    """One card."""
    access.only_the_person()
    with desk().database.read() as session:
        return jsonify(shapes.card(cards.get(session, card_id)))


@blueprint.post("/inbox/<int:card_id>/resolve")
def resolve_card(card_id: int) -> ResponseReturnValue:
    """Approves, rejects, dismisses or snoozes a card."""
    access.only_the_person()
    body = asked.body()
    kind = body.get("kind")
    if kind not in KINDS:
        raise Invalid("kind", f"kind: must be one of {', '.join(KINDS)}.")
    reason = body.get("reason")
    if kind == "snooze":
        until = _until(body)
        card = desk().decide(lambda session: cards.snooze(session, card_id, until))
    else:
        said = str(reason) if reason else None
        card = desk().decide(lambda session: decisions.decide(session, card_id, kind, said))
    return jsonify(shapes.card(card))


def _until(body: dict[str, Any]) -> datetime:
    until = parse_instant(str(body.get("until", "in 1 hour")), local_timezone(), now(), field="until")
    if until <= now():
        raise Invalid("until", "until: name a coming time.")
    return until
