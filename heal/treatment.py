"""What is done with a heal: its session proves and resumes, a person stops and undoes it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from agent.sandbox import find_sandbox, private_within, refusal
from agent.sessions import Sessions
from agent.tools import Workspace
from heal import moves, proof
from heal.attending import Attending
from heal.closings import Closings
from heal.files import HealFiles, folder_of, record_undo
from heal.medic import Medic
from heal.proof import Outcome
from scheduler import jobs as job_use_cases
from scheduler.environment import Surroundings
from scheduler.runs import Runs
from store import events, heals, jobs
from store.database import Database
from store.errors import Conflict, Forbidden
from store.heals import Heal, Verification
from store.jobs import Job
from store.redaction import redact
from store.runs import Run

NO_PROOF = "There is no proof that the fix works: use run_job or verify first, and change nothing afterwards."
SIDE_EFFECTS = "A heal may not run this job for real (its effects are not declared harmless); use verify instead."
MOST_VERIFY_SECS = 600


@dataclass(frozen=True)
class Clinic:
    """The parts that treatment is composed of.

    `secrets` may be in no text that leaves for a model, `private` in no view of a command.
    """

    database: Database
    runs: Runs
    files: HealFiles
    attending: Attending
    closings: Closings
    medic: Medic
    sessions: Sessions
    surroundings: Surroundings
    secrets: Callable[[], tuple[str, ...]]
    private: tuple[Path, ...]
    workspace: Path


class Treatment:
    """The use cases of a heal that there is; heal.by_hand starts what a person wants."""

    def __init__(self, clinic: Clinic) -> None:
        self._database = clinic.database
        self._runs = clinic.runs
        self._files = clinic.files
        self._attending = clinic.attending
        self._closings = clinic.closings
        self._surroundings = clinic.surroundings
        self._secrets = clinic.secrets
        self._private = clinic.private
        self._before: dict[int, str] = {}
        self._lock = threading.Lock()

    # A session proves its fix

    def start_proof(self, heal: Heal) -> int:
        """A real run for this heal; its id.  Raises Conflict `side_effects`, `already_running`."""
        job, folder = self._look_up(heal)
        if not proof.may_run(job):
            raise Conflict(SIDE_EFFECTS, code="side_effects")
        before = proof.digest(self._files.digest(heal.id, folder), job)
        run_id = self._runs.start(job.id, "heal", heal_id=heal.id)
        with self._lock:
            self._before[run_id] = before
        return run_id

    def record_proof(self, heal: Heal, run: Run) -> None:
        """A green run that saw the same files and definition before and after is a proof; once."""
        with self._lock:
            before = self._before.pop(run.id, None)
        if before is not None and run.status == "completed":
            self._record(heal, before, Outcome(True, proof.BY_RUN, f"run {run.id} ended green"), run.id)

    def verify(self, heal: Heal) -> dict[str, Any]:
        """The job's verify command in the sandbox, else a check of syntax and imports."""
        job, folder = self._look_up(heal)
        before = proof.digest(self._files.digest(heal.id, folder), job)
        outcome = self._verify_by_command(heal, job, folder) if job.verify_command else self._check(heal, job, folder)
        self.hear(heal)
        recorded = outcome.is_green and self._record(heal, before, outcome, None)
        return {
            "status": "passed" if outcome.is_green else "failed",
            "kind": outcome.kind,
            "recorded": bool(recorded),
            "output": redact(outcome.detail, self._secrets()),
        }

    def _verify_by_command(self, heal: Heal, job: Job, folder: Path) -> Outcome:
        sandbox = find_sandbox()
        if sandbox is None:
            raise Conflict("The verify command needs a sandbox, and this machine has none.", code="no_sandbox")
        workspace = Workspace(folder.resolve(), private_within(self._private, folder), self._secrets())
        if (reason := refusal(workspace, self._private)) is not None:
            raise Conflict(f"The verify command may not run in this project: {reason}", code="no_sandbox")
        # What the command writes is not the heal's; the copy aside keeps the project safe from it.
        writable = self._files.prepare_shell(heal.id, folder, workspace.forbidden)
        done = sandbox.run(
            workspace,
            ["/bin/sh", "-c", job.verify_command or ""],
            writable=writable,
            cwd=self._folder_of_job(job, folder),
            path=self._surroundings.path(job),
            timeout_secs=min(self._surroundings.timeout_secs(job), MOST_VERIFY_SECS),
        )
        text = done.output.decode(errors="replace")
        ended = "ran too long" if done.timed_out else f"exit code {done.exit_code}"
        return Outcome(not done.timed_out and done.exit_code == 0, proof.BY_COMMAND, f"{ended}\n{text}".strip())

    def _check(self, heal: Heal, job: Job, folder: Path) -> Outcome:
        changed = [edit.path for edit in self._files.edits(heal.id)]
        named = proof.commands_files(job.command or "", self._folder_of_job(job, folder), folder)
        return proof.check_syntax(folder, list(dict.fromkeys([*changed, *named])))

    def _record(self, heal: Heal, before: str, outcome: Outcome, run_id: int | None) -> bool:
        job, folder = self._look_up(heal)
        files = self._files.digest(heal.id, folder)

        def change(session: Session) -> bool:
            present = jobs.get(session, job.id)
            if proof.digest(files, present) != before:
                return False
            detail = redact(outcome.detail, self._secrets())[-4_000:]
            session.add(Verification(heal_id=heal.id, kind=outcome.kind, digest=before, run_id=run_id, detail=detail))
            events.record(session, "heal.verified", "app", job_id=job.id, heal_id=heal.id, reason=outcome.kind)
            return True

        return self._database.write(change)

    # Resuming

    def resume(self, heal: Heal, said: tuple[str | None, str | None], *, wanted: bool) -> Job:
        """A session resumes what it has proven.  Raises Forbidden, Conflict `no_verification`."""
        if not wanted:
            raise Forbidden("A heal session may only resume the schedule.")
        job, folder = self._look_up(heal)
        files = self._files.digest(heal.id, folder)
        root_cause, fixed_by = (redact(text, self._secrets())[:2_000] if text else None for text in said)

        def change(session: Session) -> Job:
            present = jobs.get(session, job.id)
            record = heals.latest_verification(session, heal.id)
            if record is None or record.digest != proof.digest(files, present) or not proof.is_enough(record, present):
                raise Conflict(NO_PROOF, code="no_verification")
            if not moves.fix(session, heals.get(session, heal.id), record.kind, root_cause, fixed_by):
                raise Forbidden("session not authorized for this job")
            return present

        resumed = self._database.write(change, urgent=True)
        self._files.keep_patch(heal.id, folder)
        return resumed

    def resume_by_person(self, job_id: int) -> Job:
        """Lifts the person's pause and stops a heal that is at work on the job."""

        def change(session: Session) -> int | None:
            job_use_cases.resume(session, job_id)
            heal = heals.open_for(session, job_id)
            if heal is None:
                return None
            moves.request_close(session, heal.id, moves.STOPPED_BY_USER, "person")
            return heal.id

        stopped = self._database.write(change)
        if stopped is not None:
            self._closings.finish(stopped)
        with self._database.read() as session:
            return jobs.get(session, job_id)

    # A person's own

    def undo(self, heal_id: int) -> dict[str, Any]:
        """Puts the files of a closed heal back.  Raises NotFound, Conflict while it works."""
        with self._database.read() as session:
            heal = heals.get(session, heal_id)
            folder = folder_of(session, heal)
        if heal.status in heals.OPEN:
            raise Conflict("This heal is still at work; resume the job to stop it.", code="heal_open")
        if folder is None or not folder.is_dir():
            raise Conflict("The folder of this heal is gone; there is nothing to put back.", code="no_folder")
        restored = self._files.restore(heal_id, folder)
        self._database.write(lambda session: record_undo(session, heals.get(session, heal_id), restored, "person"))
        return {"id": heal_id, "restored": list(restored.restored), "kept": list(restored.kept)}

    def hear(self, heal: Heal) -> None:
        """The heal's session called the app: it is not silent."""
        self._attending.touch(heal.session_id or 0)

    def redact(self, text: str) -> str:
        """The text without the live secrets: what leaves for a model passes here."""
        return redact(text, self._secrets())

    def _look_up(self, heal: Heal) -> tuple[Job, Path]:
        with self._database.read() as session:
            job = jobs.get(session, heal.job_id)
            folder = folder_of(session, heal)
        if folder is None:
            raise Conflict("This heal has no session.", code="no_session")
        return job, folder

    def _folder_of_job(self, job: Job, folder: Path) -> Path:
        cwd = Path(self._surroundings.folder(job, str(folder)))
        return cwd if cwd.resolve().is_relative_to(folder.resolve()) else folder
