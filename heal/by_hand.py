"""What a person starts by hand: Fix it, Fix with AI, an ordinary session; and putting a session away."""

import logging
from dataclasses import dataclass

from sqlalchemy.orm import Session

from agent.sessions import Opening
from heal.medic import AT_WORK
from heal.prompt import write_request
from heal.treatment import Clinic
from scheduler.session_runs import project_of, workspace_of
from store import events, heals, jobs, runs
from store.clock import now
from store.errors import Conflict
from store.heals import Heal
from store.jobs import Job
from store.runs import Run
from store.sessions import Conversation

log = logging.getLogger("cron-heal")

NO_ROOM_FOR_A_HEAL = """\

Heal {heal} has worked on run {run} before, so this is an ordinary session: you have the file tools, and can neither \
run nor pause nor resume the job. It goes on by its schedule; its next run shows whether the repair holds."""


@dataclass(frozen=True)
class Started:
    """A session that repairs a job.  `heal_id` is None when it is an ordinary one, and the job is not paused."""

    session_id: int
    heal_id: int | None


class ByHand:
    """The use cases of sessions that a person starts."""

    def __init__(self, clinic: Clinic) -> None:
        self._database = clinic.database
        self._medic = clinic.medic
        self._closings = clinic.closings
        self._sessions = clinic.sessions
        self._workspace = clinic.workspace

    def fix(self, job_id: int) -> Started:
        """Fix it: a heal whatever the guards say of healing off and of the cap.

        Raises NotFound, Conflict with a friendly sentence; what `_fix_again` raises.
        """
        with self._database.read() as session:
            job = jobs.get(session, job_id)
            run = runs.latest_failed(session, job_id)
            _refuse_fix(session, job)
            earlier = heals.of_run(session, run.id) if run is not None else None
        if run is None:
            raise Conflict("This job has no failed run; there is nothing to fix.", code="no_failed_run")
        if earlier is not None:
            return self._fix_again(job, run, earlier)
        heal = self._medic.start_by_hand(job, run)
        return Started(heal.session_id or 0, heal.id)

    def _fix_again(self, job: Job, run: Run, earlier: Heal) -> Started:
        """A run has one heal.  A pause without a heal of its own could strand the job, so it is not paused.

        Raises what Sessions.start does.
        """
        log.warning(
            "[cron-heal] manual heal for job %d: run %d already has a heal_attempt (run_id collision) — "
            "spawning the fix session WITHOUT pausing so the job is never stranded",
            *(job.id, run.id),
        )
        self._sessions.need_key()
        project_id = self._database.write(lambda session: project_of(session, job, self._workspace))
        prompt = write_request(job, run) + NO_ROOM_FOR_A_HEAL.format(heal=earlier.id, run=run.id)
        opening = Opening(
            *(project_id, f"Fix {job.name}", prompt), job_id=job.id, run_id=run.id, has_shell=False, may_propose=False
        )
        return Started(self._sessions.start(opening), None)

    def repair(self, job_id: int, prompt: str) -> int:
        """Fix with AI: a session in which a person repairs the job, which is paused until it is archived; its id.

        Raises what Sessions.start does, and Conflict `heal_open`, `hand_fix_open`.
        """
        self._sessions.need_key()

        def pause(session: Session, conversation: Conversation) -> None:
            job = jobs.get(session, job_id)
            _refuse_repair(session, job)
            job.paused_session_id, job.updated_at = conversation.id, now()
            events.record(session, "job.paused", "person", job_id=job_id, session_id=conversation.id, reason="session")

        with self._database.read() as session:
            job = jobs.get(session, job_id)
            _refuse_repair(session, job)
            run = runs.latest_failed(session, job_id)
        project_id = self._database.write(lambda session: project_of(session, job, self._workspace))
        opening = Opening(project_id, f"Fix {job.name}", prompt, job_id=job_id, run_id=run.id if run else None)
        return self._sessions.start(opening, pause)

    def start_session(self, project_id: int | None, title: str, prompt: str) -> int:
        """An ordinary session in the project, or in the workspace; its id.  Raises what Sessions.start does."""
        self._sessions.need_key()
        known = project_id or self._database.write(lambda session: workspace_of(session, self._workspace).id)
        return self._sessions.start(Opening(known, title, prompt))

    def archive(self, session_id: int) -> None:
        """Puts a session away.  A heal that is still at work in it is abandoned, and its job goes on.

        Raises NotFound, Conflict `session_archived`.
        """
        with self._database.read() as session:
            heal = heals.of_session(session, session_id)
        if heal is not None and heal.status in heals.OPEN:
            self._closings.close_archived(heal)
        self._sessions.archive(session_id)


def _refuse_fix(session: Session, job: Job) -> None:
    if job.target_type == "session":
        raise Conflict("A session job is a conversation itself; open it and go on there.", code="session_job")
    if job.run_mode == "one_off":
        raise Conflict("A one-off job has had its only run; make a new one.", code="one_off")
    if heals.open_for(session, job.id) is not None:
        raise Conflict(AT_WORK, code="heal_open")


def _refuse_repair(session: Session, job: Job) -> None:
    heal = heals.open_for(session, job.id)
    if heal is not None:
        raise Conflict(f"Heal {heal.id} is at work on this job; stop it first, or let it finish.", code="heal_open")
    if job.paused_session_id is not None:
        raise Conflict(f"Session {job.paused_session_id} repairs this job already; go on there.", code="hand_fix_open")
