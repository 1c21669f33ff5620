"""A heal's page: what broke, what was said and done, what changed, and what proved it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from heal.files import folder_of
from store import heals, jobs, runs, sessions
from store.heals import Heal, HealEdit, Verification
from store.jobs import Job
from store.runs import Run
from store.sessions import Conversation
from web import words
from web.desk import desk
from web.shell import page, part, toast
from web.transcripts import Step, TranscriptView, steps_of
from web.words import State

blueprint = Blueprint("heals", __name__)

MOST_DIFF_LINES = 4_000


@dataclass(frozen=True)
class DiffLine:
    """`kind`: file, hunk, added, removed or same."""

    kind: str
    text: str


@dataclass(frozen=True)
class HealView:
    """A heal's page without transcript and diff."""

    heal: Heal
    job: Job
    run: Run
    state: State
    conversation: Conversation | None
    why: str
    proof: Verification | None
    proof_words: str
    edits: Sequence[HealEdit]
    evidence: dict[str, Any]
    is_open: bool


@dataclass(frozen=True)
class PageView:
    head: HealView
    transcript: TranscriptView
    diff: "DiffView"


@dataclass(frozen=True)
class DiffView:
    heal_id: int
    lines: Sequence[DiffLine]
    is_cut: bool


@blueprint.get("/heals/<int:heal_id>")
def show_heal(heal_id: int) -> ResponseReturnValue:
    head = _head(heal_id)
    view = PageView(head, _transcript(head.heal), _diff(heal_id))
    return page("heals/heal.html", view, f"Heal of {head.job.name}")


@blueprint.get("/heals/<int:heal_id>/panel")
def heal_panel(heal_id: int) -> ResponseReturnValue:
    return part("heals/_panel.html", _head(heal_id))


@blueprint.get("/heals/<int:heal_id>/transcript")
def transcript(heal_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        heal = heals.get(session, heal_id)
    return part("sessions/_transcript.html", _transcript(heal))


@blueprint.get("/heals/<int:heal_id>/diff")
def diff(heal_id: int) -> ResponseReturnValue:
    return part("heals/_diff.html", _diff(heal_id))


@blueprint.post("/heals/<int:heal_id>/stop")
def stop(heal_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        heal = heals.get(session, heal_id)
    job = desk().acting().treatment.resume_by_person(heal.job_id)
    return toast(f"The heal is stopped; {job.name} is back on its schedule.")


@blueprint.post("/heals/<int:heal_id>/undo")
def undo(heal_id: int) -> ResponseReturnValue:
    answer = desk().acting().treatment.undo(heal_id)
    back, kept = len(answer["restored"]), answer["kept"]
    said = f"{back} {'file is' if back == 1 else 'files are'} as before the heal."
    return toast(said + (f" Changed since and left alone: {', '.join(kept)}." if kept else ""))


def _head(heal_id: int) -> HealView:
    with desk().database.read() as session:
        heal = heals.get(session, heal_id)
        job, run = jobs.get(session, heal.job_id), runs.get(session, heal.run_id)
        conversation = sessions.get(session, heal.session_id) if heal.session_id else None
        proof = heals.latest_verification(session, heal_id)
        edits = heals.edits(session, heal_id)
    return HealView(
        heal=heal,
        job=job,
        run=run,
        state=words.state_of_heal(heal),
        conversation=conversation,
        why=words.why_abandoned(heal.abandoned_reason or heal.closing_reason),
        proof=proof,
        proof_words=_proof_words(proof),
        edits=edits,
        evidence=run.failure_evidence_json or {},
        is_open=heal.status in heals.OPEN,
    )


def _proof_words(proof: Verification | None) -> str:
    if proof is None:
        return "Nothing is proven yet."
    return {
        "run": f"Verified by a successful run (run {proof.run_id}) at {words.moment(proof.at)}.",
        "verify": f"Verified by the job's own check at {words.moment(proof.at)}.",
        "unverified": "Not verified: syntax was checked, the job was not run.",
    }.get(proof.kind, proof.kind)


def _transcript(heal: Heal) -> TranscriptView:
    wakes = [f"heal-{heal.id}"]
    steps: list[Step] = []
    if heal.session_id is not None:
        wakes.append(f"session-{heal.session_id}")
        with desk().database.read() as session:
            steps = steps_of(sessions.messages(session, heal.session_id), "Cronmend")
    waiting = "The session is starting." if heal.status in heals.OPEN else "Nothing was said."
    return TranscriptView(f"/heals/{heal.id}/transcript", wakes, steps, waiting)


def _diff(heal_id: int) -> DiffView:
    with desk().database.read() as session:
        folder = folder_of(session, heals.get(session, heal_id))
    text = desk().files.diff(heal_id, folder).decode(errors="replace") if folder is not None else ""
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    return DiffView(heal_id, [_diff_line(line) for line in lines[:MOST_DIFF_LINES]], len(lines) > MOST_DIFF_LINES)


def _diff_line(line: str) -> DiffLine:
    shown = line.removesuffix("\n").replace("\r", "\\r")
    if line.startswith("diff --git"):
        return DiffLine("file", shown.rpartition(" b/")[2])
    if line.startswith(("---", "+++", "old mode", "new mode", "new file", "deleted", "new folder", "Binary")):
        return DiffLine("note", shown)
    kind = {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1], "same")
    return DiffLine(kind, shown)
