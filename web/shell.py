"""What every page has around its content: the sidebar, the engine's state, the tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from flask import g, render_template, request

from store import cards, heals, job_list, projects, sessions
from store.jobs import Job
from store.projects import Project
from web.desk import desk
from web.words import relative


@dataclass(frozen=True)
class Shell:
    """The sidebar."""

    projects: Sequence[Project]
    waiting: int
    failing: int
    healing: int
    talking: int
    engine: str
    engine_tone: str
    version: str
    here: str
    theme: str
    single_keys: bool
    seen: int
    """The newest event when the page was asked for: its stream tells what came after."""


def build_shell() -> Shell:
    with desk().database.read() as session:
        summary = job_list.summarize(session)
        known = projects.listing(session)
        waiting = len(cards.listing(session, limit=1_000))
        healing = len(heals.jobs_with_open(session))
        talking = sum(one.origin != "heal" for one in sessions.at_work(session))
    facts = desk().facts()
    values = facts["settings"]
    word, tone = _engine(summary.next_run_of, facts)
    return Shell(
        projects=known,
        waiting=waiting,
        failing=summary.failing,
        healing=healing,
        talking=talking,
        engine=word,
        engine_tone=tone,
        version=desk().version,
        here=urlsplit(request.headers.get("HX-Current-URL", request.path)).path,
        theme=values["CRONMEND_THEME"]["value"],
        seen=g.seen,
        single_keys=values["CRONMEND_SINGLE_KEYS"]["value"] == "on",
    )


def _engine(coming: Job | None, facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts.get("schedulerState") == "secondary":
        return "Second instance: it only shows", "warn"
    if facts.get("stall"):
        return str(facts["stall"]), "bad"
    if not facts.get("keeperPid"):
        return "Stopped: no job can start. Restart Cronmend.", "bad"
    return (f"Running · next {relative(coming.next_run_at)}" if coming else "Running · nothing planned"), "ok"


def page(template: str, view: Any, title: str) -> str:
    """A whole page around the template of its content."""
    return render_template("page.html", content=template, view=view, title=title, shell=build_shell(), guard=g.guard)


def part(template: str, view: Any) -> str:
    """One fragment, as a page contains it and as it is fetched again."""
    return render_template(template, view=view)


def toast(text: str, tone: str = "ok", link: str | None = None) -> str:
    """A message in the corner, sent along with any answer; `link` is where it leads."""
    return render_template("_toast.html", text=text, tone=tone, link=link)
