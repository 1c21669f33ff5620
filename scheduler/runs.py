"""What a person or a heal does with runs: start one now, wait for it, abort it."""

import threading
import time

from sqlalchemy.orm import Session

from scheduler import claims, ends
from scheduler.dispatcher import Dispatcher
from scheduler.ends import End
from store import events, jobs, runs
from store.clock import now
from store.database import Database
from store.errors import Conflict
from store.runs import ACTIVE, Run


class Runs:
    """The use cases of single runs.  `ended` is told by wiring after each commit that ended a run."""

    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._changed = threading.Condition()

    def start(self, job_id: int, triggered_by: str, *, heal_id: int | None = None, context: str | None = None) -> int:
        """A run of the job that uses no slot; its id.  Raises NotFound, Conflict."""
        return self._database.write(
            lambda session: claims.claim_by_hand(session, job_id, triggered_by, heal_id=heal_id, context=context)
        )

    def wake(self, job_id: int, context: str | None, *, skip_if_running: bool) -> int:
        """A run that carries a reason; its id.  Raises NotFound, Conflict `job_disabled`, `already_running`."""

        def change(session: Session) -> int:
            job = jobs.get(session, job_id)
            if not job.is_active:
                raise Conflict(f"Job {job_id} is paused; resume it first.", code="job_disabled")
            if skip_if_running and runs.active_of(session, job_id):
                raise Conflict(f"Job {job_id} is running already.", code="already_running")
            return claims.claim_by_hand(session, job_id, "wake", context=context)

        return self._database.write(change)

    def wait(self, run_id: int, most_secs: float) -> Run:
        """The run once it has ended, or as it is after `most_secs`.  Holds no database connection meanwhile."""
        deadline = time.monotonic() + most_secs
        while True:
            with self._changed:
                with self._database.read() as session:
                    run = runs.get(session, run_id)
                left = deadline - time.monotonic()
                if run.status not in ACTIVE or left <= 0:
                    return run
                self._changed.wait(min(left, 30.0))

    def ended(self) -> None:
        """Wakes whoever waits for a run."""
        with self._changed:
            self._changed.notify_all()

    def abort(self, run_id: int, reason: str, actor: str = "person") -> Run:
        """Stores the intent, then ends the process tree; one that never started ends at once.

        Raises NotFound, Conflict `not_active` when the run has ended.
        """
        run = self._database.write(lambda session: _intend(session, run_id, reason, actor))
        if run.status == "pending" and not self._dispatcher.has(run.id, run.attempt):
            end = End(run.id, run.attempt, "aborted", now(), error=reason)
            self._database.write(lambda session: ends.end_runs(session, [end]))
        else:
            self._dispatcher.stop(run, "abort")
        with self._database.read() as session:
            return runs.get(session, run_id)


def _intend(session: Session, run_id: int, reason: str, actor: str) -> Run:
    run = runs.get(session, run_id)
    if run.status not in ACTIVE:
        raise Conflict(f"Run {run_id} has ended already ({run.status}); there is nothing to abort.", code="not_active")
    run.abort_reason = reason
    events.record(session, "run.abort_requested", actor, job_id=run.job_id, run_id=run_id, reason=reason)
    return run
