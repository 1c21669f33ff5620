"""Projects over HTTP: list, add, remove."""

from flask import Blueprint, jsonify
from flask.typing import ResponseReturnValue

from scheduler import proposals
from scheduler.drafts import existing_folder
from store import projects
from store.errors import Invalid
from web.api import access, asked, shapes
from web.desk import desk

blueprint = Blueprint("projects", __name__)


@blueprint.get("/projects")
def list_projects() -> ResponseReturnValue:
    """All projects."""
    access.only_the_person()
    with desk().database.read() as session:
        return jsonify([shapes.project(row) for row in projects.listing(session)])


@blueprint.post("/projects")
def add_project() -> ResponseReturnValue:
    """The project of a folder, made when there is none yet."""
    access.only_the_person()
    body = asked.body()
    path = body.get("folderPath")
    if not isinstance(path, str) or not path:
        raise Invalid("folderPath", "folderPath: is missing; name a folder.")
    folder = existing_folder("folderPath", path)
    name = body.get("name")
    project = desk().database.write(lambda session: projects.add(session, folder, str(name) if name else None))
    return jsonify(shapes.project(project)), 201


@blueprint.delete("/projects/<int:project_id>")
def remove_project(project_id: int) -> ResponseReturnValue:
    """Forgets the project; its folder stays as it is.  Asked for by a session it is a proposal."""
    session_id = access.person_or_own_session()
    if session_id is not None:
        why = str(asked.body().get("why") or "")
        card = desk().database.write(lambda session: proposals.propose_removal(session, project_id, why, session_id))
        return jsonify({"cardId": card.id, "status": "pending"}), 202
    desk().database.write(lambda session: projects.remove(session, project_id))
    return jsonify({"id": project_id, "removed": True})
