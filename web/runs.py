"""A run's page: its state, its cause, and its log as it grows."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from scheduler.logs import RunLogs, Stream
from scheduler.places import why_waiting
from store import heals, jobs, runs
from store.clock import now
from store.errors import NotFound
from store.heals import Heal
from store.jobs import Job
from store.runs import ACTIVE, Run
from web import words
from web.desk import Desk, desk
from web.log_search import Found, find_in
from web.shell import page, part, toast
from web.streams import as_stream
from web.whole import read_whole
from web.words import State

blueprint = Blueprint("runs", __name__)

FIRST_BYTES = 128 * 1024
AROUND_BYTES = 8 * 1024
BATCH_BYTES = 64 * 1024
MOST_LINE_CHARS = 4_000
LOOK_SECS = 0.3

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


@dataclass(frozen=True)
class RunView:
    """A run's page without its log."""

    run: Run
    job: Job
    state: State
    evidence: dict[str, Any] | None
    why_no_heal: str | None
    heal: Heal | None
    is_active: bool
    waits: str | None
    is_not_retried: bool


@dataclass(frozen=True)
class LogView:
    """One stream: what is shown at first, and where the rest begins."""

    run_id: int
    stream: Stream
    text: str
    begins: int
    ends: int
    size: str
    is_active: bool
    is_end: bool
    """Whether what is shown reaches to the end: only then it follows."""


@dataclass(frozen=True)
class FoundView:
    run_id: int
    stream: Stream
    sought: str
    found: Found


@dataclass(frozen=True)
class PageView:
    head: RunView
    logs: tuple[LogView, LogView]


@blueprint.get("/runs/<int:run_id>")
def show_run(run_id: int) -> ResponseReturnValue:
    head = _head(run_id)
    logs = (_log(head.run, "out", _place("out")), _log(head.run, "err", _place("err")))
    view = PageView(head, logs)
    return page("runs/run.html", view, f"Run {run_id} of {head.job.name}")


@blueprint.get("/runs/<int:run_id>/panel")
def run_panel(run_id: int) -> ResponseReturnValue:
    return part("runs/_panel.html", _head(run_id))


def _head(run_id: int) -> RunView:
    with desk().database.read() as session:
        run = runs.get(session, run_id)
        job = jobs.get(session, run.job_id)
        heal = heals.of_run(session, run_id)
        waits = why_waiting(session, run, job, desk().environment, now())
    decision = run.heal_decision
    return RunView(
        run=run,
        job=job,
        state=words.state_of_run(run),
        evidence=run.failure_evidence_json,
        why_no_heal=words.NO_HEAL.get(decision or ""),
        heal=heal,
        is_active=run.status in ACTIVE,
        waits=waits,
        is_not_retried=bool(job.retry_on and job.retries > run.retry_number and run.retry_due_at is None),
    )


def _log(run: Run, stream: Stream, at: int | None = None) -> LogView:
    """The end of the stream, or what is around the byte `at`."""
    logs = desk().logs.of(run.job_id, run.id)
    total = logs.length(stream)
    begins = max(0, total - FIRST_BYTES) if at is None else max(0, at - AROUND_BYTES)
    found = logs.read(stream, begins, FIRST_BYTES)
    data = found.data
    cut = data.find(b"\n") + 1
    if begins and cut < len(data):  # a line that is shown is shown from its start, if that is not too far back
        begins, data = begins + cut, data[cut:]
    return LogView(
        run_id=run.id,
        stream=stream,
        text=as_html(data),
        begins=begins,
        ends=found.next,
        is_end=found.next >= total,
        size=words.size(total),
        is_active=run.status in ACTIVE,
    )


def as_html(data: bytes) -> str:
    """Output as text that is safe to show: escaped, without terminal codes, overlong lines cut with a note."""
    text = _ESCAPES.sub(b"", data).decode(errors="replace")
    lines = text.split("\n")
    return html.escape("\n".join(_plain(line) for line in lines), quote=False)


def _plain(line: str) -> str:
    line = line.removesuffix("\r").rpartition("\r")[2].translate(_CONTROLS)
    if len(line) <= MOST_LINE_CHARS:
        return line
    return f"{line[:MOST_LINE_CHARS]} … [{len(line) - MOST_LINE_CHARS:,} more characters; download the log to see them]"


def _place(stream: str) -> int | None:
    return read_whole(request.args.get(stream, ""))


@blueprint.get("/runs/<int:run_id>/log/<stream>/find")
def find(run_id: int, stream: str) -> ResponseReturnValue:
    """Where a stream says something: how often, and the first lines that do."""
    chosen = _stream(stream)
    with desk().database.read() as session:
        run = runs.get(session, run_id)
    path = desk().logs.of(run.job_id, run.id).path(chosen)
    sought = request.args.get("q", "").strip()
    return part("runs/_found.html", FoundView(run_id, chosen, sought, find_in(path, sought)))


@blueprint.get("/runs/<int:run_id>/log/<stream>/live")
def live_log(run_id: int, stream: str) -> ResponseReturnValue:
    """What the stream grows by, until the run has ended.  A message's id is the offset after it."""
    chosen = _stream(stream)
    with desk().database.read() as session:
        run = runs.get(session, run_id)
    asked = request.headers.get("Last-Event-ID") or request.args.get("from", "0")
    logs = desk().logs.of(run.job_id, run.id)
    lines = _grow(desk(), run_id, logs, chosen, read_whole(asked) or 0)
    return as_stream(lines)


def _grow(at: Desk, run_id: int, logs: RunLogs, stream: Stream, offset: int) -> Iterator[str]:
    yield "retry: 500\n: growing\n\n"
    while not at.feed.is_stopped:
        with at.database.read() as session:
            is_active = runs.get(session, run_id).status in ACTIVE
        # The state is read first: when it says ended, what is read now is all there is.
        found = logs.read(stream, offset, BATCH_BYTES)
        data = found.data
        whole = data if not is_active or len(data) == BATCH_BYTES else data[: data.rfind(b"\n") + 1]
        if whole:
            offset = found.next if len(whole) == len(data) else offset + len(whole)
            yield _message(as_html(whole), offset)
        elif not is_active:
            yield f"id: {offset}\nevent: done\ndata:\n\n"
            return
        else:
            yield ""
            at.feed.wait(LOOK_SECS)


def _message(text: str, offset: int) -> str:
    shown = "<span>" + text + "</span>"
    return f"id: {offset}\n" + "".join(f"data: {line}\n" for line in shown.split("\n")) + "\n"


@blueprint.get("/runs/<int:run_id>/log/<stream>/download")
def download(run_id: int, stream: str) -> ResponseReturnValue:
    """The raw bytes as a file."""
    chosen = _stream(stream)
    with desk().database.read() as session:
        run = runs.get(session, run_id)
    logs = desk().logs.of(run.job_id, run.id)
    answer = Response(_raw(logs, chosen), mimetype="application/octet-stream")
    answer.headers["Content-Disposition"] = f'attachment; filename="run-{run_id}.{chosen}.log"'
    return answer


def _raw(logs: RunLogs, stream: Stream) -> Iterator[bytes]:
    offset = 0
    while (found := logs.read(stream, offset, 1 << 20)).data:
        offset = found.next
        yield found.data


def _stream(text: str) -> Stream:
    if text == "out":
        return "out"
    if text == "err":
        return "err"
    raise NotFound("stream", text)


@blueprint.post("/runs/<int:run_id>/stop")
def stop(run_id: int) -> ResponseReturnValue:
    desk().acting().runs.abort(run_id, "stopped by the person")
    return toast(f"Run {run_id} is being stopped.")
