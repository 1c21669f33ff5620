"""Heal sessions at work: starts their workers, stores what they say, answers what they ask, ends the hung ones."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from agent import transcript
from agent.sandbox import find_sandbox, private_within, refusal
from agent.sessions import Office
from agent.tools import Workspace
from agent.wire import Spec
from agent.worker_process import WorkerProcess, kill_tree
from heal import moves
from heal.evidence import Evidence
from heal.files import HealFiles
from heal.playbook.case import Case
from heal.prompt import SYSTEM, Facts, write_prompt
from scheduler.environment import Surroundings
from scheduler.session_runs import project_of
from store import cards, events, heals, jobs, projects, runs
from store.cards import NEEDS_YOU, PROPOSAL, Card
from store.clock import now
from store.database import Database
from store.errors import Conflict
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.redaction import redact
from store.runs import Run
from store.sessions import Conversation

log = logging.getLogger("cron-heal")

WORKER = (sys.executable, "-P", "-m", "heal.worker")
HUNG_SILENT_SECS = 180.0
HUNG_WALL_SECS = 900.0
LOOK_EVERY_SECS = 5.0
TOKEN_SECS = 3_600
READY_SECS = 20.0
RECENT_RUNS = 10
KINDS_OF_END = {
    "no_resume": moves.NO_RESUME,
    "failed": moves.NO_RESUME,
    "no_progress": "no progress",
    "budget": "budget exhausted",
    "provider_unavailable": "provider unavailable",
    "model_refused": "model refused",
    "stopped": moves.STOPPED_BY_USER,
}
WITH_DETAIL = {"gave_up": "gave up: ", "needs_you": "needs you: ", "waiting": "waiting: "}


@dataclass(frozen=True)
class Surgery:
    """What the app gives every heal session, besides what all sessions get; `workspace`: for jobs without a project."""

    command: tuple[str, ...]
    office: Office
    workspace: Path


@dataclass
class Patient:
    """One heal session whose worker lives.  `heal_id` is 0 until a heal has adopted it; until then it is parked."""

    session_id: int
    job_id: int
    project: Path
    forbidden: tuple[Path, ...]
    token: str
    began: float
    heard: float
    worker: WorkerProcess = field(init=False)
    heal_id: int = 0
    has_ended: bool = False
    is_ready: threading.Event = field(default_factory=threading.Event)


class Attending:
    """A worker of desktop.loops: `step()` closes heals whose session hangs."""

    def __init__(
        self,
        database: Database,
        files: HealFiles,
        surroundings: Surroundings,
        surgery: Surgery,
        spawn_thread: Callable[[str, Callable[[], None]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._database = database
        self._files = files
        self._surroundings = surroundings
        self._surgery = surgery
        self._spawn_thread = spawn_thread
        self._patients: dict[int, Patient] = {}
        self._lock = threading.Lock()

    # Opening

    def open(self, run: Run, job: Job) -> Patient:
        """A session and a parked worker for the failed run; nothing stays if that fails.

        Raises OSError, Conflict `no_folder`.
        """
        project = self._database.write(lambda session: self._project_of(session, job))
        folder = Path(project.folder_path)
        if not folder.is_dir():
            raise Conflict(f"The project folder {folder} is gone; put it back, or change the job.", code="no_folder")
        session_id = self._database.write(lambda session: _begin(session, run, job, project))
        try:
            return self._spawn(run, job, folder, session_id)
        except BaseException:
            self._database.write(lambda session: _forget(session, session_id))
            raise

    def adopt(self, heal_id: int, patient: Patient) -> None:
        """From now on the patient is that of this heal."""
        patient.heal_id = heal_id
        with self._lock:
            self._patients[heal_id] = patient

    def discard(self, patient: Patient) -> None:
        """Ends a worker that no heal has adopted, and its session."""
        patient.has_ended = True
        patient.worker.kill()
        self._database.write(lambda session: _forget(session, patient.session_id))

    def let_go(self, heal_id: int) -> bool:
        """The parked worker may begin."""
        patient = self._patient(heal_id)
        if patient is None:
            return False
        if self._database.write(lambda session: moves.mark_gone(session, heal_id)):
            patient.began = patient.heard = self._clock()
            patient.worker.go()
        return True

    def _project_of(self, session: Session, job: Job) -> Project:
        return projects.get(session, project_of(session, job, self._surgery.workspace))

    def _spawn(self, run: Run, job: Job, folder: Path, session_id: int) -> Patient:
        # The token names the session; that the session is an open heal's is asked anew at each call.
        token = self._surgery.office.tokens.mint(session_id, f"heal:{job.id}", TOKEN_SECS)
        spec = self._spec(run, job, folder, session_id, token)
        forbidden = tuple(Path(path) for path in spec.forbidden)
        patient = Patient(session_id, job.id, folder, forbidden, token, began=self._clock(), heard=self._clock())
        patient.worker = WorkerProcess(
            self._surgery.command,
            spec,
            lambda line: self._hear(patient, line),
            lambda code: self._see_exit(patient, code),
            self._spawn_thread,
        )
        if not patient.is_ready.wait(READY_SECS):
            patient.has_ended = True
            patient.worker.kill()
            raise OSError("its process did not start")
        return patient

    def _spec(self, run: Run, job: Job, folder: Path, session_id: int, token: str) -> Spec:
        settings = {name: value.value for name, value in self._surgery.office.settings().items()}
        credentials = self._surgery.office.access.present
        secrets = (*self._surgery.office.secrets(), token)
        real = folder.resolve()
        forbidden = private_within(self._surgery.office.private, folder)
        workspace = Workspace(real, forbidden, secrets)
        has_shell = find_sandbox() is not None and refusal(workspace, self._surgery.office.private) is None
        cwd = self._surroundings.folder(job, str(folder) if job.project_id else None)
        with self._database.read() as session:
            recent = [one for one in runs.listing(session, job_id=job.id, limit=RECENT_RUNS) if one.id != run.id]
        facts = Facts(job, run, cwd, str(folder), recent, has_shell, secrets)
        return Spec(
            session_id=session_id,
            heal_id=0,
            job_id=job.id,
            project=str(real),
            cwd=cwd,
            path=self._surroundings.path(job),
            api_url=self._surgery.office.api_url(),
            session_token=token,
            tools={"bash": has_shell},
            forbidden=tuple(str(path) for path in forbidden),
            provider={
                "mode": settings["CRONMEND_HEALER"],
                "apiKey": credentials.api_key,
                "authToken": credentials.auth_token,
                "baseUrl": credentials.base_url,
                "model": settings["CRONMEND_MODEL"],
            },
            limits={"turns": 30, "wallSecs": HUNG_WALL_SECS, "maxTokens": 8192, "budgetUsd": 1.0},
            system=SYSTEM,
            prompt=write_prompt(facts),
            secrets=secrets,
            case=_case(run, job, str(real), cwd, self._surroundings.path(job), forbidden).to_json(),
        )

    # What a worker says

    def _hear(self, patient: Patient, line: dict[str, Any]) -> None:
        patient.heard = self._clock()
        try:
            self._obey(patient, line)
        except Exception:
            log.exception("[cron-heal] heal %d: a line of its session could not be handled", patient.heal_id)

    def _obey(self, patient: Patient, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind == "ready":
            patient.is_ready.set()
        elif kind == "message":
            self._files.note_after(patient.heal_id, patient.project)
            self._store_message(patient, line)
        elif kind == "ask":
            self._answer(patient, line)
        elif kind == "changed":
            self._files.note_changed(patient.heal_id, patient.project, _texts(line.get("paths")))
        elif kind == "propose":
            self._database.write(lambda session: _propose(session, patient, line))
        elif kind == "end":
            self._end(patient, line)

    def _store_message(self, patient: Patient, line: dict[str, Any]) -> None:
        secrets = (*self._surgery.office.secrets(), patient.token)
        self._database.write(lambda session: transcript.keep(session, patient.session_id, line, secrets))

    def _answer(self, patient: Patient, line: dict[str, Any]) -> None:
        number = int(line["id"])
        if self._is_closing(patient):
            patient.worker.reply(number, ok=False, error="this heal is being closed")
            return
        try:
            if line.get("what") == "edit":
                self._files.intend(patient.heal_id, patient.project, _texts(line.get("paths")), line.get("by", "tool"))
                patient.worker.reply(number, ok=True)
            else:
                may = self._files.prepare_shell(patient.heal_id, patient.project, patient.forbidden)
                patient.worker.reply(number, ok=True, writable=may)
        except (OSError, ValueError) as error:
            patient.worker.reply(number, ok=False, error=f"it cannot be saved first: {error}")

    def _is_closing(self, patient: Patient) -> bool:
        with self._database.read() as session:
            heal = heals.get(session, patient.heal_id)
        return heal.closing_reason is not None or heal.status != "spawned"

    def _end(self, patient: Patient, line: dict[str, Any]) -> None:
        patient.has_ended = True
        self._files.note_after(patient.heal_id, patient.project)
        outcome, detail = str(line.get("outcome")), str(line.get("detail") or "")
        detail = redact(detail, (*self._surgery.office.secrets(), patient.token))
        usage = line.get("usage") or {}
        log.info("[CronHeal] heal %d: its session ended: %s %s", patient.heal_id, outcome, detail)

        def change(session: Session) -> None:
            conversation = session.get_one(Conversation, patient.session_id)
            transcript.add_usage(conversation, usage)
            heal = heals.get(session, patient.heal_id)
            heal.cost_usd = conversation.cost_usd
            if heal.status == "fixed":
                moves.end_session(session, heal, "idle")
                return
            reason = WITH_DETAIL[outcome] + detail if outcome in WITH_DETAIL else KINDS_OF_END.get(outcome)
            if moves.request_close(session, heal.id, reason or moves.NO_RESUME) and outcome == "needs_you":
                _ask_person(session, heal, detail)

        self._database.write(change)

    def _see_exit(self, patient: Patient, code: int) -> None:
        with self._lock:
            self._patients.pop(patient.heal_id, None)
        if not patient.has_ended and patient.heal_id:
            log.warning("[CronHeal] heal %d: its worker ended with %d and no word", patient.heal_id, code)
            self._end(patient, {"outcome": "failed"})

    # Hung sessions and ends

    def step(self) -> bool:
        at = self._clock()
        with self._lock:
            patients = list(self._patients.values())
        for patient in patients:
            if at - patient.began > HUNG_WALL_SECS or at - patient.heard > HUNG_SILENT_SECS:
                self._close_hung(patient)
        return False

    def next_at(self) -> datetime | None:
        return now() + timedelta(seconds=LOOK_EVERY_SECS) if self._patients else None

    def touch(self, session_id: int) -> None:
        """The session called the app: it is not silent."""
        with self._lock:
            for patient in self._patients.values():
                if patient.session_id == session_id:
                    patient.heard = self._clock()

    def _close_hung(self, patient: Patient) -> None:
        with self._database.read() as session:
            heal = heals.get(session, patient.heal_id)
        if heal.went_at is None or heal.status != "spawned":
            return  # parked while an older run of the job still lives
        self._database.write(lambda session: moves.request_close(session, patient.heal_id, moves.HUNG))

    def end_worker(self, heal: Heal) -> None:
        """Ends the heal's worker with everything it started; returns when it is gone."""
        patient = self._patient(heal.id)
        if patient is not None:
            patient.has_ended = True
            patient.worker.kill()
        elif heal.worker_pid and heal.worker_start and heal.worker_boot_id:
            kill_tree(heal.worker_pid, heal.worker_start, heal.worker_boot_id)

    def end_all(self) -> None:
        """At the end of the app: workers must not outlive it."""
        with self._lock:
            patients = list(self._patients.values())
        for patient in patients:
            patient.has_ended = True
            with contextlib.suppress(OSError):
                patient.worker.kill()

    def _patient(self, heal_id: int) -> Patient | None:
        with self._lock:
            return self._patients.get(heal_id)


