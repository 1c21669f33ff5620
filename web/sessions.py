"""Sessions: the list, a session's page with its transcript, and what a person does with one."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, make_response, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from heal.prompt import write_request
from store import cards, heals, jobs, projects, runs, sessions
from store.errors import Invalid, Refusal
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.sessions import Conversation
from web import words
from web.desk import desk
from web.openings import start_session, stop_session
from web.shell import page, part, toast
from web.transcripts import TranscriptView, steps_of
from web.whole import read_whole
from web.words import State

blueprint = Blueprint("sessions", __name__)

MOST_SESSIONS = 200


@dataclass(frozen=True)
class Row:
    session: Conversation
    state: State
    project: str


@dataclass(frozen=True)
class SessionView:
    """A session's page without its transcript.  `job` and `heal` are None where it has none."""

    session: Conversation
    state: State
    project: Project
    job: Job | None
    heal: Heal | None
    holds_job: bool


@dataclass(frozen=True)
class PageView:
    head: SessionView
    transcript: TranscriptView


@dataclass(frozen=True)
class OpeningView:
    """The dialog that starts a session.  With a job it is a fix by hand."""

    heading: str
    prompt: str
    projects: Sequence[Project]
    project_id: int | None
    job: Job | None
    problem: str | None


@blueprint.get("/sessions")
def list_sessions() -> ResponseReturnValue:
    return page("sessions/index.html", _rows(), "Sessions")


@blueprint.get("/sessions/rows")
def rows() -> ResponseReturnValue:
    return part("sessions/_list.html", _rows())


def _rows() -> Sequence[Row]:
    with desk().database.read() as session:
        found = sessions.listing(session, limit=MOST_SESSIONS)
        names = {project.id: words.project_name(project) for project in projects.listing(session)}
    return [Row(one, words.state_of_session(one), names[one.project_id]) for one in found]


@blueprint.get("/sessions/<int:session_id>")
def show_session(session_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        view = PageView(_head(session, session_id), _transcript(session, session_id))
    return page("sessions/session.html", view, view.head.session.title)


@blueprint.get("/sessions/<int:session_id>/panel")
def session_panel(session_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        return part("sessions/_panel.html", _head(session, session_id))


@blueprint.get("/sessions/<int:session_id>/transcript")
def transcript(session_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        return part("sessions/_transcript.html", _transcript(session, session_id))


def _head(session: Session, session_id: int) -> SessionView:
    found = sessions.get(session, session_id)
    job = session.get(Job, found.job_id) if found.job_id else None
    return SessionView(
        session=found,
        state=words.state_of_session(found),
        project=projects.get(session, found.project_id),
        job=job,
        heal=heals.of_session(session, session_id),
        holds_job=job is not None and job.paused_session_id == session_id,
    )


def _transcript(session: Session, session_id: int) -> TranscriptView:
    found = sessions.get(session, session_id)
    return TranscriptView(
        source=f"/sessions/{session_id}/transcript",
        wakes=(f"session-{session_id}",),
        steps=steps_of(sessions.messages(session, session_id), "You" if found.origin == "manual" else "Cronmend"),
        waiting="The session is starting.",
    )


# What a person does


@blueprint.get("/sessions/new")
def new_session() -> ResponseReturnValue:
    """The dialog: empty for a project, filled in with the error for the job of a card or a failed job."""
    return part("sessions/_new.html", _opening())


def _opening() -> OpeningView:
    with desk().database.read() as session:
        known = tuple(projects.listing(session))
        job_id = _number("job")
        card_id = _number("card")
        run = None
        if card_id is not None:
            card = cards.get(session, card_id)
            job_id, run = card.job_id, runs.get(session, card.run_id) if card.run_id else None
        job = jobs.get(session, job_id) if job_id is not None else None
        run = run or (runs.latest_failed(session, job.id) if job else None)
    return OpeningView(
        heading=f"Fix {job.name} with AI" if job else "New session",
        prompt=write_request(job, run) if job and run else "",
        projects=known,
        project_id=job.project_id if job else _number("project"),
        job=job,
        problem=_why_not(),
    )


def _number(name: str) -> int | None:
    text = request.values.get(name, "")
    return read_whole(text)


def _why_not() -> str | None:
    try:
        desk().acting().sessions.need_key()
    except Refusal as refusal:
        return refusal.message
    return None


@blueprint.post("/sessions")
def start() -> ResponseReturnValue:
    prompt = request.form.get("prompt", "").strip()
    if not prompt:
        raise Invalid("prompt", "Write what is to be done.")
    session_id = start_session(prompt, project_id=_number("project"), job_id=_number("job"))
    answer = make_response("")
    answer.headers["HX-Redirect"] = f"/sessions/{session_id}"
    return answer


@blueprint.post("/sessions/<int:session_id>/messages")
def send(session_id: int) -> ResponseReturnValue:
    text = request.form.get("text", "").strip()
    if not text:
        raise Invalid("text", "Write something first.")
    desk().acting().sessions.send(session_id, text)
    answer = make_response("")
    answer.headers["HX-Trigger"] = "said"
    return answer


@blueprint.post("/sessions/<int:session_id>/stop")
def stop(session_id: int) -> ResponseReturnValue:
    stop_session(session_id)
    return toast("It is being stopped.")


@blueprint.post("/sessions/<int:session_id>/archive")
def archive(session_id: int) -> ResponseReturnValue:
    desk().acting().by_hand.archive(session_id)
    answer = make_response("")
    answer.headers["HX-Redirect"] = "/sessions"
    return answer
