"""The job editor's form: reading it, filling it, and all that is wrong with it at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from scheduler.jobs import draft_of
from scheduler.schedule import Instant, Schedule
from scheduler.sketches import BY_CLAUDE, BY_WORDS, Sketch
from scheduler.zones import local_timezone
from store.clock import iso, now
from store.database import Database
from store.errors import Invalid
from store.jobs import Job
from store.projects import Project
from web.whole import read_whole

NUMBERS = ("timeoutSecs", "retries", "retryBackoffSecs", "jitterSecs", "catchUpMaxAgeSecs", "expectWithinSecs")
TARGETS = ("command", "prompt")
TEXTS = ("name", "cwd", "timezone", "verifyCommand", "cleanupCommand", "overlap", "catchUp", "effects", "pool")
MOST_PROBLEMS = 8
COMING = 10

# What stands in for a wrong value while the others are looked at.
_STAND_INS: Mapping[str, Any] = {
    "name": "x",
    "command": "true",
    "prompt": "x",
    "schedule": "hourly",
    "timezone": "UTC",
}
BY = {BY_CLAUDE: "Filled in by Claude.", BY_WORDS: "Filled in from your words."}
NOT_SAVED = "Nothing is saved yet: look it over, then save."


@dataclass(frozen=True)
class Preview:
    """What a schedule means: its sentence and next instants, or what is wrong with it."""

    sentence: str
    notes: tuple[str, ...]
    coming: tuple[Instant, ...]
    problem: str | None = None


@dataclass(frozen=True)
class Form:
    """The editor as it is shown.  `values` are texts by field; `problems` sentences by field."""

    action: str
    heading: str
    values: Mapping[str, str]
    problems: Mapping[str, str]
    projects: tuple[Project, ...]
    preview: Preview
    healing: bool
    approval: bool
    seen: str
    notice: str | None = None
    notes: tuple[str, ...] = ()
    is_new: bool = False
    has_key: bool = False


def read_form(form: Mapping[str, str]) -> dict[str, Any]:
    """The job's JSON fields from what was typed; empty ones are left out."""
    body: dict[str, Any] = {name: form[name] for name in TEXTS if form.get(name, "").strip()}
    body["name"] = form.get("name", "")
    target = "prompt" if form.get("target") == "prompt" else "command"
    body[target] = form.get(target, "")
    for name in NUMBERS:
        text = form.get(name, "").strip()
        if text:
            body[name] = text if (number := read_whole(text)) is None else number
    codes = form.get("retryOn", "").replace(",", " ").split()
    body["retryOn"] = [code if (number := read_whole(code)) is None else number for code in codes]
    body["env"] = _read_env(form.get("env", ""))
    body["successWhen"] = [line.strip() for line in form.get("successWhen", "").splitlines() if line.strip()]
    body["tags"] = [tag.strip() for tag in form.get("tags", "").split(",") if tag.strip()]
    body["healingEnabled"] = form.get("healingEnabled") == "on"
    body["requireApproval"] = form.get("requireApproval") == "on"
    body |= _read_time(form)
    project = form.get("project", "")
    if project == "folder":
        body["project"] = form.get("folder", "").strip() or None
    elif project:
        body["projectId"] = read_whole(project) or -1
    return {key: value for key, value in body.items() if value is not None}


def _read_time(form: Mapping[str, str]) -> dict[str, str]:
    if form.get("mode") == "once":
        return {"runAt": form.get("runAt", "").strip()}
    return {"schedule": form.get("schedule", "").strip()}


