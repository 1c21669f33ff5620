"""How states, times and sizes are said on a page."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from scheduler.schedule import Schedule
from store.clock import now, parse_iso
from store.errors import Refusal
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.runs import Run
from store.sessions import Conversation


@dataclass(frozen=True)
class State:
    """A state word with its look: `tone` is ok, bad, busy, heal, calm or warn."""

    word: str
    tone: str


ABANDONED = {
    "auto-fire-spawn-failed": "The session could not be started",
    "app restart invalidated session token": "Cronmend was closed meanwhile",
    "TTL expired": "It waited longer than seven days",
    "session ended without resume": "It ended without a proven fix",
    "manual-heal-finalize-failed": "Its start could not be recorded",
    "hung session": "It stopped answering",
    "budget exhausted": "Its limit of turns, time or cost was reached",
    "no progress": "It went round in circles",
    "provider unavailable": "The model could not be reached",
    "model refused": "The model refused",
    "stopped by user": "You stopped it",
}

NO_HEAL = {
    "superseded": "a later run has ended since",
    "heal_run": "a heal started this run to prove a fix",
    "healer_off": "healing is switched off in the settings",
    "secondary": "this is a secondary copy of Cronmend",
    "guard:healing_off": "Self-Healing is off for this job",
    "guard:session_job": "session jobs are not self-healed",
    "guard:system_marked": "nobody knows how the run ended, so there is nothing to go by",
    "guard:one_off": "one-off jobs are not self-healed",
    "guard:cap": "three heals in a row have failed, so a person is asked",
    "guard:open_heal": "a heal was at work on this job already",
    "guard:fleet_cap": "as many heals as allowed were at work; tried again at the next failure",
}

RUNS = {
    "pending": State("Waiting", "busy"),
    "running": State("Running", "busy"),
    "stuck": State("Stuck", "warn"),
    "awaitingApproval": State("Awaiting approval", "warn"),
    "completed": State("Succeeded", "ok"),
    "failed": State("Failed", "bad"),
    "timeout": State("Timed out", "bad"),
    "aborted": State("Stopped", "calm"),
}
_SKIPPED = {
    "merged": "Merged with a later slot",
    "expired": "Missed, too old to catch up",
    "overlap": "Skipped: the last run had not ended",
    "paused": "Skipped: paused",
    "blocked": "Skipped: blocked",
    "appClosed": "Missed: Cronmend was closed",
    "sleep": "Missed: the computer slept",
    "approvalRejected": "Rejected by you",
    "approvalExpired": "Not approved in time",
}
_HEALS = {
    "pending": State("Starting", "heal"),
    "spawned": State("Healing", "heal"),
    "fixed": State("Fixed", "ok"),
    "abandoned": State("Not fixed", "bad"),
}


def state_of_run(run: Run) -> State:
    if run.status == "skipped":
        return State(_SKIPPED.get(run.skip_reason or "", "Skipped"), "calm")
    return RUNS[run.status]


def state_of_status(status: str | None) -> State | None:
    return RUNS.get(status or "")


def state_of_heal(heal: Heal) -> State:
    return _HEALS[heal.status]


def state_of_job(job: Job, *, is_running: bool) -> State:
    """The one word that matters most about a job now."""
    if job.blocked_reason:
        return State("Blocked", "bad")
    held = _held(job)
    if held is not None:
        return held
    if is_running:
        return State("Running", "busy")
    if job.done_at:
        return State("Done", "calm")
    last = RUNS.get(job.last_run_status or "")
    if last is None:
        return State("New", "calm")
    return State("Failing", "bad") if last.tone == "bad" else State("Healthy", "ok")


def _held(job: Job) -> State | None:
    if job.person_paused_at:
        return State("Paused", "calm")
    if job.paused_heal_id:
        return State("Paused · healing", "heal")
    if job.paused_session_id:
        return State("Paused while you fix it", "warn")
    return State("Paused by the crash brake", "warn") if job.breaker_paused_at else None


KINDS = {
    "cron.failure_alert": "Failure",
    "cron.failure_heal": "Escalation",
    "cron.run_approval": "Approval",
    "cron.create": "New job",
    "project.delete": "Project",
    "heal.needs_you": "Needs you",
    "heal.proposal": "Proposal",
    "run.stuck": "Stuck",
    "scheduler.notice": "Notice",
}
"""What a card is about, by its kind."""

CLEARED = {"the job ran green": "the job succeeded", "fixed by a heal": "a heal fixed the job"}

ORIGINS = {
    "heal": "A heal",
    "job": "A scheduled job",
    "manual": "You",
    "judge": "A judge",
    "goal": "A goal",
    "board": "A board",
}
_SESSIONS = {
    "running": State("At work", "busy"),
    "idle": State("Ready", "ok"),
    "archived": State("Archived", "calm"),
    "failed": State("Failed", "bad"),
}


def state_of_session(conversation: Conversation) -> State:
    return _SESSIONS.get(conversation.status, State(conversation.status, "calm"))


def project_name(project: Project) -> str:
    return "Workspace" if project.is_workspace else project.name


def schedule_words(job: Job) -> str:
    if job.schedule is None:
        return f"Once, {moment(job.run_at)}" if job.run_at else "Once"
    try:
        return Schedule(job.schedule, job.schedule_text or job.schedule, job.timezone).words
    except Refusal:
        return job.schedule


def why_abandoned(reason: str | None) -> str:
    """The stored reason in plain words; what follows a colon is kept."""
    if reason is None:
        return ""
    head, colon, rest = reason.partition(": ")
    plain = {"gave up": "It gave up", "needs you": "It needs you", "waiting": "Only waiting helps"}.get(head)
    return f"{plain}{colon}{rest}" if plain else ABANDONED.get(reason, reason)


def moment(at: datetime | None) -> str:
    """An instant in this machine's time: the day only when it is another one."""
    if at is None:
        return "–"
    local = at.astimezone()
    today = now().astimezone()
    if local.date() == today.date():
        return f"{local:%H:%M:%S}" if abs((local - today).total_seconds()) < 3_600 else f"{local:%H:%M}"
    return f"{local:%a %d %b %H:%M}" if local.year == today.year else f"{local:%d %b %Y %H:%M}"


def said(text: str | None) -> str:
    """An instant of a payload, as `moment` says it."""
    return moment(parse_iso(text)) if text else "–"


def relative(at: datetime | None) -> str:
    """How far away an instant is: `in 54 min`, `6 min ago`."""
    if at is None:
        return "–"
    secs = (at - now()).total_seconds()
    if abs(secs) < 2:
        return "now"
    text = span(abs(secs))
    return f"in {text}" if secs > 0 else f"{text} ago"


def span(secs: float) -> str:
    """A length of time in its two largest units at most."""
    if secs < 1:
        return "under 1 s"
    if secs < 60:
        return f"{secs:.0f} s"
    if secs < 3_600:
        return f"{secs // 60:.0f} min"
    if secs < 86_400:
        minutes = f" {secs % 3_600 // 60:.0f} min" if secs % 3_600 >= 60 else ""
        return f"{secs // 3_600:.0f} h{minutes}"
    return f"{secs // 86_400:.0f} d"


def took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1_000} s"


def size(octets: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if octets < 1_024:
            return f"{octets:,} {unit}"
        octets //= 1_024
    return f"{octets:,} GiB"


def stamp(at: datetime | None) -> str:
    """The exact instant for a time element."""
    return at.astimezone(UTC).isoformat(timespec="seconds") if at else ""


def in_an_hour() -> datetime:
    return now() + timedelta(hours=1)
