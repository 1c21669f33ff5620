"""Runs of jobs that are prompts: each is a session of its own, and its last words are the run's output."""

import logging
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from agent.sessions import Ended, Opening, Sessions
from scheduler import ends
from scheduler.ends import End, Examined
from scheduler.logs import LogFolder
from store import projects, runs, sessions
from store.clock import now
from store.database import Database
from store.errors import Conflict, Refusal
from store.jobs import Job
from store.projects import Project
from store.runs import Run
from store.sessions import Conversation

log = logging.getLogger("engine")

OVER_TIME = "the time"
TAIL_CHARS = 4_000


class SessionRuns:
    """Starts and stops them; how they end is written when their session says so."""

    def __init__(self, database: Database, sessions_: Sessions, logs: LogFolder, workspace: Path) -> None:
        self._database = database
        self._sessions = sessions_
        self._logs = logs
        self._workspace = workspace
        sessions_.on_end = self._end

    def start(self, run: Run, job: Job, most_secs: float) -> None:
        """Opens the run's session.  One that cannot be opened ends the run as failed, with the reason."""
        try:
            project_id = self._database.write(lambda session: project_of(session, job, self._workspace))
            opening = Opening(
                project_id=project_id,
                title=job.name,
                prompt=_prompt(job, run),
                origin="job",
                job_id=job.id,
                run_id=run.id,
                may_propose=False,
                most_secs=most_secs,
            )
            self._sessions.start(opening, lambda session, _conversation: _begin(session, run))
        except Refusal as error:
            if error.code != "not_pending":
                self._write(run.job_id, run.id, "", error.message)
                end = End(
                    run.id, run.attempt, "failed", now(), error=error.message, examined=_examined(error.message, "")
                )
                self._database.write(lambda session: ends.end_runs(session, [end]), urgent=True)

    def stop(self, run_id: int) -> bool:
        """Asks the run's session to end; False when it has none at work."""
        with self._database.read() as session:
            conversation = sessions.of_run(session, run_id)
        if conversation is None or conversation.origin != "job":
            return False
        try:
            self._sessions.stop(conversation.id)
        except Conflict:
            return False
        return True

    def living(self) -> list[tuple[int, int]]:
        """(run, attempt) of those whose session is at work in this process."""
        with self._database.read() as session:
            at_work = [sessions.get(session, session_id) for session_id in self._sessions.at_work()]
            owned = [runs.get(session, one.run_id) for one in at_work if one.origin == "job" and one.run_id]
        return [(run.id, run.attempt) for run in owned]

    def _end(self, ended: Ended) -> None:
        with self._database.read() as session:
            conversation = sessions.get(session, ended.session_id)
            if conversation.origin != "job" or conversation.run_id is None:
                return
            run = runs.get(session, conversation.run_id)
        status, error = _outcome(ended, conversation, run)
        self._write(run.job_id, run.id, ended.answer, error or "")
        examined = _examined(error or "", ended.answer) if status in ("failed", "timeout") else None
        size = self._logs.of(run.job_id, run.id).size
        end = End(run.id, run.attempt, status, now(), error=error, examined=examined, log_bytes=size)
        self._database.write(lambda session: ends.end_runs(session, [end]), urgent=True)

    def _write(self, job_id: int, run_id: int, answer: str, error: str) -> None:
        try:
            logs = self._logs.make(job_id, run_id)
            for path, text in ((logs.out, answer), (logs.err, error)):
                path.write_text(f"{text}\n" if text else "")
        except OSError as problem:
            log.warning("[engine] run %d: its output could not be written (%s)", run_id, problem.strerror)


def project_of(session: Session, job: Job, workspace: Path) -> int:
    """The project in which a session of this job works: its own, else the workspace."""
    return projects.get(session, job.project_id or workspace_of(session, workspace).id).id


def workspace_of(session: Session, folder: Path) -> Project:
    """The project of jobs that have none."""
    folder.mkdir(mode=0o700, exist_ok=True)
    return projects.add(session, folder, "__claude__", is_workspace=True)


def _begin(session: Session, run: Run) -> None:
    if runs.get(session, run.id).status != "pending":
        raise Conflict("This run has been decided otherwise.", code="not_pending")
    row = {"run": run.id, "tried": run.attempt, "at": now(), "new_pid": None, "new_start": None, "new_boot": None}
    ends.start_runs(session, [row])


def _prompt(job: Job, run: Run) -> str:
    why = f"\n\nWhy it runs now: {run.wake_context}" if run.wake_context else ""
    return f"{job.prompt}{why}"


def _outcome(ended: Ended, conversation: Conversation, run: Run) -> tuple[str, str | None]:
    if ended.outcome in ("answered", "done"):
        return "completed", None
    if ended.outcome == "stopped":
        return "aborted", run.abort_reason or "stopped"
    if ended.outcome == "budget" and (ended.detail.startswith(OVER_TIME) or not ended.detail):
        return "timeout", "worked longer than its time limit and was ended"
    return "failed", conversation.error or "its session failed"


def _examined(error: str, answer: str) -> Examined:
    evidence: dict[str, Any] = {"hits": [], "stdoutTail": answer[-TAIL_CHARS:], "stderrTail": error, "spawnError": None}
    return Examined(evidence, "unknown", error)
