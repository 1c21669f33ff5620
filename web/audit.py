"""What happened: the events of jobs, runs, heals, sessions and cards, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from store import events, jobs
from store.events import Event
from web.desk import desk
from web.shell import page, part
from web.whole import read_whole

blueprint = Blueprint("audit", __name__)

FAMILIES = ("job", "run", "heal", "session", "card", "toast", "settings", "project")
A_PAGE = 200


@dataclass(frozen=True)
class AuditView:
    """`job_id` and `job_name`: of the job that alone is asked for; `before` where the earlier ones begin."""

    events: Sequence[Event]
    names: dict[int, str]
    family: str
    job_id: int | None
    before: int | None


@blueprint.get("/audit")
def show_audit() -> ResponseReturnValue:
    return page("audit/index.html", _view(), "What happened")


@blueprint.get("/audit/rows")
def rows() -> ResponseReturnValue:
    return part("audit/_rows.html", _view())


def _view() -> AuditView:
    family = request.args.get("kind", "")
    job_id = read_whole(request.args.get("job", ""))
    before = read_whole(request.args.get("before", ""))
    chosen = family if family in FAMILIES else ""
    with desk().database.read() as session:
        kind = f"{chosen}." if chosen else None
        found = events.listing(session, kind=kind, job_id=job_id, before_id=before, limit=A_PAGE + 1)
        shown = found[:A_PAGE]
        names = jobs.names(session, {event.job_id for event in shown if event.job_id is not None})
    return AuditView(shown, names, chosen, job_id, shown[-1].id if len(found) > A_PAGE else None)
