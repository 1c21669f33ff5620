"""Heals over HTTP: list, show, diff, start by hand, undo."""

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue

from heal.files import folder_of
from store import heals
from web.api import access, asked, shapes
from web.desk import desk

blueprint = Blueprint("heals", __name__)

STATUSES = ("pending", "spawned", "fixed", "abandoned")


@blueprint.get("/cron/heals")
def list_heals() -> ResponseReturnValue:
    """Heals, newest first; of one job, in one state."""
    access.only_the_person()
    with desk().database.read() as session:
        rows = heals.listing(
            session, job_id=asked.number("job"), status=asked.choice("status", STATUSES), limit=asked.limit()
        )
    return jsonify([shapes.heal(row) for row in rows])


@blueprint.get("/cron/heals/<int:heal_id>")
def show_heal(heal_id: int) -> ResponseReturnValue:
    """One heal with the files it changed and what proved it."""
    access.only_the_person()
    with desk().database.read() as session:
        row = heals.get(session, heal_id)
        edits = [{"path": edit.path, "by": edit.by} for edit in heals.edits(session, heal_id)]
        proof = heals.latest_verification(session, heal_id)
    verification = {"kind": proof.kind, "runId": proof.run_id, "detail": proof.detail} if proof else None
    return jsonify({**shapes.heal(row), "edits": edits, "verification": verification})


@blueprint.get("/cron/heals/<int:heal_id>/diff")
def show_diff(heal_id: int) -> ResponseReturnValue:
    """The heal's changes as a unified diff."""
    access.only_the_person()
    with desk().database.read() as session:
        folder = folder_of(session, heals.get(session, heal_id))
    text = desk().files.diff(heal_id, folder) if folder is not None else b""
    return Response(text, mimetype="text/plain")


@blueprint.post("/cron/jobs/<int:job_id>/heal")
def start_heal(job_id: int) -> ResponseReturnValue:
    """Fix it: opens a heal by hand for the job's newest failed run.

    A run that has been healed before gets an ordinary session: `healId` is null, and the job is not paused.
    """
    access.only_the_person()
    started = desk().acting().by_hand.fix(job_id)
    with desk().database.read() as session:
        heal = heals.get(session, started.heal_id) if started.heal_id is not None else None
    facts = {"ok": True, "healId": started.heal_id, "sessionId": started.session_id, "isPaused": heal is not None}
    return jsonify({**(shapes.heal(heal) if heal else {}), **facts}), 202


@blueprint.post("/cron/heals/<int:heal_id>/undo")
def undo_heal(heal_id: int) -> ResponseReturnValue:
    """Puts the heal's files back as they were; names those that were changed since and stay."""
    access.only_the_person()
    return jsonify(desk().acting().treatment.undo(heal_id))
