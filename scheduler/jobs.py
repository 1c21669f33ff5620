"""What a person does with jobs: make, edit, pause, resume, remove."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from scheduler.drafts import JobDraft, existing_folder, read_draft
from scheduler.instants import parse_instant
from scheduler.schedule import Schedule
from scheduler.zones import local_timezone
from store import events, jobs, projects, runs
from store.clock import iso, now
from store.errors import Conflict, Invalid
from store.jobs import Job
from store.projects import Project
from store.runs import Run

EDITABLE = tuple(name for name in JobDraft.model_fields if name not in ("recipe", "project"))


def create(session: Session, body: dict[str, Any], actor: str = "person") -> Job:
    """A new job from its JSON form; raises Invalid and stores nothing when a field is wrong."""
    draft = read_draft(body)
    job = Job(target_type="session" if draft.prompt else "command", timezone=draft.timezone or local_timezone())
    _fill(session, job, draft)
    session.add(job)
    session.flush()
    events.record(session, "job.created", actor, job_id=job.id, changes={"name": job.name})
    return job


def edit(session: Session, job_id: int, patch: dict[str, Any], actor: str = "person") -> Job:
    """Changes the named fields; raises Invalid, NotFound, and stores nothing when one is wrong."""
    job = jobs.get(session, job_id)
    _refuse_another_target(job, patch)
    present = draft_of(job)
    merged = {**present, **patch}
    for ours, other in (("schedule", "runAt"), ("projectId", "project")):
        if ours in patch and other not in patch:
            merged.pop(other, None)
        if other in patch and ours not in patch:
            merged.pop(ours, None)
    draft = read_draft(merged)
    if draft.timezone is None:
        draft.timezone = job.timezone
    same_time = all(merged.get(key) == present.get(key) for key in ("schedule", "runAt", "timezone"))
    _fill(session, job, draft, keep_time=same_time)
    job.updated_at = now()
    changed = sorted(key for key in patch if merged.get(key) != present.get(key))
    events.record(session, "job.updated", actor, job_id=job.id, changes={"fields": changed})
    return job


def _refuse_another_target(job: Job, patch: dict[str, Any]) -> None:
    own = "prompt" if job.target_type == "session" else job.target_type
    other = [field for field in ("command", "recipe", "prompt") if field != own and patch.get(field) is not None]
    if patch.get("targetType", job.target_type) != job.target_type:
        other.append("targetType")
    if other:
        raise Invalid(other[0], f"{other[0]}: the target type of a job never changes; make a new job.")


def draft_of(job: Job) -> dict[str, Any]:
    """The job in the form a person would have written it."""
    values = {
        "name": job.name,
        "command": job.command,
        "prompt": job.prompt,
        "schedule": job.schedule_text or job.schedule,
        "runAt": iso(job.run_at) if job.run_at else None,
        "timezone": job.timezone,
        "projectId": job.project_id,
        "cwd": job.cwd,
        "env": job.env,
        "overlap": job.overlap,
        "catchUp": job.catch_up,
        "catchUpMaxAgeSecs": job.catch_up_max_age_secs,
        "jitterSecs": job.jitter_secs,
        "timeoutSecs": job.timeout_secs,
        "retries": job.retries,
        "retryBackoffSecs": job.retry_backoff_secs,
        "retryOn": job.retry_on,
        "pool": job.pool,
        "effects": job.effects,
        "verifyCommand": job.verify_command,
        "cleanupCommand": job.cleanup_command,
        "successWhen": job.success_when,
        "expectWithinSecs": job.expect_within_secs,
        "healingEnabled": job.healing_enabled,
        "requireApproval": job.require_approval,
        "tags": job.tags,
    }
    return {key: value for key, value in values.items() if value is not None}


def pause(session: Session, job_id: int, until: datetime | None = None, actor: str = "person") -> Job:
    """The person's own pause; lifting it is `resume`."""
    job = jobs.get(session, job_id)
    if job.person_paused_at is None:
        job.person_paused_at = now()
        events.record(session, "job.paused", actor, job_id=job_id, reason="person")
    job.person_paused_until = until
    job.updated_at = now()
    return job


