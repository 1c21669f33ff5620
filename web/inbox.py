"""The inbox: what waits for the person, in two panes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from flask import Blueprint, make_response, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from store import cards, heals, jobs, runs
from store.cards import Card
from store.clock import iso, now
from store.errors import NotFound
from store.heals import Heal
from store.jobs import Job
from store.payloads import shape_of
from store.projects import Project
from store.runs import Run
from web import decisions, words
from web.desk import desk
from web.job_form import Preview, preview_of
from web.shell import page, part
from web.whole import read_whole
from web.words import State

blueprint = Blueprint("inbox", __name__)

TABS = ("open", "snoozed", "done")
ORDER = {"cron.failure_heal": 0, "cron.run_approval": 1, "cron.create": 1, "project.delete": 1}
"""Escalations, then what waits for an answer (the oldest first), then the rest (the newest first)."""

MOST_CARDS = 200
LAST_RUNS = 10


@dataclass(frozen=True)
class PaneView:
    """One card opened.  `job` is None when it has been removed since; `following` is the next open card."""

    card: Card
    job: Job | None
    run: Run | None
    heals: Sequence[Heal]
    recent: Sequence[State]
    evidence: dict[str, Any]
    shape: str
    is_open: bool
    is_changed: bool
    following: int | None
    preview: Preview | None
    project: str | None

    @property
    def hits(self) -> list[str]:
        return list(self.evidence.get("hits", []))


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

    seen: int
    """The newest card of the page; what has come since is only counted, so that the list stands still."""

    fresh: int
    coming: Job | None
    """With nothing to do: the job that runs next."""


@blueprint.get("/inbox")
def inbox() -> ResponseReturnValue:
    return page("inbox/index.html", _view(None), "Inbox")


@blueprint.get("/inbox/<int:card_id>")
def show_card(card_id: int) -> ResponseReturnValue:
    return page("inbox/index.html", _view(card_id), "Inbox")


@blueprint.get("/inbox/list")
def card_list() -> ResponseReturnValue:
    return part("inbox/_list.html", _view(_number("chosen")))


@blueprint.get("/inbox/<int:card_id>/pane")
def pane(card_id: int) -> ResponseReturnValue:
    return part("inbox/_pane.html", _pane(card_id))


@blueprint.post("/inbox/<int:card_id>/resolve")
def resolve(card_id: int) -> ResponseReturnValue:
    kind = request.form.get("kind", "dismiss")
    if kind not in ("approve", "reject", "dismiss"):
        raise NotFound("decision", kind)
    reason = request.form.get("reason", "").strip() or None
    desk().decide(lambda session: decisions.decide(session, card_id, kind, reason))
    return _decided(card_id)


@blueprint.post("/inbox/<int:card_id>/snooze")
def snooze(card_id: int) -> ResponseReturnValue:
    until = words.in_an_hour()
    desk().decide(lambda session: cards.snooze(session, card_id, until))
    return _decided(card_id)


@blueprint.post("/inbox/<int:card_id>/reopen")
def reopen(card_id: int) -> ResponseReturnValue:
    """Undo: what was dismissed or snoozed is open again."""
    desk().decide(lambda session: cards.reopen(session, card_id))
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
        coming = jobs.next_to_run(session)
    by_tab = {name: [card for card in every if _tab_of(card) == name] for name in TABS}
    shown = by_tab.get(tab, by_tab["open"])
    shown.sort(key=_place)
    counts = {name: len(found) for name, found in by_tab.items()}
    newest = max((card.id for card in every), default=0)
    seen = min(newest, _number("seen") or newest) if card_id is not None else newest
    still = [card for card in shown if card.id <= seen]
    chosen = card_id if card_id is not None else (still[0].id if still else None)
    last = _number("decided")
    return InboxView(
        tab=tab,
        cards=still,
        chosen=chosen,
        pane=_pane(chosen) if chosen is not None else None,
        counts=counts,
        decided=next((card for card in every if card.id == last), None),
        seen=seen,
        fresh=len(shown) - len(still),
        coming=coming,
    )


def _number(name: str) -> int | None:
    text = request.args.get(name, "")
    return read_whole(text)


def _place(card: Card) -> tuple[int, int]:
    rank = ORDER.get(card.action_kind, 9)
    return rank, card.id if rank == 1 else -card.id


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
        recent = runs.listing(session, job_id=job.id, limit=LAST_RUNS) if job else []
        others = sorted((one for one in cards.listing(session) if _tab_of(one) == "open"), key=_place)
        draft = card.payload.get("draft") if isinstance(card.payload, dict) else None
        project = _project_name(session, draft) if isinstance(draft, dict) else None
    shape = shape_of(card.action_kind, card.payload)
    return PaneView(
        card=card,
        job=job,
        run=run,
        heals=past,
        recent=[words.state_of_run(one) for one in reversed(recent)],
        evidence=(run.failure_evidence_json or {}) if run else {},
        shape=shape,
        is_open=card.status == "pending",
        is_changed=shape == "approval" and job is not None and iso(job.updated_at) != card.payload["jobUpdatedAt"],
        following=next((one.id for one in others if one.id != card_id), None),
        preview=preview_of(str(draft["schedule"]), str(draft.get("timezone") or "")) if _is_planned(draft) else None,
        project=project,
    )


def _is_planned(draft: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(draft, dict) and bool(draft.get("schedule"))


def _project_name(session: Session, draft: Mapping[str, Any]) -> str | None:
    number = draft.get("projectId")
    known = session.get(Project, number) if isinstance(number, int) else None
    return known.name if known else str(draft.get("project") or "") or None
