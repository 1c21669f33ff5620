"""The inbox: what waits for the person, in two panes."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, make_response, request
from flask.typing import ResponseReturnValue

from store import cards, heals
from store.cards import Card
from store.clock import now
from store.errors import NotFound
from store.heals import Heal
from store.jobs import Job
from store.payloads import shape_of
from store.runs import Run
from web import decisions, words
from web.desk import desk
from web.shell import page, part

blueprint = Blueprint("inbox", __name__)

TABS = ("open", "snoozed", "done")
ORDER = {"cron.failure_heal": 0, "cron.run_approval": 1, "heal.needs_you": 2, "heal.proposal": 3}
MOST_CARDS = 200


@dataclass(frozen=True)
class PaneView:
    """One card opened.  `job` is None when it has been removed since."""

    card: Card
    job: Job | None
    run: Run | None
    heals: Sequence[Heal]
    shape: str
    is_open: bool


@dataclass(frozen=True)
class InboxView:
    """The list, and the card that is open beside it."""

    tab: str
    cards: Sequence[Card]
    chosen: int | None
    pane: PaneView | None
    counts: dict[str, int]
    decided: Card | None
    """The card that was just decided, to be told and taken back."""


@blueprint.get("/inbox")
def inbox() -> ResponseReturnValue:
    return page("inbox/index.html", _view(None), "Inbox")


@blueprint.get("/inbox/<int:card_id>")
def show_card(card_id: int) -> ResponseReturnValue:
    return page("inbox/index.html", _view(card_id), "Inbox")


@blueprint.get("/inbox/list")
def card_list() -> ResponseReturnValue:
    chosen = request.args.get("chosen", "")
    return part("inbox/_list.html", _view(int(chosen) if chosen.isdigit() else None))


@blueprint.get("/inbox/<int:card_id>/pane")
def pane(card_id: int) -> ResponseReturnValue:
    return part("inbox/_pane.html", _pane(card_id))


@blueprint.post("/inbox/<int:card_id>/resolve")
def resolve(card_id: int) -> ResponseReturnValue:
    kind = request.form.get("kind", "dismiss")
    if kind not in ("approve", "reject", "dismiss"):
        raise NotFound("decision", kind)
    reason = request.form.get("reason", "").strip() or None
    desk().database.write(lambda session: decisions.decide(session, card_id, kind, reason))
    return _decided(card_id)


@blueprint.post("/inbox/<int:card_id>/snooze")
def snooze(card_id: int) -> ResponseReturnValue:
    until = words.in_an_hour()
    desk().database.write(lambda session: cards.snooze(session, card_id, until))
    return _decided(card_id)


@blueprint.post("/inbox/<int:card_id>/reopen")
def reopen(card_id: int) -> ResponseReturnValue:
    """Undo: what was dismissed or snoozed is open again."""
    desk().database.write(lambda session: cards.reopen(session, card_id))
    answer = make_response("")
    answer.headers["HX-Location"] = f"/inbox/{card_id}"
    return answer


def _decided(card_id: int) -> ResponseReturnValue:
    """The next card takes the place of the one that was decided; the page offers to take that back."""
    view = _view(None)
    place = f"/inbox/{view.cards[0].id}" if view.cards else "/inbox"
    answer = make_response("")
    answer.headers["HX-Location"] = f"{place}?decided={card_id}"
    return answer


def _view(card_id: int | None) -> InboxView:
    tab = request.args.get("tab", "open")
    with desk().database.read() as session:
        every = cards.listing(session, status=None, limit=MOST_CARDS)
    by_tab = {name: [card for card in every if _tab_of(card) == name] for name in TABS}
    shown = by_tab.get(tab, by_tab["open"])
    shown.sort(key=lambda card: (ORDER.get(card.action_kind, 9), -card.id))
    chosen = card_id if card_id is not None else (shown[0].id if shown else None)
    counts = {name: len(found) for name, found in by_tab.items()}
    last = request.args.get("decided", "")
    decided = next((card for card in every if last.isdigit() and card.id == int(last)), None)
    return InboxView(tab, shown, chosen, _pane(chosen) if chosen is not None else None, counts, decided)


def _tab_of(card: Card) -> str:
    if card.status != "pending":
        return "done"
    return "snoozed" if card.snoozed_until and card.snoozed_until > now() else "open"


def _pane(card_id: int) -> PaneView:
    with desk().database.read() as session:
        card = cards.get(session, card_id)
        job = session.get(Job, card.job_id) if card.job_id else None
        run = session.get(Run, card.run_id) if card.run_id else None
        past = heals.listing(session, job_id=job.id, limit=3) if job else []
    return PaneView(card, job, run, past, shape_of(card.action_kind, card.payload), card.status == "pending")
