"""The medic: decides on every final failure, oldest first, and opens what is to be healed."""

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from heal import guards, moves
from heal.attending import Attending, Patient
from heal.files import HealFiles, folder_of, record_undo
from heal.guards import Rules
from heal.moves import Spawned
from scheduler.ends import RETRYABLE
from store import cards, events, heals, jobs, runs
from store.cards import ALERT, ESCALATION, Card
from store.clock import now
from store.database import Database
from store.errors import Conflict, Refusal
from store.heals import Heal
from store.jobs import Job
from store.runs import Run

log = logging.getLogger("cron-heal")

TTL = timedelta(days=7)
AT_WORK = "A heal is already at work on this job."
NO_START = "Could not start the fix session. Please try again."
SILENT = ("heal_run", "secondary")
"""Decisions on failures that are no news to the person."""


class Medic:
    """A worker of desktop.loops.  Every decision is one transaction with all that follows from it."""

    def __init__(self, database: Database, attending: Attending, files: HealFiles, rules: Callable[[], Rules]) -> None:
        self._database = database
        self._attending = attending
        self._files = files
        self._rules = rules
        self._spawning = threading.Lock()
        self.on_failure: Callable[[Job, Run], None] = lambda _job, _run: None

    def step(self) -> bool:
        """Decides, opens pending heals, lets parked workers go; True when anything was decided or opened."""
        with self._database.read() as session:
            undecided = runs.undecided(session)
        for run in undecided:
            self._decide(run.id)
        with self._database.read() as session:
            open_heals = heals.all_open(session)
        worked = [self._attend(heal) for heal in open_heals if heal.closing_reason is None]
        return bool(undecided) or any(worked)

    def next_at(self) -> datetime | None:
        return None

    def _decide(self, run_id: int) -> None:
        rules = self._rules()
        self._take_back_what_made_it_worse(run_id)
        run, decision = self._database.write(lambda session: decide(session, run_id, rules), urgent=True)
        if decision is None:
            return
        log.info("[cron-heal] run %d of job %d: %s", run.id, run.job_id, decision)
        if decision not in SILENT:
            with self._database.read() as session:
                job = jobs.get(session, run.job_id)
            self.on_failure(job, run)

    def _take_back_what_made_it_worse(self, run_id: int) -> None:
        """Files of a heal on probation go back before the decision that its failure brings."""
        with self._database.read() as session:
            run = runs.get(session, run_id)
            heal = heals.on_probation(session).get(run.job_id)
            if heal is None or not _fails_probation(run, heal) or not _is_worse(session, run, heal):
                return
            folder = folder_of(session, heal)
        if folder is not None and folder.is_dir():
            restored = self._files.restore(heal.id, folder)
            self._database.write(lambda session: record_undo(session, heals.get(session, heal.id), restored, "heal"))

    def _attend(self, heal: Heal) -> bool:
        if heal.status == "pending":
            with self._spawning:
                return self._spawn_pending(heal.id)
        if heal.went_at is None:
            with self._database.read() as session:
                is_busy = any(run.heal_id != heal.id for run in runs.active_of(session, heal.job_id))
            return not is_busy and self._attending.let_go(heal.id)
        return False

    def _spawn_pending(self, heal_id: int) -> bool:
        """Looks again: a heal by hand is pending for a moment, and starts its own session."""
        with self._database.read() as session:
            heal = heals.get(session, heal_id)
        if heal.status != "pending" or heal.closing_reason is not None:
            return False
        self._spawn(heal)
        return True

    def _spawn(self, heal: Heal) -> None:
        """pending → spawned.  A heal whose session cannot be started is closed, and that counts."""
        with self._database.read() as session:
            run, job = runs.get(session, heal.run_id), jobs.get(session, heal.job_id)
        try:
            patient = self._attending.open(run, job)
        except Exception:
            log.exception("[cron-heal] auto-fire spawn failed for job %d", job.id)
            self._database.write(lambda session: moves.request_close(session, heal.id, moves.SPAWN_FAILED))
            return
        self._attending.adopt(heal.id, patient)
        if self._database.write(lambda session: moves.mark_spawned(session, heal.id, _facts(patient)), urgent=True):
            log.info("[cron-heal] heal %d of job %d is at work (session %d)", heal.id, job.id, patient.session_id)
        else:
            self._attending.discard(patient)

    def start_by_hand(self, job: Job, run: Run) -> Heal:
        """Fix it: the session, then the heal, then the pause, so that a pause never stands without its heal.

        A failed spawn leaves no heal.  Raises Conflict `no_folder`, `spawn_failed`, `heal_open`,
        `finalize_failed`, `stopped`.
        """
        try:
            patient = self._attending.open(run, job)
        except Refusal:
            raise
        except Exception as error:
            log.warning("[cron-heal] manual heal spawn failed for job %d %s", job.id, error)
            raise Conflict(NO_START, code="spawn_failed") from error
        with self._spawning:
            try:
                return self._record_by_hand(job, run, patient)
            except BaseException:
                self._attending.discard(patient)
                raise

    def _record_by_hand(self, job: Job, run: Run, patient: Patient) -> Heal:
        def insert(session: Session) -> int:
            if heals.open_for(session, job.id) is not None or heals.of_run(session, run.id) is not None:
                raise Conflict(AT_WORK, code="heal_open")
            return moves.insert(session, runs.get(session, run.id), jobs.get(session, job.id), is_manual=True).id

        heal_id = self._database.write(insert, urgent=True)
        self._attending.adopt(heal_id, patient)
        try:
            is_spawned = self._database.write(
                lambda session: moves.mark_spawned(session, heal_id, _facts(patient)), urgent=True
            )
        except SQLAlchemyError as error:
            log.warning("[cron-heal] manual heal finalize failed for job %d %s", job.id, error)
            self._database.write(lambda session: moves.request_close(session, heal_id, moves.FINALIZE_FAILED))
            raise Conflict(NO_START, code="finalize_failed") from error
        if not is_spawned:
            raise Conflict("The heal was stopped before it began.", code="stopped")
        with self._database.read() as session:
            return heals.get(session, heal_id)


