"""Runs over HTTP: list, show, log, abort."""

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue

from scheduler.logs import Stream
from store import runs
from store.errors import Invalid
from store.runs import ACTIVE, STATUSES, Run
from web.api import access, asked, shapes
from web.desk import desk
from web.words import NO_HEAL

blueprint = Blueprint("runs", __name__)

MOST_TEXT_BYTES = 65_536
MOST_LOG_BYTES = 1024 * 1024


@blueprint.get("/cron/runs")
def list_runs() -> ResponseReturnValue:
    """Runs, newest first; of one job, in one state, since a time."""
    access.person_or_own_session()
    with desk().database.read() as session:
        rows = runs.listing(
            session,
            job_id=asked.number("job"),
            status=asked.choice("status", STATUSES),
            since=asked.instant("since"),
            before_id=asked.number("before"),
            limit=asked.limit(),
        )
    return jsonify([shapes.run(row) for row in rows])


@blueprint.get("/cron/runs/<int:run_id>")
def show_run(run_id: int) -> ResponseReturnValue:
    """One run with its evidence."""
    access.person_or_own_session()
    with desk().database.read() as session:
        run = runs.get(session, run_id)
    return jsonify({**shapes.run_in_full(run), "whyNoHeal": NO_HEAL.get(run.heal_decision or "")})


@blueprint.get("/cron/runs/<int:run_id>/log")
def show_log(run_id: int) -> ResponseReturnValue:
    """The raw bytes of one stream from an offset, at most 1 MiB; the headers say where it goes on and if it grows."""
    access.only_the_person()
    stream = _stream()
    offset = asked.number("offset", default=0) or 0
    with desk().database.read() as session:
        run = runs.get(session, run_id)
    part = desk().logs.of(run.job_id, run.id).read(stream, offset, MOST_LOG_BYTES)
    answer = Response(part.data, mimetype="application/octet-stream")
    answer.headers["X-Next-Offset"] = str(part.next)
    # Read before the data was, so that the last bytes of an ended run are never missed.
    answer.headers["X-Run-Active"] = "1" if run.status in ACTIVE else "0"
    return answer


def _stream() -> Stream:
    text = request.args.get("stream", "out")
    if text == "out":
        return "out"
    if text == "err":
        return "err"
    raise Invalid("stream", f"stream: {text!r} is not one of out, err.")


@blueprint.post("/cron/runs/<int:run_id>/abort")
def abort_run(run_id: int) -> ResponseReturnValue:
    """Ends the run's process tree."""
    access.only_the_person()
    reason = asked.body().get("reason") or "aborted by the person"
    run = desk().acting().runs.abort(run_id, str(reason)[:500])
    return jsonify(shapes.run(run)), 202


def texts_of(run: Run) -> tuple[dict[str, str], bool]:
    """The end of both streams as text, and whether that is less than all."""
    logs = desk().logs.of(run.job_id, run.id)
    tails = {"out": logs.tail("out", MOST_TEXT_BYTES), "err": logs.tail("err", MOST_TEXT_BYTES)}
    truncated = logs.size > sum(len(tail) for tail in tails.values())
    return {stream: tail.decode(errors="replace") for stream, tail in tails.items()}, truncated
