"""How much history is kept: the newest runs of each job with their logs, and events for a season."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, delete, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from scheduler.logs import LogFolder
from store.clock import now
from store.database import Database
from store.events import Event
from store.heals import Heal, Verification
from store.jobs import Job
from store.runs import ACTIVE, FAILED, Run

EVERY = timedelta(hours=1)
AFTER_START = timedelta(minutes=2)
CHUNK = 500
EVENT_DAYS = 90


@dataclass(frozen=True)
class Excess:
    """What is beyond what is kept."""

    runs: int
    log_bytes: int


class Retention:
    """A worker of desktop.loops: removes what is beyond, a little at a time.

    `keep` says how many runs of a job stay; nothing is removed in the first moments (`quiet`) after a start.
    """

    def __init__(
        self, database: Database, logs: LogFolder, keep: Callable[[], int], quiet: timedelta = AFTER_START
    ) -> None:
        self._database = database
        self._logs = logs
        self._keep = keep
        self._next = now() + quiet

    def next_at(self) -> datetime | None:
        return self._next

    def step(self) -> bool:
        if now() < self._next:
            return False
        if self._remove_runs() or self._remove_events():
            return True
        self._remove_strays()
        self._next = now() + EVERY
        return False

    def _remove_runs(self) -> bool:
        with self._database.read() as session:
            found = session.execute(_beyond(self._keep(), Run.id, Run.job_id).limit(CHUNK)).all()
        for run_id, job_id in found:
            # The files first: a row without its log is told as such, a file without its row would stay for ever.
            self._logs.of(job_id, run_id).remove()
        if found:
            ids = [run_id for run_id, _ in found]
            self._database.write(lambda session: session.execute(delete(Run).where(Run.id.in_(ids))))
        return bool(found)

    def _remove_events(self) -> bool:
        old = now() - timedelta(days=EVENT_DAYS)
        with self._database.read() as session:
            oldest = session.scalars(select(Event).order_by(Event.id).limit(CHUNK)).all()
        ids = [event.id for event in oldest if event.at < old]
        if ids:
            self._database.write(lambda session: session.execute(delete(Event).where(Event.id.in_(ids))))
        return bool(ids)

    def _remove_strays(self) -> None:
        """Logs of jobs that have been deleted."""
        with self._database.read() as session:
            known = set(session.scalars(select(Job.id)))
        for job_id in self._logs.jobs() - known:
            self._logs.remove_job(job_id)


def find_excess(session: Session, keep: int) -> Excess:
    """What would be removed with `keep` runs of each job."""
    query = _beyond(keep, func.count(), func.coalesce(func.sum(Run.log_bytes), 0))
    count, size = session.execute(query).one()
    return Excess(count, size)


def _beyond(keep: int, *columns: Any) -> Select[Any]:
    """Runs older than the newest `keep` of their job, but none that is alive, undecided, or cited by a heal."""
    newer = aliased(Run)
    newest = select(newer.id).where(newer.job_id == Job.id).order_by(newer.id.desc())
    cutoff = newest.offset(keep).limit(1).correlate(Job).scalar_subquery()
    return (
        select(*columns)
        .select_from(Job)
        .join(Run, and_(Run.job_id == Job.id, Run.id <= cutoff))
        .where(
            Run.status.not_in(ACTIVE),
            or_(Run.heal_decision.is_not(None), Run.status.not_in(FAILED), Run.retry_run_id.is_not(None)),
            or_(Run.retry_due_at.is_(None), Run.retry_run_id.is_not(None)),
            Run.heal_id.is_(None),
            ~exists().where(Heal.run_id == Run.id),
            ~exists().where(Verification.run_id == Run.id),
        )
    )
