"""Jobs over HTTP: list, make, show, edit, remove, run, pause and resume, coming instants."""

import threading
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

from flask import Blueprint, Response, jsonify, make_response, request
from flask.typing import ResponseReturnValue

from scheduler import jobs as use_cases
from scheduler import proposals
from scheduler.instants import parse_instant
from scheduler.schedule import Schedule
from scheduler.why import explain
from scheduler.zones import local_timezone
from store import jobs
from store.clock import iso, now
from store.errors import Conflict, Invalid, NotFound
from store.heals import Heal
from store.jobs import Job
from store.runs import ACTIVE, Run
from store.slot_rates import slot_rate
from web.api import access, asked, shapes
from web.api.runs import texts_of
from web.desk import desk
from web.openings import make_sketch

blueprint = Blueprint("jobs", __name__)

MOST_JOBS = 100_000

WAIT_SECS = 25.0
"""The longest a request waits for a run; then 202, and the client asks again."""

_waiters = threading.BoundedSemaphore(8)


@blueprint.get("/cron/jobs")
def list_jobs() -> ResponseReturnValue:
    """All jobs, in the order they were made."""
    access.person_or_own_session()
    after = asked.number("after", default=0) or 0
    with desk().database.read() as session:
        rows = jobs.listing(session, after_id=after, limit=asked.number("limit", default=1_000, most=10_000) or 1)
    return jsonify([shapes.job(row) for row in rows])


@blueprint.post("/cron/jobs")
def make_job() -> ResponseReturnValue:
    """A new job; the body is its fields.  Asked for by a session it is a proposal that the person decides."""
    session_id = access.person_or_own_session()
    body = asked.body()
    if session_id is not None:
        card = desk().database.write(lambda session: proposals.propose_job(session, body, session_id))
        return jsonify({"cardId": card.id, "status": "pending"}), 202
    job = desk().database.write(lambda session: use_cases.create(session, body))
    return jsonify(shapes.job(job)), 201


@blueprint.get("/cron/jobs/<int:job_id>")
def show_job(job_id: int) -> ResponseReturnValue:
    """One job."""
    access.person_or_own_session()
    with desk().database.read() as session:
        return jsonify(shapes.job_in_full(jobs.get(session, job_id), slot_rate(session, job_id)))


@blueprint.patch("/cron/jobs/<int:job_id>")
def edit_job(job_id: int) -> ResponseReturnValue:
    """Changes the fields in the body."""
    access.only_the_person()
    body = asked.body()
    job = desk().database.write(lambda session: use_cases.edit(session, job_id, body))
    return jsonify(shapes.job(job))


@blueprint.delete("/cron/jobs/<int:job_id>")
def remove_job(job_id: int) -> ResponseReturnValue:
    """Removes the job with its history."""
    access.only_the_person()
    desk().database.write(lambda session: use_cases.remove(session, job_id))
    return jsonify({"id": job_id, "removed": True})


@blueprint.post("/cron/jobs/<int:job_id>/toggle")
def toggle_job(job_id: int) -> ResponseReturnValue:
    """Pauses or resumes the schedule.  A heal session may only resume, and only what was proven."""
    heal = access.heal_of(job_id)
    body = asked.body()
    wanted = body.get("isActive")
    if not isinstance(wanted, bool):
        raise Invalid("isActive", "isActive: must be true or false.")
    if heal is not None:
        said = (_text(body, "rootCause"), _text(body, "fix"))
        job = desk().acting().treatment.resume(heal, said, wanted=wanted)
    elif wanted:
        job = desk().acting().treatment.resume_by_person(job_id)
    else:
        until = _until(job_id, body)
        job = desk().database.write(lambda session: use_cases.pause(session, job_id, until))
    return jsonify(shapes.job(job))


def _text(body: dict[str, Any], field: str) -> str | None:
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise Invalid(field, f"{field}: must be text.")
    return value


def _until(job_id: int, body: dict[str, Any]) -> Any:
    text = _text(body, "until")
    if text is None:
        return None
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
    until = parse_instant(text, job.timezone, now(), field="until")
    if until <= now():
        raise Invalid("until", f"until: {text} is in the past; name a coming time.")
    return until


@blueprint.post("/cron/jobs/draft")
def draft_job() -> ResponseReturnValue:
    """The fields of a job that a sentence means, read by the model where there is a key; nothing is saved."""
    access.only_the_person()
    found = make_sketch(str(asked.body().get("text") or ""))
    return jsonify({"draft": dict(found.fields), "by": found.by, "notes": list(found.notes)})


@blueprint.post("/cron/jobs/<int:job_id>/run")
def run_job(job_id: int) -> ResponseReturnValue:
    """Runs the job now and waits for its end: 200 with the outcome, or 202 while it still runs (follow it)."""
    heal = access.heal_of(job_id)
    engine = desk().acting()
    followed = asked.number("follow")
    if followed is not None:
        _check_followed(followed, job_id, heal)
        run_id = followed
    elif heal is not None:
        run_id = engine.treatment.start_proof(heal)
    else:
        run_id = engine.runs.start(job_id, "manual")
    if not asked.flag("wait", default=True):
        return jsonify({"runId": run_id, "status": "pending"}), 202
    run = _await(run_id)
    if run.status in ACTIVE:
        answer = make_response(jsonify({"runId": run_id, "status": run.status}), 202)
        answer.headers["Retry-After"] = "1"
        return answer
    if heal is not None:
        engine.treatment.record_proof(heal, run)
    return jsonify(_outcome(run, heal))