def decide(session: Session, run_id: int, rules: Rules) -> tuple[Run, str | None]:
    """The decision of a final failure with all that follows from it; None when it was made before."""
    run = runs.get(session, run_id)
    if run.heal_decision is not None:
        return run, None
    job = jobs.get(session, run.job_id)
    _judge_probation(session, run, job)
    decision = guards.decide(session, run, job, rules)
    run.heal_decision = decision
    events.record(session, "heal.decided", "engine", job_id=job.id, run_id=run.id, reason=decision)
    if decision == "healed":
        moves.insert(session, run, job, is_manual=False)
    elif decision == "guard:cap":
        _escalate(session, run, job)
    elif decision in guards.ALERTING:
        _alert(session, run, job)
    return run, decision


def _fails_probation(run: Run, heal: Heal) -> bool:
    """The same failure again, or one in what the heal changed, takes the fix back."""
    return run.triggered_by in RETRYABLE and heal.closed_at is not None and run.claimed_at >= heal.closed_at


def _is_worse(session: Session, run: Run, heal: Heal) -> bool:
    """Whether the failure is another one than before, in a file that the heal changed."""
    if run.cause == heal.cause:
        return False
    said = f"{run.cause or ''} {(run.failure_evidence_json or {}).get('stderrTail', '')}"
    return any(edit.path and edit.path in said for edit in heals.edits(session, heal.id))


def _judge_probation(session: Session, run: Run, job: Job) -> None:
    heal = heals.on_probation(session).get(job.id)
    if heal is None or not _fails_probation(run, heal):
        return
    is_same = run.category == heal.category and _core(run.cause) == _core(heal.cause)
    if not is_same and not _is_worse(session, run, heal):
        return
    heal.probation = "failed"
    job.consecutive_heal_failures = heal.failures_before + 1
    why = "the same failure came back" if is_same else "the patch broke something else"
    events.record(session, "heal.probation_failed", "engine", job_id=job.id, run_id=run.id, heal_id=heal.id, reason=why)


def _core(cause: str | None) -> str:
    """The cause without what follows it, such as the last words before a time limit."""
    return (cause or "").partition("; ")[0]


def _alert(session: Session, run: Run, job: Job) -> None:
    evidence = run.failure_evidence_json or {}
    card = Card(
        action_kind=ALERT,
        target=f"job:{job.id}",
        job_id=job.id,
        run_id=run.id,
        title=f"{job.name} failed",
        preview=(run.cause or run.error or "")[:500],
        payload={
            "jobId": job.id,
            "runId": run.id,
            "cause": run.cause,
            "error": run.error,
            "attempts": run.retry_number + 1,
            "lastLines": (evidence.get("stderrTail") or evidence.get("stdoutTail") or "")[-2_000:],
            "decision": run.heal_decision,
        },
    )
    cards.post(session, card)


def _escalate(session: Session, run: Run, job: Job) -> None:
    cards.dismiss_for_job(session, job.id, (ALERT,), "escalated")
    card = Card(
        action_kind=ESCALATION,
        target=f"job:{job.id}",
        job_id=job.id,
        run_id=run.id,
        title=f"{job.name} needs human attention",
        preview=f"{guards.CAP} failed self-heals — last category: {run.category or 'unknown'}",
        payload={"escalation": True, "jobId": job.id},
    )
    cards.post(session, card)


def _facts(patient: Patient) -> Spawned:
    worker = patient.worker
    return Spawned(patient.session_id, worker.pid, worker.start_time, worker.boot_id)


def is_aged(heal: Heal) -> bool:
    return now() - heal.created_at > TTL
