"""Cron Jobs: the list, a job's page, the editor, and what is done with a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import Blueprint, Response, make_response, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from scheduler import jobs as use_cases
from scheduler.instants import parse_instant
from scheduler.sample import sample_folder, write_sample
from scheduler.schedule import Instant, Schedule
from scheduler.why import explain
from scheduler.zones import successors
from store import heals, job_list, jobs, projects, runs
from store.clock import iso, now
from store.errors import Invalid, Refusal
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.runs import Run
from store.slot_rates import SlotRate, slot_rate
from web import words
from web.desk import desk
from web.job_form import COMING, Form, again, find_problems, form_of, new_form, preview_of, read_form, sketched
from web.openings import make_sketch, reader
from web.shell import page, part, toast
from web.whole import read_whole
from web.words import State

blueprint = Blueprint("jobs", __name__)

FIXED_AGAIN = (
    "A heal has worked on this run before: an ordinary session with the file tools has been started, "
    "and the job is not paused."
)
A_PAGE = 100
MOST_ROWS = 10_000
LAST_RUNS = 12
HISTORY = 50


@dataclass(frozen=True)
class Row:
    """A job in the list."""

    job: Job
    state: State
    schedule: str
    project: str | None
    last_runs: Sequence[tuple[int, State]]
    cause: str | None
    failed_run: int | None
    heal: Heal | None


@dataclass(frozen=True)
class ListView:
    """The list with its filters."""

    rows: Sequence[Row]
    chosen: str
    sought: str
    counts: Mapping[str, int]
    total: int
    limit: int
    next_limit: int | None
    """How many rows the next look shows, when there are more."""


@dataclass(frozen=True)
class JobView:
    """A job's page."""

    row: Row
    coming: Sequence[Instant]
    rate: SlotRate
    zones: Sequence[str]
    """Zones that may take the place of the job's own, when that is gone."""

    folder: str | None
    last_heal: Heal | None
    history: "HistoryView"


@dataclass(frozen=True)
class HistoryView:
    job_id: int
    runs: Sequence[Run]
    more_before: int | None


@blueprint.get("/jobs")
def list_jobs() -> ResponseReturnValue:
    return page("jobs/index.html", _list_view(), "Cron Jobs")


@blueprint.get("/jobs/rows")
def rows() -> ResponseReturnValue:
    return part("jobs/_list.html", _list_view())


def _list_view() -> ListView:
    chosen = request.args.get("show", "all")
    sought = request.args.get("q", "").strip()
    limit = min(read_whole(request.args.get("limit", "")) or A_PAGE, MOST_ROWS)
    with desk().database.read() as session:
        found = job_list.search(session, chosen, sought, limit + 1)
        shown = _rows(session, found.jobs[:limit])
    return ListView(
        rows=shown,
        chosen=chosen if chosen in job_list.SHOWS else "all",
        sought=sought,
        counts=found.counts,
        total=found.total,
        limit=limit,
        next_limit=limit + A_PAGE if len(found.jobs) > limit else None,
    )


def _rows(session: Session, every: Sequence[Job]) -> list[Row]:
    ids = [job.id for job in every]
    running = {run.job_id for run in runs.all_active(session) if run.status in runs.LIVE}
    at_work = {heal.job_id: heal for heal in heals.all_open(session)}
    names = {project.id: project.name for project in projects.listing(session)}
    last = job_list.last_runs(session, ids, LAST_RUNS)
    broken = [recent[0][0] for recent in last.values() if recent[0][1] in runs.FAILED]
    failed = {run.job_id: run for run in runs.of_ids(session, broken)}
    return [
        Row(
            job=job,
            state=words.state_of_job(job, is_running=job.id in running),
            schedule=words.schedule_words(job),
            project=names.get(job.project_id) if job.project_id else None,
            last_runs=[(run_id, words.RUNS[status]) for run_id, status in reversed(last.get(job.id, []))],
            cause=(failed[job.id].cause or failed[job.id].error) if job.id in failed else job.blocked_reason,
            failed_run=failed[job.id].id if job.id in failed else None,
            heal=at_work.get(job.id),
        )
        for job in every
    ]


@dataclass(frozen=True)
class WhyView:
    sentence: str
    run_id: int | None


