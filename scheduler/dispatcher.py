"""The dispatcher: claims due slots in one commit, then hands what may run to the keeper."""

import contextlib
import logging
import math
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from scheduler import approvals, claims, clock_steps
from scheduler import jobs as use_cases
from scheduler.environment import Surroundings
from scheduler.keeper_link import Cleanup, KeeperLink, KeeperUnreachable, Report, Start
from scheduler.launch import argv_of
from scheduler.logs import LogFolder
from scheduler.session_runs import SessionRuns
from scheduler.slots import Plan, plan
from store import jobs, runs
from store.clock import now
from store.database import Database
from store.errors import Invalid
from store.jobs import Job
from store.projects import Project
from store.runs import IS_ACTIVE_SQL, Run

log = logging.getLogger("engine")

GRACE_SECS = 5.0
"""Between asking a process tree to end and ending it."""

FEW = 50
"""Slots that are looked for, planned and claimed in one transaction."""

CLEANUP_SECS = 300.0
"""The time limit of a cleanup command."""

CHUNK = 64
"""Starts in one message."""

LAST = datetime.max.replace(tzinfo=UTC)
AT_ONCE = ("manual", "wake", "heal")
"""What a person or a heal asks for does not wait for a place."""

AFTER_REFUSAL = timedelta(seconds=5)
"""Before a run is tried again that could not be taken (no room for its log, a keeper that is ending)."""

STILL_REFUSED = 2 * AFTER_REFUSAL
"""By then another attempt was made: what is still in the way has been told again."""


@dataclass(frozen=True)
class _Ready:
    """A run that may start now."""

    run: Run
    job: Job
    project_folder: str | None
    timeout_secs: int


class _TakenBackError(Exception):
    """Undoes the rehearsal."""


