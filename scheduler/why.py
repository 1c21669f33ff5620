"""Why a job did or did not run at some moment: from the ledger of its slots, else from its schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from scheduler.cronline import REBOOT
from scheduler.firings import find_firings
from scheduler.lint import both_days_must_match
from scheduler.schedule import Schedule
from scheduler.zones import find_zone
from store.clock import now
from store.errors import Invalid
from store.jobs import Job
from store.runs import Run

MINUTE = timedelta(minutes=1)

_SKIPPED = {
    "merged": "it was missed, and merged into a later run of the job",
    "expired": "it was missed, and too old to catch up when Cronmend was back",
    "overlap": "the run before had not ended",
    "paused": "the job was paused",
    "blocked": "the job was blocked",
    "appClosed": "Cronmend was closed, and the job does not catch up",
    "sleep": "the computer slept, and the job does not catch up",
    "approvalRejected": "you rejected it",
    "approvalExpired": "nobody approved it in time",
}


@dataclass(frozen=True)
class Answer:
    """`kind`: ran, skipped, planned, or none of the job's times.  `run_id` is the row that tells it."""

    at: datetime
    kind: str
    sentence: str
    run_id: int | None = None


def explain(session: Session, job: Job, at: datetime) -> Answer:
    """The answer for the minute of `at`, an instant in UTC."""
    minute = at.replace(second=0, microsecond=0)
    row = _row_at(session, job, minute)
    if row is not None:
        return _told(row, minute, is_slot=True)
    by_hand = _run_in(session, job, minute)
    if by_hand is not None:
        return Answer(minute, "ran", f"Run {by_hand.id} was started then ({by_hand.triggered_by}).", by_hand.id)
    if minute < job.created_at.replace(second=0, microsecond=0):
        return Answer(minute, "notASlot", "The job did not exist yet.")
    if job.schedule is None:
        return _of_single_time(job, minute)
    if job.schedule == REBOOT:
        return Answer(minute, "notASlot", "The job runs once after each start of the machine, at no set time.")
    return _of_schedule(session, job, job.schedule, minute)


def _row_at(session: Session, job: Job, minute: datetime) -> Run | None:
    roots = select(Run).where(Run.job_id == job.id, Run.retry_of.is_(None))
    in_minute = roots.where(Run.slot_at >= minute, Run.slot_at < minute + MINUTE)
    return session.scalar(in_minute.order_by(Run.slot_at).limit(1))


def _run_in(session: Session, job: Job, minute: datetime) -> Run | None:
    started = select(Run).where(Run.job_id == job.id, Run.started_at >= minute, Run.started_at < minute + MINUTE)
    return session.scalar(started.order_by(Run.id).limit(1))


def _told(row: Run, minute: datetime, *, is_slot: bool) -> Answer:
    if row.status == "skipped":
        why = _SKIPPED.get(row.skip_reason or "", row.skip_reason or "unknown")
        return Answer(minute, "skipped", f"It did not run: {why}.", row.id)
    late = (row.started_at - minute).total_seconds() if row.started_at and is_slot else 0.0
    when = f", {round(late)} s later" if late >= 1 else ""
    state = {"pending": "is waiting to start", "awaitingApproval": "waits for your approval"}.get(row.status)
    said = f"Run {row.id} {state}." if state else f"It ran{when}: run {row.id}, {row.status}."
    return Answer(minute, "ran", said, row.id)


def _of_single_time(job: Job, minute: datetime) -> Answer:
    if job.run_at is not None and job.run_at.replace(second=0, microsecond=0) == minute and job.run_at > now():
        return _planned(job, minute)
    return Answer(minute, "notASlot", "The job runs once, at another time.")


def _of_schedule(session: Session, job: Job, cron: str, minute: datetime) -> Answer:
    try:
        zone = find_zone(job.timezone)
    except Invalid as problem:
        return Answer(minute, "skipped", problem.message)
    if next((f.at for f in find_firings(cron, zone, minute - MINUTE)), None) != minute:
        return Answer(minute, "notASlot", _why_not(job, cron, minute, zone))
    covering = session.scalar(
        select(Run)
        .where(Run.job_id == job.id, Run.retry_of.is_(None), Run.slot_at < minute, Run.slots_covered > 1)
        .order_by(Run.slot_at.desc())
        .limit(1)
    )
    if covering is not None and minute in _slots_of(covering, cron, zone):
        return _told(covering, minute, is_slot=False)
    if minute > now():
        return _planned(job, minute)
    return Answer(minute, "unknown", "It is a time of the present schedule, but nothing was due then: it has changed.")


def _slots_of(row: Run, cron: str, zone: ZoneInfo) -> set[datetime]:
    """The slots that a row for several of them stands for."""
    first = row.slot_at or now()
    later = find_firings(cron, zone, first)
    return {first, *(firing.at for firing, _ in zip(later, range(row.slots_covered - 1), strict=False))}


def _planned(job: Job, minute: datetime) -> Answer:
    if not job.is_active:
        return Answer(minute, "planned", f"It is due then, but will not run as it is: {_held(job)}.")
    return Answer(minute, "planned", "It will run then.")


def _held(job: Job) -> str:
    if job.blocked_reason:
        return job.blocked_reason.rstrip(".")
    return {"person": "you paused the job", "session": "a session repairs it"}.get(
        job.paused_by or "", "the job is held still" if job.paused_by else "the job is done"
    )


def _why_not(job: Job, cron: str, minute: datetime, zone: ZoneInfo) -> str:
    local = minute.astimezone(zone)
    wrong = [f"{name} {text}" for name, text, probe in _probes(cron) if not _fires(probe, local)]
    reason = f"does not match {', '.join(wrong)}" if wrong else "is left out when the clocks change"
    near = _nearest(job, cron, minute)
    return f"{local:%a %Y-%m-%d %H:%M} {reason} of the schedule {cron}.{near}"


def _probes(cron: str) -> list[tuple[str, str, str]]:
    """Lines that hold one field each, the two day fields together where they are joined."""
    minute, hour, day, month, weekday = cron.split()
    found = [
        ("minute", minute, f"{minute} * * * *"),
        ("hour", hour, f"* {hour} * * *"),
        ("month", month, f"* * * {month} *"),
    ]
    if "*" in (day, weekday) or both_days_must_match(cron):
        found += [("day of month", day, f"* * {day} * *"), ("day of week", weekday, f"* * * * {weekday}")]
    else:
        found.append((f"day of month {day} or day of week", weekday, f"* * {day} * {weekday}"))
    return [probe for probe in found if probe[1] != "*"]


def _fires(line: str, local: datetime) -> bool:
    wall = local.replace(tzinfo=ZoneInfo("UTC"), fold=0)
    return next((f.at for f in find_firings(line, ZoneInfo("UTC"), wall - MINUTE)), None) == wall


def _nearest(job: Job, cron: str, minute: datetime) -> str:
    coming: Sequence[str] = [one.local for one in Schedule(cron, cron, job.timezone).upcoming(minute, 1)]
    return f" The next time after it is {coming[0]}." if coming else ""
