"""The terminalizer: every run ends here, once, whatever ended it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.orm import Session

from store import cards, events, heals
from store.cards import ALERT, ESCALATION, NEEDS_YOU, NOTICE
from store.clock import iso, parse_iso
from store.heals import Heal
from store.jobs import Job
from store.runs import ACTIVE, FAILED, IS_ACTIVE_SQL, Run

GREEN_RUNS_TO_CONFIRM = 2
RETRYABLE = ("schedule", "catch_up", "retry")
CLEARED_BY_GREEN = (ALERT, ESCALATION, NEEDS_YOU, NOTICE)


@dataclass(frozen=True)
class Failed:
    """What the evidence is made from, besides the stat calls of who examines it."""

    job: Job
    run_id: int
    exit_code: int | None
    signal: int | None
    spawn_error: str | None
    stopped: str | None
    stdout: bytes
    stderr: bytes
    cwd: str
    project: str | None
    path: str
    timeout_secs: int


@dataclass(frozen=True)
class Examined:
    """The evidence as stored, and its two most used parts."""

    evidence: dict[str, Any]
    category: str
    cause: str


Examine = Callable[[Failed], Examined]


@dataclass(frozen=True)
class End:
    """How one attempt of a run ended."""

    run_id: int
    attempt: int
    status: str
    at: datetime
    started_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    examined: Examined | None = None
    system_marked: bool = False
    log_bytes: int = 0
    log_cut: bool = False


@dataclass(frozen=True)
class _Watched:
    """What a green run may clear, asked once a group: most jobs are healthy and have neither."""

    carded: set[int]
    probation: Mapping[int, Heal]


def end_runs(session: Session, ends: Sequence[End]) -> list[int]:
    """Ends the runs that have not ended yet; the ids of those.  A later end is recorded as late and changes nothing.

    Outcome, evidence and retry intent are one write; `heal_decision` stays NULL where it is a final failure.
    """
    wanted = select(Run).where(Run.id.in_([end.run_id for end in ends]))
    runs = {run.id: run for run in session.scalars(wanted) if run.status in ACTIVE}
    open_attempts = {(run.id, run.attempt) for run in runs.values()}
    won: list[End] = []
    late: list[End] = []
    for end in ends:
        key = (end.run_id, end.attempt)
        (won if key in open_attempts else late).append(end)
        open_attempts.discard(key)
    for end in late:
        if _contradicts(
            session, end
        ):  # the same end told twice is no news: the keeper repeats what is not acknowledged
            events.record(session, "run.late", "engine", run_id=end.run_id, reason=end.status)
    if won:
        _write(session, won, runs)
    return [end.run_id for end in won]


def _contradicts(session: Session, end: End) -> bool:
    run = session.get(Run, end.run_id)
    return run is None or (run.status, run.attempt, run.completed_at) != (end.status, end.attempt, _stored(end.at))


def _stored(at: datetime) -> datetime:
    """The instant as the database keeps it."""
    return parse_iso(iso(at))


def _write(session: Session, won: list[End], runs: Mapping[int, Run]) -> None:
    watched = _Watched(cards.jobs_with_open(session, CLEARED_BY_GREEN), heals.on_probation(session))
    owners = {job.id: job for job in session.scalars(select(Job).where(Job.id.in_({r.job_id for r in runs.values()})))}
    rows, told = [], []
    for end in won:
        run = runs[end.run_id]
        job = owners.get(run.job_id)
        row = _row(run, job, end)
        rows.append(row)
        told.append({"job_id": run.job_id, "run_id": run.id, "heal_id": run.heal_id, "reason": end.status})
        if job is not None:
            _touch_job(job, run, end, row)
            if end.status == "completed" and run.triggered_by != "heal":
                _clear_on_success(session, job, run, watched)
    table = Run.__table__
    columns: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "id"}
    statement = update(table).where(table.c.id == bindparam("run"), text(IS_ACTIVE_SQL)).values(columns)  # type: ignore[arg-type]
    session.connection().execute(
        statement, [{"run": row["id"], **{f"new_{k}": v for k, v in row.items() if k != "id"}} for row in rows]
    )
    for status in {end.status for end in won}:
        same = [facts for facts in told if facts["reason"] == status]
        events.record_all(session, f"run.{status}", "engine", same)


def _row(run: Run, job: Job | None, end: End) -> dict[str, Any]:
    started = run.started_at or end.started_at
    examined = end.examined
    return {
        "id": run.id,
        "status": end.status,
        "started_at": started,
        "completed_at": end.at,
        "duration_ms": max(0, round((end.at - started).total_seconds() * 1_000)) if started else None,
        "exit_code": end.exit_code,
        "signal": end.signal,
        "error": end.error,
        "category": examined.category if examined else None,
        "cause": examined.cause if examined else None,
        "failure_evidence_json": examined.evidence if examined else None,
        "system_marked_failure": end.system_marked,
        "log_bytes": end.log_bytes,
        "log_cut": end.log_cut,
        "retry_due_at": _retry_due(run, job, end),
    }


def _retry_due(run: Run, job: Job | None, end: End) -> datetime | None:
    if job is None or end.status not in FAILED or run.triggered_by not in RETRYABLE:
        return None
    if run.retry_number >= job.retries or (job.retry_on and end.exit_code not in job.retry_on):
        return None
    return end.at + timedelta(seconds=job.retry_backoff_secs)


def _touch_job(job: Job, run: Run, end: End, row: dict[str, Any]) -> None:
    job.last_run_id, job.last_run_status = run.id, end.status
    job.last_run_started_at, job.last_run_duration_ms = row["started_at"], row["duration_ms"]
    final = row["retry_due_at"] is None
    if job.run_mode == "one_off" and final and job.next_run_at is None and run.triggered_by in RETRYABLE:
        job.done_at = end.at


def _clear_on_success(session: Session, job: Job, run: Run, watched: _Watched) -> None:
    """A green run is proof of health: counter to zero and the job's cards closed, in the run's own commit."""
    if job.consecutive_heal_failures:
        job.consecutive_heal_failures = 0
        events.record(session, "heal.cleared", "engine", job_id=job.id, run_id=run.id, reason="green run")
    if job.id in watched.carded:
        cards.dismiss_for_job(session, job.id, CLEARED_BY_GREEN, "the job ran green")
    heal = watched.probation.get(job.id)
    if heal is not None and run.triggered_by in RETRYABLE:
        _pass_probation(session, heal)


def _pass_probation(session: Session, heal: Heal) -> None:
    heal.probation_green += 1
    if heal.probation_green >= GREEN_RUNS_TO_CONFIRM:
        heal.probation = "confirmed"
        events.record(session, "heal.confirmed", "engine", job_id=heal.job_id, heal_id=heal.id)


def start_runs(session: Session, started: Sequence[dict[str, Any]]) -> None:
    """Marks pending runs as running.  Each: run, attempt, at, pid, process_start, boot_id."""
    table = Run.__table__
    statement = (
        update(table)  # type: ignore[arg-type]
        .where(table.c.id == bindparam("run"), table.c.attempt == bindparam("tried"), table.c.status == "pending")
        .values(
            status="running",
            started_at=bindparam("at"),
            pid=bindparam("new_pid"),
            process_start=bindparam("new_start"),
            boot_id=bindparam("new_boot"),
        )
    )
    session.connection().execute(statement, list(started))
    events.record_all(session, "run.started", "engine", [{"run_id": row["run"]} for row in started])
