"""The recorder: turns what the keeper reports into rows, in groups, and acknowledges after the commit."""

import logging
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from scheduler import ends
from scheduler.conditions import Ran, accepted_codes, find_unmet
from scheduler.ends import End, Examine, Failed
from scheduler.environment import Surroundings
from scheduler.keeper_link import KeeperLink, Report
from scheduler.logs import STREAMS, LogFolder, RunLogs
from store import projects, runs
from store.clock import now
from store.database import Database
from store.jobs import Job
from store.runs import Run

log = logging.getLogger("engine")

BURST, BURST_SECS = 4, 0.2
"""So many reports at once, so soon after the last ones, are a burst."""

GATHER_SECS = 0.05

NOBODY_KNOWS = "Nobody can vouch for how this run ended: "


@dataclass(frozen=True)
class _Context:
    job: Job
    run: Run
    folder: str
    project: str | None


class Recorder:
    """A worker of desktop.loops.  `take` is called by the keeper link's reader, `step` by the recorder's own thread."""

    def __init__(
        self,
        database: Database,
        keeper: KeeperLink,
        logs: LogFolder,
        examine: Examine,
        surroundings: Surroundings,
    ) -> None:
        self._database = database
        self._keeper = keeper
        self._logs = logs
        self._examine = examine
        self._surroundings = surroundings
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._unrecorded: list[Report] = []
        """What could not be written yet: the keeper does not tell it twice."""

        self._recorded = 0.0
        self.nudge: Callable[[], None] = lambda: None
        self.on_refused: Callable[[Report], None] = lambda _report: None

    def take(self, reports: Iterable[Report]) -> None:
        for report in reports:
            self._reports.put(report)
        self.nudge()

    def next_at(self) -> datetime | None:
        return None

    def step(self) -> bool:
        """Records everything reported since the last step; True when there was anything."""
        reports = self._unrecorded + self._drain()
        if not reports:
            return False
        # In a burst the keeper reports every few starts: one commit for many costs the jobs less than many for few.
        if len(reports) >= BURST and time.monotonic() - self._recorded < BURST_SECS:
            time.sleep(GATHER_SECS)
            reports += self._drain()
        self._recorded = time.monotonic()
        for report in reports:
            if report.state == "refused":
                self.on_refused(report)
        self._unrecorded = reports = [report for report in reports if report.state != "refused"]
        started = [report for report in reports if report.state == "running"]
        over = [report for report in reports if report.state in ("ended", "lost")]
        self._record(started, over)
        self._unrecorded = []
        if over:
            self._keeper.acknowledge([(report.run, report.attempt) for report in over])
        return True

    def _drain(self) -> list[Report]:
        reports = []
        while not self._reports.empty():
            reports.append(self._reports.get())
        return reports

    def _record(self, started: Sequence[Report], over: Sequence[Report]) -> None:
        ended = {(report.run, report.attempt) for report in over}
        rows = [_start_row(report) for report in started if (report.run, report.attempt) not in ended]
        contexts = self._contexts([report.run for report in over])
        most = self._surroundings.most_log_bytes() if over else 0
        finished = [self._end(report, contexts.get(report.run), most) for report in over]

        def change(session: Session) -> None:
            if rows:
                ends.start_runs(session, rows)
            if finished:
                ends.end_runs(session, finished)

        if rows or finished:
            self._database.write(change, urgent=True)

    def _contexts(self, run_ids: list[int]) -> dict[int, _Context]:
        with self._database.read() as session:
            rows = session.execute(
                select(Run, Job, projects.Project)
                .join(Job, Job.id == Run.job_id)
                .outerjoin(projects.Project, projects.Project.id == Job.project_id)
                .where(Run.id.in_(run_ids))
            ).all()
        found = {}
        for run, job, project in rows:
            project_folder = project.folder_path if project else None
            found[run.id] = _Context(job, run, self._surroundings.folder(job, project_folder), project_folder)
        return found

    def _end(self, report: Report, context: _Context | None, most_log_bytes: int) -> End:
        logs = self._logs.of(context.run.job_id, report.run) if context else None
        status, error = _outcome(report)
        size = logs.size if logs is not None else 0
        if logs is not None and size > most_log_bytes > 0:
            for stream in STREAMS:
                logs.cap(stream, most_log_bytes)
        unmet = None
        if context is not None and logs is not None and context.job.success_when:
            status, error, unmet = _judge(report, context, logs, status, error)
        if report.cleanup is not None:
            status, error, unmet = _with_cleanup(report.cleanup, status, error, unmet)
        examined = None
        is_overrun = status == "timeout"
        is_unwitnessed = status == "failed" and (report.state == "lost" or not report.known)
        if context and logs and (is_overrun or (status == "failed" and not is_unwitnessed)):
            examined = self._examine(self._failed(report, context))
            if unmet is not None:
                examined = replace(examined, cause=unmet)
        return End(
            run_id=report.run,
            attempt=report.attempt,
            status=status,
            at=report.at or now(),
            started_at=report.started_at,
            exit_code=report.exit_code,
            signal=report.signal,
            error=error,
            examined=examined,
            system_marked=is_overrun or is_unwitnessed,
            log_bytes=size,
            log_cut=self._logs.is_cut(report.run),
        )

    def _failed(self, report: Report, context: _Context) -> Failed:
        logs = self._logs.of(context.run.job_id, report.run)
        return Failed(
            job=context.job,
            run_id=report.run,
            exit_code=report.exit_code,
            signal=report.signal,
            spawn_error=report.spawn_error,
            stopped=report.stopped,
            stdout=logs.tail("out"),
            stderr=logs.tail("err"),
            cwd=context.folder,
            project=context.project,
            path=self._surroundings.path(context.job),
            timeout_secs=self._surroundings.timeout_secs(context.job),
        )