class Dispatcher:
    """A worker of desktop.loops: `step()` does what is due now, `next_at()` says when there is more."""

    def __init__(
        self,
        database: Database,
        keeper: KeeperLink,
        logs: LogFolder,
        surroundings: Surroundings,
        session_runs: SessionRuns,
    ) -> None:
        self._database = database
        self._session_runs = session_runs
        self._keeper = keeper
        self._logs = logs
        self._surroundings = surroundings
        self._up_since = now()
        self._submitted: set[tuple[int, int]] = set()
        self._put_off_until: dict[tuple[int, int], datetime] = {}
        self._refusal: tuple[str, datetime] | None = None
        # What is due, as it was seen last: each commit that may change it brings another look.
        self._slot_at = datetime.min.replace(tzinfo=UTC)
        self._releases_at = datetime.min.replace(tzinfo=UTC)
        self._seen: datetime | None = None
        self._lock = threading.Lock()

    def next_at(self) -> datetime | None:
        with self._database.read() as session:
            self._releases_at = min(
                (at for at in (jobs.earliest_resume(session), approvals.earliest_expiry(session)) if at), default=LAST
            )
            self._slot_at = jobs.earliest_slot(session) or LAST
            others = (runs.next_retry_at(session), _earliest_jitter(session), self._earliest_put_off())
        soonest = min(self._slot_at, self._releases_at, *(at for at in others if at))
        return soonest if soonest < LAST else None

    def step(self) -> bool:
        """Claims and submits; True when anything was done."""
        at = now()
        self._notice_step_back(at)
        worked = self._release(at) + self._claim_slots(at)
        started = self._submit(at)  # before the rest: what is due now waits for nothing else
        retried = self._claim_retries(at)
        return bool(worked + started + retried + (self._submit(at) if retried else 0))

    def _notice_step_back(self, at: datetime) -> None:
        """A clock that was set back, also while the app was closed, leaves slots that are to come again."""
        if self._seen is None:
            with self._database.read() as session:
                self._seen = clock_steps.newest_seen(session) or at
        if self._seen - at > clock_steps.STEP:
            log.warning("[engine] the clock was set back by %.0f s", (self._seen - at).total_seconds())
            self._database.write(lambda session: clock_steps.take_back(session, at), urgent=True)
            self._seen = self._slot_at = self._releases_at = at
            with self._lock:
                self._put_off_until.clear()
        self._seen = max(at, self._seen)

    def rehearse(self) -> None:
        """Claims a slot and takes it back: the first real one must not wait for statements to be compiled."""
        at = now()

        def act(session: Session) -> None:
            session.add(Job(name="", target_type="command", timezone="UTC", schedule="* * * * *", next_run_at=at))
            session.flush()
            self._claim_few(session, at)
            self._ready(session, at)
            raise _TakenBackError

        with contextlib.suppress(_TakenBackError):
            self._database.write(act)

    def _release(self, at: datetime) -> int:
        """Ends of pauses and of questions: none is due before the earliest of them that was seen last."""
        return self._lift_pauses(at) + self._expire_approvals(at) if at >= self._releases_at else 0

    def knows(self, entries: Sequence[tuple[int, int]]) -> None:
        """What the keeper already has: these are not submitted again."""
        with self._lock:
            self._submitted = set(entries)

    def has(self, run_id: int, attempt: int) -> bool:
        """Whether the keeper was given this attempt."""
        with self._lock:
            return (run_id, attempt) in self._submitted

    def refused(self, report: Report) -> None:
        """The keeper cannot take a run now: it stays pending, and is handed over again a little later."""
        self._put_off((report.run, report.attempt), report.reason or "the keeper cannot take it")

    @property
    def trouble(self) -> str | None:
        """Why runs that are due do not start, for the page; None when they do."""
        with self._lock:
            if self._refusal is None or now() > self._refusal[1] + STILL_REFUSED:
                return None
            return f"Runs wait to start: {self._refusal[0]}."

    def _put_off(self, key: tuple[int, int], reason: str) -> None:
        at = now()
        with self._lock:
            self._submitted.discard(key)
            self._put_off_until[key] = at + AFTER_REFUSAL
            is_known = self._refusal is not None and at < self._refusal[1] + STILL_REFUSED
            self._refusal = reason, at
        self._logs.look_again()
        if not is_known:
            log.warning("[engine] run %d waits: %s", key[0], reason)

    def _lift_pauses(self, at: datetime) -> int:
        """Pauses that the person set an end to."""
        with self._database.read() as session:
            over = [job.id for job in jobs.resuming(session, at)]
        for job_id in over:
            self._database.write(lambda session, job_id=job_id: use_cases.resume_when_over(session, job_id, at))  # type: ignore[misc]
        return len(over)

    def _expire_approvals(self, at: datetime) -> int:
        """Before slots are claimed: an unanswered question must not make the next slot an overlap."""
        with self._database.read() as session:
            over = approvals.expired(session, at)
        if over:
            self._database.write(lambda session: approvals.expire(session, over, at), urgent=True)
        return len(over)

    def _claim_slots(self, at: datetime) -> int:
        if at < self._slot_at:
            return 0
        claimed = self._database.write(lambda session: self._claim_few(session, at), urgent=True)
        return self._claim_many(at) if claimed is None else claimed

    def _claim_few(self, session: Session, at: datetime) -> int | None:
        """Looks, plans and claims in one transaction; None when so much is due that planning would hold others up."""
        due = jobs.due(session, at, FEW + 1)
        if len(due) > FEW:
            return None
        plans = [made for job in due if (made := self._plan(job, at, session)) is not None]
        return claims.claim(session, plans, at, due) if plans else 0

    def _claim_many(self, at: datetime) -> int:
        with self._database.read() as session:
            due = jobs.due(session, at)
        plans = [made for job in due if (made := self._plan(job, at)) is not None]
        return self._database.write(lambda session: claims.claim(session, plans, at), urgent=True) if plans else 0

    def _plan(self, job: Job, at: datetime, session: Session | None = None) -> Plan | None:
        """One job that cannot be planned must not keep the others waiting: it is blocked, and says why."""
        try:
            return plan(job, at, self._up_since)
        except Invalid as error:
            reason = error.message
        log.warning("[engine] job %d is blocked: %s", job.id, reason)
        if session is not None:
            use_cases.block(session, job.id, reason)
        else:
            self._database.write(lambda session: use_cases.block(session, job.id, reason))
        return None

    def _claim_retries(self, at: datetime) -> int:
        with self._database.read() as session:
            sources = [run.id for run in runs.retries_due(session, at)]
        claimed = 0
        for source in sources:
            child = self._database.write(lambda session, source=source: claims.claim_retry(session, source, at))  # type: ignore[misc]
            claimed += child is not None
        return claimed

    def _submit(self, at: datetime) -> int:
        with self._database.read() as session:
            ready, replaced = self._ready(session, at)
        if not ready and not replaced:
            return 0
        try:
            for run in replaced:
                self.stop(run, "replace")
            commands = [one for one in ready if one.job.target_type != "session"]
            # The keeper begins with the first ones while the others are still being prepared.
            for begin in range(0, len(commands), CHUNK):
                self._hand_over(commands[begin : begin + CHUNK])
        except KeeperUnreachable as error:
            log.warning("[engine] %s; %d runs wait", error, len(ready))
            return 0
        for one in ready:
            if one.job.target_type == "session":
                with self._lock:
                    self._submitted.add((one.run.id, one.run.attempt))
                self._session_runs.start(one.run, one.job, one.timeout_secs)
        return len(ready)

    def stop(self, run: Run, why: str) -> None:
        """Ends a live run's session or process tree; how it ended is reported like any other end."""
        if not self._session_runs.stop(run.id):
            self._keeper.stop(run.id, run.attempt, why, GRACE_SECS)

    def _hand_over(self, ready: Sequence[_Ready]) -> None:
        starts = [start for one in ready if (start := self._start(one)) is not None]
        keys = {(start.run, start.attempt) for start in starts}
        with self._lock:
            self._submitted |= keys
        try:
            self._keeper.start(starts)
        except KeeperUnreachable:
            with self._lock:
                self._submitted -= keys
            raise

    def _ready(self, session: Session, at: datetime) -> tuple[list[_Ready], list[Run]]:
        """Pending runs that may start now, and live runs that a replacing one ends."""
        active = runs.all_active(session)
        submitted = self._still_submitted(active)
        kept_back = submitted | self._still_put_off(at, active)
        waiting = [run for run in active if run.status == "pending" and (run.id, run.attempt) not in kept_back]
        waiting = [run for run in waiting if (run.not_before or at) <= at and run.abort_reason is None]
        if not waiting:
            return [], []
        owners = _jobs_of(session, {run.job_id for run in waiting})
        folders = dict(session.execute(select(Project.id, Project.folder_path)).all())
        limit = self._surroundings.hard_timeout()
        occupied = {run.job_id: run for run in active if run.status != "pending" or (run.id, run.attempt) in submitted}
        ready, replaced = [], []
        free = self._free_places(active, submitted)
        at_work = [run.job_id for run in active if run.status != "pending" or (run.id, run.attempt) in submitted]
        pools = self._free_in_pools(session, owners.values(), at_work)
        for run in waiting:
            job = owners[run.job_id]
            holder = occupied.get(job.id)
            if holder is not None and job.overlap != "parallel":
                if job.overlap == "replace" and holder.status == "running":
                    replaced.append(holder)
                continue
            counts = job.target_type != "session" and run.triggered_by not in AT_ONCE
            if (counts and free <= 0) or (job.pool is not None and pools[job.pool] <= 0):
                continue  # it stays due, and is looked at again when a run ends
            free -= counts
            if job.pool is not None:
                pools[job.pool] -= 1
            occupied[job.id] = run
            project_folder = folders[job.project_id] if job.project_id else None
            ready.append(_Ready(run, job, project_folder, job.timeout_secs or limit))
        return ready, replaced

    def _still_submitted(self, active: Sequence[Run]) -> set[tuple[int, int]]:
        """What the keeper has; what has ended is forgotten."""
        with self._lock:
            self._submitted &= {(run.id, run.attempt) for run in active}
            return set(self._submitted)

    def _still_put_off(self, at: datetime, active: Sequence[Run]) -> set[tuple[int, int]]:
        with self._lock:
            if self._put_off_until:
                keys = {(run.id, run.attempt) for run in active}
                self._put_off_until = {k: due for k, due in self._put_off_until.items() if k in keys and due > at}
            return set(self._put_off_until)

    def _earliest_put_off(self) -> datetime | None:
        with self._lock:
            return min(self._put_off_until.values(), default=None)

    def _free_places(self, active: Sequence[Run], submitted: set[tuple[int, int]]) -> float:
        most = self._surroundings.most_at_once()
        if not most:
            return math.inf
        given = submitted - set(self._session_runs.living())
        return most - sum((run.id, run.attempt) in given for run in active)

    def _free_in_pools(self, session: Session, waiting: Iterable[Job], at_work: Sequence[int]) -> dict[str, int]:
        """Free places of the pools that a waiting job belongs to."""
        named = {job.pool for job in waiting if job.pool is not None}
        if not named:
            return {}
        sizes = self._surroundings.pools()
        pool_of = dict(session.execute(select(Job.id, Job.pool).where(Job.pool.in_(named))).all())
        taken = Counter(pool_of.get(job_id) for job_id in at_work)
        return {name: sizes.get(name, 1) - taken[name] for name in named}

    def _start(self, ready: _Ready) -> Start | None:
        """None when there is no place for its log: the run waits for one."""
        job, run = ready.job, ready.run
        try:
            logs = self._logs.make(job.id, run.id)
        except OSError as error:
            self._put_off(
                (run.id, run.attempt), f"the log folder cannot be written: {error.filename} ({error.strerror})"
            )
            return None
        argv, direct = argv_of(job.command or "")
        return Start(
            run=run.id,
            attempt=run.attempt,
            argv=argv,
            direct=direct,
            cwd=self._surroundings.folder(job, ready.project_folder),
            env=self._surroundings.environment(job, run),
            stdout=str(logs.out),
            stderr=str(logs.err),
            timeout_secs=float(ready.timeout_secs),
            grace_secs=GRACE_SECS,
            cleanup=Cleanup(*argv_of(job.cleanup_command), CLEANUP_SECS) if job.cleanup_command else None,
        )


def _earliest_jitter(session: Session) -> datetime | None:
    return session.scalar(
        select(func.min(Run.not_before)).where(text(IS_ACTIVE_SQL), text("+status = 'pending'"), Run.not_before > now())
    )


def _jobs_of(session: Session, job_ids: set[int]) -> dict[int, Job]:
    if len(job_ids) > 500:
        return {job.id: job for job in session.scalars(select(Job))}
    return {job.id: job for job in session.scalars(select(Job).where(Job.id.in_(job_ids)))}