def resume(session: Session, job_id: int, actor: str = "person") -> Job:
    """Lifts the person's pause and the breaker's; others lift their own.  Old slots never fire by this."""
    job = jobs.get(session, job_id)
    if job.person_paused_at or job.breaker_paused_at or job.paused_session_id:
        events.record(session, "job.resumed", actor, job_id=job_id, reason="person")
    job.person_paused_at = job.person_paused_until = job.breaker_paused_at = job.paused_session_id = None
    job.updated_at = now()
    return job


def resume_when_over(session: Session, job_id: int, at: datetime) -> None:
    """Lifts the person's pause if its end has come, and nobody has moved that end meanwhile."""
    job = jobs.get(session, job_id)
    if job.person_paused_until is not None and job.person_paused_until <= at:
        job.person_paused_at = job.person_paused_until = None
        job.updated_at = now()
        events.record(session, "job.resumed", "engine", job_id=job_id, reason="its pause was to end now")


def move_zone(session: Session, before: str, after: str, actor: str = "person") -> list[int]:
    """Lets the jobs with a schedule in one zone run at the same times of the day in another; which those were."""
    found = session.scalars(select(Job.id).where(Job.timezone == before, Job.schedule.is_not(None))).all()
    for job_id in found:
        edit(session, job_id, {"timezone": after}, actor)
    return list(found)


def block(session: Session, job_id: int, reason: str) -> None:
    """The job cannot be planned any more; editing it lifts this."""
    job = jobs.get(session, job_id)
    job.blocked_reason = reason
    job.next_run_at = None
    job.updated_at = now()
    events.record(session, "job.blocked", "engine", job_id=job_id, reason=reason)


def remove(session: Session, job_id: int, actor: str = "person") -> None:
    """Deletes the job with its history; refused while one of its runs is alive."""
    job = jobs.get(session, job_id)
    alive = runs.active_of(session, job_id)
    if alive:
        raise Conflict(f"Run {alive[0].id} of this job has not ended; abort it first.", code="run_active")
    if job.paused_heal_id:
        raise Conflict(f"Heal {job.paused_heal_id} is at work on this job; resume the job first.", code="heal_open")
    session.execute(delete(Run).where(Run.job_id == job_id))
    session.execute(delete(Job).where(Job.id == job_id))
    events.record(session, "job.removed", actor, job_id=job_id, changes={"name": job.name})


def _fill(session: Session, job: Job, draft: JobDraft, *, keep_time: bool = False) -> None:
    project = _project_of(session, draft)
    job.project_id = project.id if project else None
    base = Path(project.folder_path) if project else None
    job.cwd = str(existing_folder("cwd", draft.cwd, base)) if draft.cwd else None
    for name in EDITABLE:
        if name not in ("schedule", "run_at", "timezone", "project_id", "cwd"):
            setattr(job, name, getattr(draft, name))
    if not keep_time:
        job.timezone = draft.timezone or local_timezone()
        _set_time(job, draft)


def _set_time(job: Job, draft: JobDraft) -> None:
    at = now()
    if draft.run_at is not None:
        job.run_mode, job.schedule, job.schedule_text = "one_off", None, None
        job.run_at = parse_instant(draft.run_at, job.timezone, at, field="runAt")
        if job.run_at <= at:
            raise Invalid("runAt", f"runAt: {draft.run_at} is in the past; name a coming time.")
        job.next_run_at, job.done_at = job.run_at, None
        return
    schedule = Schedule.parse(draft.schedule or "", job.timezone)
    job.run_mode, job.run_at, job.done_at, job.blocked_reason = "recurring", None, None, None
    job.schedule, job.schedule_text = schedule.cron, schedule.text
    job.next_run_at = schedule.next_after(at)


def _project_of(session: Session, draft: JobDraft) -> Project | None:
    if draft.project_id is not None:
        return projects.get(session, draft.project_id)
    if draft.project is None:
        return None
    if isinstance(draft.project, int) or draft.project.isdigit():
        return projects.get(session, int(draft.project))
    return projects.add(session, existing_folder("project", draft.project))
