"""Sessions over HTTP: list, show with messages."""

from flask import Blueprint, jsonify
from flask.typing import ResponseReturnValue

from store import sessions
from web.api import access, asked, shapes
from web.desk import desk

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
