"""Sessions over HTTP: list, show with messages, start, go on, stop, archive."""

from typing import Any

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue

from scheduler.drafts import existing_folder
from store import projects, sessions
from store.errors import Invalid
from web.api import access, asked, shapes
from web.desk import desk
from web.openings import start_session, stop_session

blueprint = Blueprint("sessions", __name__)


@blueprint.get("/sessions")
def list_sessions() -> ResponseReturnValue:
    """Sessions, newest first."""
    access.only_the_person()
    with desk().database.read() as session:
        rows = sessions.listing(session, limit=asked.limit())
    return jsonify([shapes.session(row) for row in rows])


@blueprint.get("/sessions/<int:session_id>")
def show_session(session_id: int) -> ResponseReturnValue:
    """One session with its messages."""
    access.only_the_person()
    with desk().database.read() as session:
        row = sessions.get(session, session_id)
        messages = sessions.messages(session, session_id)
    return jsonify({**shapes.session(row), "messages": [shapes.message(one) for one in messages]})


@blueprint.post("/sessions")
def start() -> ResponseReturnValue:
    """A new session in a project; with `jobId` one that repairs the job by hand and pauses it meanwhile."""
    access.only_the_person()
    body = asked.body()
    job_id = body.get("jobId")
    if job_id is not None and not isinstance(job_id, int):
        raise Invalid("jobId", "jobId: must be a number.")
    project_id = None if job_id is not None else _project(body)
    session_id = start_session(_text(body, "prompt"), project_id=project_id, job_id=job_id)
    return _shape(session_id), 202


@blueprint.post("/sessions/<int:session_id>/messages")
def send(session_id: int) -> ResponseReturnValue:
    """Says something more in a session that is not at work."""
    access.only_the_person()
    desk().acting().sessions.send(session_id, _text(asked.body(), "text"))
    return _shape(session_id), 202


@blueprint.post("/sessions/<int:session_id>/stop")
def stop(session_id: int) -> ResponseReturnValue:
    """Ends what is at work in the session; of an open heal, the heal."""
    access.only_the_person()
    stop_session(session_id)
    return _shape(session_id), 202


@blueprint.post("/sessions/<int:session_id>/archive")
def archive(session_id: int) -> ResponseReturnValue:
    """Puts the session away; a job that it held still goes on."""
    access.only_the_person()
    desk().acting().by_hand.archive(session_id)
    return _shape(session_id)


def _shape(session_id: int) -> Response:
    with desk().database.read() as session:
        return jsonify(shapes.session(sessions.get(session, session_id)))


def _text(body: dict[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Invalid(field, f"{field}: is missing; write what is to be done.")
    return value.strip()


def _project(body: dict[str, Any]) -> int | None:
    named = body.get("projectId", body.get("project"))
    if named is None:
        return None
    if isinstance(named, int) or str(named).isdigit():
        return int(named)
    folder = existing_folder("project", str(named))
    return desk().database.write(lambda session: projects.add(session, folder)).id