def _judge(
    report: Report, context: _Context, logs: RunLogs, status: str, error: str | None
) -> tuple[str, str | None, str | None]:
    """Status and error by the job's own conditions, and the cause when one is not met."""
    if report.exit_code in accepted_codes(context.job.success_when) and status == "failed" and not report.spawn_error:
        status, error = "completed", None
    started = report.started_at or context.run.started_at
    if status != "completed" or started is None:
        return status, error, None
    secs = ((report.at or now()) - started).total_seconds()
    unmet = find_unmet(context.job.success_when, Ran(report.exit_code, started, secs, logs, context.folder))
    if unmet is None:
        return status, error, None
    return "failed", f"exit code {report.exit_code}, but {unmet}", f"not a success: {unmet}"


def _with_cleanup(
    failure: str, status: str, error: str | None, unmet: str | None
) -> tuple[str, str | None, str | None]:
    """A cleanup that failed makes a success a failure, and is told beside any other end."""
    said = f"its cleanup failed: {failure}"
    if status == "completed":
        return "failed", f"the command succeeded, but {said}", said
    return status, f"{error}; {said}", unmet


def _start_row(report: Report) -> dict[str, Any]:
    return {
        "run": report.run,
        "tried": report.attempt,
        "at": report.started_at or report.at or now(),
        "new_pid": report.pid,
        "new_start": report.start_time,
        "new_boot": report.boot_id,
    }


def _outcome(report: Report) -> tuple[str, str | None]:  # noqa: PLR0911 - a table of cases
    """The run's status and its error in words."""
    if report.stopped in ("abort", "replace"):
        left = f"; still alive: {', '.join(map(str, report.survivors))}" if report.survivors else ""
        return "aborted", ("replaced by the next run" if report.stopped == "replace" else "aborted") + left
    if report.stopped == "timeout":
        return "timeout", "ran longer than its time limit and was ended"
    if report.state == "lost":
        return "failed", NOBODY_KNOWS + (report.reason or "the process that watched it was gone before it ended.")
    if not report.known:
        return "failed", NOBODY_KNOWS + "its watching process was killed while it ran; its exit code is lost."
    if report.spawn_error:
        return "failed", report.spawn_error
    if report.exit_code == 0:
        return "completed", None
    if report.signal:
        return "failed", f"killed by signal {report.signal}"
    return "failed", f"exit code {report.exit_code}"


def adopt(
    database: Database, known: Sequence[Report], recorder: Recorder, living: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """At start: sorts the runs that the last boot left active by what the keeper knows of them.

    Runs the keeper knows go the usual way; running ones that it does not know are system-marked, pending ones
    were never started and are submitted again by the dispatcher.  `living`: attempts that run in this process itself.
    Returns the attempts that are not to be started again.
    """
    have = {*living, *((report.run, report.attempt) for report in known)}
    with database.read() as session:
        orphans = [run for run in runs.all_active(session) if run.status in runs.LIVE]
    at = now()
    lost = [
        End(
            run.id,
            run.attempt,
            "failed",
            at,
            error=NOBODY_KNOWS + "the keeper has no record of it.",
            system_marked=True,
        )
        for run in orphans
        if (run.id, run.attempt) not in have
    ]
    if lost:
        count = len(database.write(lambda session: ends.end_runs(session, lost), urgent=True))
        log.warning("[engine] %d runs of the last start were marked as failed: nobody can vouch for them", count)
    recorder.take(known)
    recorder.step()
    return sorted(have)