def _check_followed(run_id: int, job_id: int, heal: Heal | None) -> None:
    with desk().database.read() as session:
        run = session.get(Run, run_id)
    if run is None or run.job_id != job_id or (heal is not None and run.heal_id != heal.id):
        raise NotFound("run of this job", run_id)


def _await(run_id: int) -> Run:
    free = _waiters.acquire(blocking=False)
    try:
        return desk().running().runs.wait(run_id, WAIT_SECS if free else 0.0)
    finally:
        if free:
            _waiters.release()


def _outcome(run: Run, heal: Heal | None) -> shapes.Shape:
    texts, truncated = texts_of(run)
    if heal is not None:
        texts = {stream: desk().running().treatment.redact(text) for stream, text in texts.items()}
    return shapes.ended_run(run, texts, truncated=truncated)


@blueprint.post("/cron/jobs/<int:job_id>/verify")
def verify_job(job_id: int) -> ResponseReturnValue:
    """For a heal session: proves the fix without a real run (verify command, else syntax and imports)."""
    heal = access.heal_of(job_id)
    if heal is None:
        raise Conflict("Only a heal session verifies; use run to run the job.", code="not_a_heal")
    return jsonify(desk().acting().treatment.verify(heal))


@blueprint.post("/cron/jobs/<int:job_id>/wake")
def wake_job(job_id: int) -> ResponseReturnValue:
    """Starts the job with a reason that its run can read; 202 with the run."""
    access.only_the_person()
    body = asked.body()
    context = _text(body, "context")
    skip = body.get("skipIfRunning", False)
    run_id = desk().acting().runs.wake(job_id, context, skip_if_running=bool(skip))
    return jsonify({"runId": run_id, "status": "pending"}), 202


@blueprint.post("/cron/wake")
def wake_jobs() -> ResponseReturnValue:
    """Starts the jobs of these ids, names (`*` stands for anything) and tags; 202 with what became of each."""
    access.only_the_person()
    body = asked.body()
    context, skip = _text(body, "context"), bool(body.get("skipIfRunning", False))
    with desk().database.read() as session:
        chosen = _chosen(jobs.listing(session, limit=MOST_JOBS), body)
    return jsonify([_wake(job, context, skip_if_running=skip) for job in chosen]), 202


def _chosen(every: Sequence[Job], body: dict[str, Any]) -> list[Job]:
    """Raises Invalid for a selection that names nothing, NotFound for an id that there is not."""
    ids = [number for number in asked.texts(body, "ids") if number.isdigit()]
    names, tags = asked.texts(body, "names"), set(asked.texts(body, "tags"))
    if not ids and not names and not tags:
        raise Invalid("ids", "ids: name jobs by ids, names or tags.")
    known = {str(job.id) for job in every}
    for number in ids:
        if number not in known:
            raise NotFound("job", number)
    return [
        job
        for job in every
        if str(job.id) in ids or tags & set(job.tags) or any(fnmatch(job.name.lower(), name.lower()) for name in names)
    ]


def _wake(job: Job, context: str | None, *, skip_if_running: bool) -> dict[str, Any]:
    try:
        run_id = desk().acting().runs.wake(job.id, context, skip_if_running=skip_if_running)
    except Conflict as refused:
        return {"jobId": job.id, "runId": None, "error": {"code": refused.code, "message": refused.message}}
    return {"jobId": job.id, "runId": run_id, "error": None}


@blueprint.get("/cron/jobs/<int:job_id>/next")
def next_of_job(job_id: int) -> ResponseReturnValue:
    """The coming instants of a job as the engine will fire them."""
    access.only_the_person()
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
    if job.schedule is None:
        coming = [job.run_at] if job.run_at and job.run_at > now() else []
        return jsonify([{"at": iso(at), "local": iso(at), "note": None} for at in coming])
    return _instants(Schedule(job.schedule, job.schedule_text or job.schedule, job.timezone))


@blueprint.get("/cron/jobs/<int:job_id>/why")
def why(job_id: int) -> ResponseReturnValue:
    """Why the job did, or did not, or will run at the minute of `at`."""
    access.only_the_person()
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
        at = parse_instant(request.args.get("at", ""), job.timezone, now(), field="at")
        answer = explain(session, job, at)
    return jsonify({"at": iso(answer.at), "kind": answer.kind, "sentence": answer.sentence, "runId": answer.run_id})


@blueprint.get("/cron/next")
def next_of_schedule() -> ResponseReturnValue:
    """The coming instants of any schedule."""
    access.only_the_person()
    text = request.args.get("schedule")
    if text is None:
        raise Invalid("schedule", "schedule: is missing.")
    return _instants(Schedule.parse(text, request.args.get("timezone") or local_timezone()))


def _instants(schedule: Schedule) -> Response:
    start = asked.instant("from") or now()
    count = asked.number("count", default=10, most=1_000) or 1
    coming = schedule.upcoming(start, count)
    return jsonify([{"at": iso(one.at), "local": one.local, "note": one.note} for one in coming])