@blueprint.get("/jobs/<int:job_id>")
def show_job(job_id: int) -> ResponseReturnValue:
    view = _job_view(job_id)
    return page("jobs/job.html", view, view.row.job.name)


@blueprint.get("/jobs/<int:job_id>/panel")
def job_panel(job_id: int) -> ResponseReturnValue:
    return part("jobs/_panel.html", _job_view(job_id))


@blueprint.get("/jobs/<int:job_id>/history")
def job_history(job_id: int) -> ResponseReturnValue:
    before = request.args.get("before", "")
    with desk().database.read() as session:
        view = _history(session, job_id, read_whole(before))
    return part("jobs/_history.html", view)


def _job_view(job_id: int) -> JobView:
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
        project = projects.get(session, job.project_id) if job.project_id else None
        known = heals.listing(session, job_id=job_id, limit=1)
        (row,) = _rows(session, [job])
        history = _history(session, job_id, None)
        rate = slot_rate(session, job_id)
    return JobView(
        row=row,
        coming=_coming(job),
        rate=rate,
        zones=successors(job.timezone),
        folder=job.cwd or (project.folder_path if project else None),
        last_heal=known[0] if known else None,
        history=history,
    )


@blueprint.get("/jobs/<int:job_id>/why")
def why(job_id: int) -> ResponseReturnValue:
    """The answer to "did it run then, and if not why"."""
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
        try:
            answer = explain(session, job, parse_instant(request.args.get("at", ""), job.timezone, now()))
        except Invalid as problem:
            return part("jobs/_why.html", WhyView(problem.message, None))
    return part("jobs/_why.html", WhyView(answer.sentence, answer.run_id))


def _coming(job: Job) -> Sequence[Instant]:
    if job.schedule is None or not job.is_active:
        return []
    try:
        return Schedule(job.schedule, job.schedule_text or job.schedule, job.timezone).upcoming(now(), COMING)
    except Refusal:
        return []


def _history(session: Session, job_id: int, before: int | None) -> HistoryView:
    found = runs.listing(session, job_id=job_id, before_id=before, limit=HISTORY + 1)
    shown = found[:HISTORY]
    return HistoryView(job_id, shown, shown[-1].id if len(found) > HISTORY else None)


# The editor


@blueprint.get("/jobs/new")
def new_job() -> ResponseReturnValue:
    project = request.args.get("project", "")
    return part("jobs/_editor.html", _new_form(read_whole(project)))


def _new_form(project_id: int | None = None) -> Form:
    return new_form(_projects(), project_id, has_key=reader() is not None)


@blueprint.post("/jobs/describe")
def describe() -> ResponseReturnValue:
    """A sentence fills in the editor; nothing is saved."""
    form = request.form
    try:
        found = make_sketch(form.get("description", ""), form.get("timezone", ""))
    except Invalid as problem:
        said = problem.message.partition(": ")[2]
        return part("jobs/_editor.html", again(_new_form(), form, {"description": said})), 422
    return part("jobs/_editor.html", sketched(_new_form(), form, found))