def _begin(session: Session, run: Run, job: Job, project: Project) -> int:
    conversation = Conversation(
        project_id=project.id,
        origin="heal",
        job_id=job.id,
        run_id=run.id,
        title=f"Heal {job.name}",
        tools=["files", "shell"],
    )
    session.add(conversation)
    session.flush()
    events.record(session, "session.opened", "heal", job_id=job.id, session_id=conversation.id)
    return conversation.id


def _forget(session: Session, session_id: int) -> None:
    conversation = session.get_one(Conversation, session_id)
    conversation.status, conversation.ended_at = "failed", now()


def _case(run: Run, job: Job, project: str, cwd: str, path: str, forbidden: tuple[Path, ...]) -> Case:
    evidence = Evidence.from_json(run.failure_evidence_json) if run.failure_evidence_json else None
    return Case(
        project=project,
        cwd=cwd,
        command=job.command or "",
        path=path,
        exit_code=run.exit_code,
        signal=run.signal,
        spawn_error=evidence.spawn_error if evidence else None,
        stdout_tail=evidence.stdout_tail if evidence else "",
        stderr_tail=evidence.stderr_tail if evidence else "",
        category=run.category or "unknown",
        cause=run.cause or "",
        run_started_at=run.started_at.timestamp() if run.started_at else 0.0,
        forbidden=tuple(str(path) for path in forbidden),
    )


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _propose(session: Session, patient: Patient, line: dict[str, Any]) -> None:
    job = jobs.get(session, patient.job_id)
    facts = {name: str(line.get(name) or "") for name in ("field", "value", "why")}
    card = Card(
        action_kind=PROPOSAL,
        target=f"heal:{patient.heal_id}:{facts['field']}",
        job_id=job.id,
        title=f"{job.name}: change {facts['field']}?",
        preview=facts["why"][:500],
        payload={"healId": patient.heal_id, "jobId": job.id, **facts},
    )
    cards.post(session, card)


def _ask_person(session: Session, heal: Heal, detail: str) -> None:
    job = jobs.get(session, heal.job_id)
    card = Card(
        action_kind=NEEDS_YOU,
        target=f"job:{job.id}",
        job_id=job.id,
        run_id=heal.run_id,
        title=f"{job.name} needs you",
        preview=detail[:500],
        payload={"healId": heal.id, "jobId": job.id, "runId": heal.run_id, "step": detail},
    )
    cards.post(session, card)