def _read_env(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def find_problems(
    database: Database, body: dict[str, Any], attempt: Callable[[Session, dict[str, Any]], object]
) -> dict[str, str]:
    """Every field that cannot be accepted, with its sentence.  Nothing is stored."""
    found: dict[str, str] = {}
    tried = dict(body)
    while len(found) < MOST_PROBLEMS:
        try:
            database.write(lambda session: _try(session, tried, attempt))
        except _NothingWrong:
            break
        except Invalid as problem:
            field = problem.field or "name"
            if field in found:
                break
            found[field] = problem.message.removeprefix(f"{field}: ")
            tried.pop(field, None)
            if field in _STAND_INS:
                tried[field] = _STAND_INS[field]
    return found


class _NothingWrong(Exception):  # noqa: N818 - it undoes the attempt, and is good news
    pass


def _try(session: Session, body: dict[str, Any], attempt: Callable[[Session, dict[str, Any]], object]) -> None:
    attempt(session, dict(body))
    raise _NothingWrong


def preview_of(text: str, zone: str) -> Preview:
    """The sentence and the next ten instants, as the engine will fire them."""
    try:
        schedule = Schedule.parse(text, zone or local_timezone())
    except Invalid as problem:
        return Preview("", (), (), problem.message.partition(": ")[2] or problem.message)
    return Preview(schedule.words, schedule.notes, tuple(schedule.upcoming(now(), COMING)))


def new_form(projects: tuple[Project, ...], project_id: int | None = None, *, has_key: bool = False) -> Form:
    zone = local_timezone()
    values = {
        "target": "command",
        "schedule": "daily at 9am",
        "mode": "repeat",
        "timezone": zone,
        "effects": "unknown",
        "project": str(project_id or ""),
    }
    return Form(
        "/jobs",
        "New job",
        _texts(values),
        {},
        projects,
        preview_of("daily at 9am", zone),
        healing=True,
        approval=False,
        seen="",
        is_new=True,
        has_key=has_key,
    )


def form_of(job: Job, projects: tuple[Project, ...]) -> Form:
    """The editor with a job's own values, verbatim."""
    draft = draft_of(job)
    listed = ("env", "tags", "projectId", "successWhen", "retryOn")
    values = {key: str(value) for key, value in draft.items() if key not in listed}
    values["retryOn"] = ", ".join(map(str, job.retry_on))
    values["env"] = "\n".join(f"{name}={value}" for name, value in job.env.items())
    values["tags"] = ", ".join(job.tags)
    values["successWhen"] = "\n".join(job.success_when)
    values["target"] = "prompt" if job.prompt else "command"
    values["mode"] = "once" if job.run_mode == "one_off" else "repeat"
    values["project"] = str(job.project_id or "")
    return Form(
        action=f"/jobs/{job.id}",
        heading=f"Edit {job.name}",
        values=_texts(values),
        problems={},
        projects=projects,
        preview=preview_of(values.get("schedule", "hourly"), job.timezone),
        healing=job.healing_enabled,
        approval=job.require_approval,
        seen=iso(job.updated_at),
    )


def again(base: Form, form: Mapping[str, str], problems: Mapping[str, str], notice: str | None = None) -> Form:
    """The editor as it was sent, with what is wrong."""
    return Form(
        action=base.action,
        heading=base.heading,
        values=_texts(form),
        problems=problems,
        projects=base.projects,
        preview=preview_of(form.get("schedule", ""), form.get("timezone", "")),
        healing=form.get("healingEnabled") == "on",
        approval=form.get("requireApproval") == "on",
        seen=form.get("seen", ""),
        notice=notice,
        is_new=base.is_new,
        has_key=base.has_key,
    )


def sketched(base: Form, form: Mapping[str, str], found: Sketch) -> Form:
    """The editor with what a sentence said put over what was typed."""
    typed = {**form, **{name: value for name, value in found.fields.items() if name != "project"}}
    if "prompt" in found.fields or "command" in found.fields:
        typed["target"] = "prompt" if "prompt" in found.fields else "command"
    if "runAt" in found.fields or "schedule" in found.fields:
        typed["mode"] = "once" if "runAt" in found.fields else "repeat"
    if folder := found.fields.get("project"):
        known = next((project for project in base.projects if project.folder_path == str(Path(folder).resolve())), None)
        typed |= {"project": str(known.id)} if known else {"project": "folder", "folder": folder}
    shown = again(base, typed, {}, f"{BY[found.by]} {NOT_SAVED}")
    return replace(shown, notes=tuple(found.notes))


_FIELDS = (
    *TEXTS,
    *TARGETS,
    *NUMBERS,
    "target",
    "description",
    "env",
    "tags",
    "successWhen",
    "retryOn",
    "schedule",
    "runAt",
    "mode",
    "project",
    "folder",
)


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    return {name: values.get(name, "") for name in _FIELDS}