@blueprint.get("/jobs/<int:job_id>/edit")
def edit_job(job_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
    return part("jobs/_editor.html", form_of(job, _projects()))


@blueprint.post("/jobs/preview")
def preview() -> ResponseReturnValue:
    return part("jobs/_preview.html", preview_of(request.form.get("schedule", ""), request.form.get("timezone", "")))


@blueprint.post("/jobs")
def save_new() -> ResponseReturnValue:
    base = _new_form()
    body = read_form(request.form)
    problems = find_problems(desk().database, body, use_cases.create)
    if problems:
        return part("jobs/_editor.html", again(base, request.form, problems)), 422
    job = desk().database.write(lambda session: use_cases.create(session, body))
    return _saved(f"{job.name} is saved. Next run {words.relative(job.next_run_at)}.")


@blueprint.post("/jobs/<int:job_id>")
def save_job(job_id: int) -> ResponseReturnValue:
    with desk().database.read() as session:
        job = jobs.get(session, job_id)
    base = form_of(job, _projects())
    if request.form.get("seen") != iso(job.updated_at) and not request.form.get("overwrite"):
        notice = f"This job was changed elsewhere at {words.moment(job.updated_at)}. Save again to keep yours."
        return part("jobs/_editor.html", replace(again(base, request.form, {}, notice), seen=iso(job.updated_at))), 409
    body = read_form(request.form)
    patch = _changes(job, body)
    if not patch:
        return _saved("Nothing was changed.")
    problems = find_problems(desk().database, patch, lambda session, fields: use_cases.edit(session, job_id, fields))
    if problems:
        return part("jobs/_editor.html", again(base, request.form, problems)), 422
    desk().database.write(lambda session: use_cases.edit(session, job_id, patch))
    return _saved(f"{job.name} is saved.")


def _changes(job: Job, body: dict[str, Any]) -> dict[str, Any]:
    """The fields that differ from what is stored; cleared ones go back to what a new job has."""
    present = use_cases.draft_of(job)
    patch = {key: value for key, value in body.items() if present.get(key) != value}
    cleared = {
        key: None
        for key in ("cwd", "verifyCommand", "timeoutSecs", "catchUpMaxAgeSecs", "expectWithinSecs", "projectId")
        if key in present
    }
    patch |= {
        key: value
        for key, value in cleared.items()
        if key not in body and not (key == "projectId" and "project" in body)
    }
    return patch


def _saved(text: str) -> Response:
    answer = make_response(toast(text))
    answer.headers["HX-Trigger"] = "dialog-done"
    return answer


def _projects() -> tuple[Project, ...]:
    with desk().database.read() as session:
        return tuple(projects.listing(session))


# What is done with a job


@blueprint.post("/jobs/<int:job_id>/run")
def run_now(job_id: int) -> ResponseReturnValue:
    run_id = desk().acting().runs.start(job_id, "manual")
    return render_template("_toast.html", text=f"Run {run_id} has been started.", tone="ok", link=f"/runs/{run_id}")


@blueprint.post("/jobs/<int:job_id>/pause")
def pause(job_id: int) -> ResponseReturnValue:
    job = desk().database.write(lambda session: use_cases.pause(session, job_id))
    return toast(f"{job.name} is paused.")


@blueprint.post("/jobs/<int:job_id>/resume")
def resume(job_id: int) -> ResponseReturnValue:
    job = desk().acting().treatment.resume_by_person(job_id)
    return toast(f"{job.name} is back on its schedule.")


@blueprint.post("/jobs/<int:job_id>/zone")
def set_zone(job_id: int) -> ResponseReturnValue:
    """Another zone in place of one that is gone: the job is planned anew."""
    zone = request.form.get("value", "")
    job = desk().decide(lambda session: use_cases.edit(session, job_id, {"timezone": zone}))
    return toast(f"{job.name} keeps the time of {zone} now. Next run {words.relative(job.next_run_at)}.")


@blueprint.post("/jobs/<int:job_id>/healing")
def set_healing(job_id: int) -> ResponseReturnValue:
    """The switch posts the value it wants, so that pressing it twice does no harm."""
    wanted = request.form.get("value") == "on"
    job = desk().database.write(lambda session: use_cases.edit(session, job_id, {"healingEnabled": wanted}))
    said = toast(f"Self-Healing is {'on' if job.healing_enabled else 'off'} for {job.name}.")
    return render_template("jobs/_healing_switch.html", job=job) + said


@blueprint.post("/jobs/<int:job_id>/delete")
def delete(job_id: int) -> ResponseReturnValue:
    desk().database.write(lambda session: use_cases.remove(session, job_id))
    answer = make_response("")
    answer.headers["HX-Redirect"] = "/jobs"
    return answer


@blueprint.post("/jobs/<int:job_id>/heal")
def fix_it(job_id: int) -> ResponseReturnValue:
    started = desk().acting().by_hand.fix(job_id)
    if started.heal_id is None:
        return toast(FIXED_AGAIN, link=f"/sessions/{started.session_id}")
    return toast("A heal session has been started.", link=f"/heals/{started.heal_id}")


@blueprint.post("/jobs/sample")
def make_sample() -> ResponseReturnValue:
    """The sample job, started at once so that its heal can be watched."""
    fields = write_sample(sample_folder())
    job = desk().database.write(lambda session: use_cases.create(session, fields))
    desk().acting().runs.start(job.id, "manual")
    answer = make_response("")
    answer.headers["HX-Redirect"] = f"/jobs/{job.id}"
    return answer
