"""History: the newest runs of each job stay, with all that is alive or cited; the rest goes with its logs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import make
import pytest
from sqlalchemy.orm import Session

from scheduler.logs import LogFolder
from scheduler.retention import Excess, Retention, find_excess
from store import events, runs
from store.clock import now
from store.database import Database
from store.events import Event
from store.heals import Heal
from store.jobs import Job
from store.runs import Run

pytestmark = pytest.mark.mission("L7")

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def logs(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "logs")


def plant(database: Database, logs: LogFolder, job: Job, **columns: Any) -> int:
    """An ended run with a log of ten bytes; its id."""

    def change(session: Session) -> int:
        run = Run(**{"job_id": job.id, "status": "completed", "triggered_by": "manual", "log_bytes": 10, **columns})
        session.add(run)
        session.flush()
        return run.id

    number = database.write(change)
    logs.make(job.id, number).out.write_bytes(b"0123456789")
    return number


def sweep(database: Database, logs: LogFolder, keep: int) -> None:
    worker = Retention(database, logs, lambda: keep, quiet=timedelta())
    while worker.step():
        pass
    assert worker.next_at() is not None


def left(database: Database, job: Job) -> list[int]:
    with database.read() as session:
        return sorted(run.id for run in runs.listing(session, job_id=job.id))


def test_the_newest_runs_of_each_job_stay_and_logs_go_along(database: Database, logs: LogFolder) -> None:
    busy, quiet = make.job(database), make.job(database)
    old = [plant(database, logs, busy) for _ in range(3)]
    few = [plant(database, logs, quiet) for _ in range(2)]
    new = [plant(database, logs, busy) for _ in range(5)]
    with database.read() as session:
        assert find_excess(session, 5) == Excess(3, 30)

    sweep(database, logs, 5)

    assert (left(database, busy), left(database, quiet)) == (new, few)
    assert [logs.of(busy.id, number).out.exists() for number in (*old, *new)] == [False] * 3 + [True] * 5
    with database.read() as session:
        assert find_excess(session, 5) == Excess(0, 0)


def test_what_is_alive_undecided_or_cited_stays(database: Database, logs: LogFolder) -> None:
    job = make.job(database)
    alive = plant(database, logs, job, status="running")
    undecided = plant(database, logs, job, status="failed")
    waiting = plant(database, logs, job, status="failed", heal_decision="healed", retry_due_at=AT)
    healed = plant(database, logs, job, status="failed", heal_decision="healed")
    proof = plant(database, logs, job, heal_id=1)
    over = plant(database, logs, job, status="failed", heal_decision="guard:cap")
    newest = plant(database, logs, job)
    database.write(lambda session: session.add(Heal(job_id=job.id, run_id=healed)))

    sweep(database, logs, 1)

    assert left(database, job) == [alive, undecided, waiting, healed, proof, newest]
    assert not logs.of(job.id, over).out.exists()


def test_old_events_go_and_logs_of_deleted_jobs(database: Database, logs: LogFolder) -> None:
    job = make.job(database)
    logs.make(77, 1).out.write_bytes(b"of a job that was deleted")
    database.write(lambda session: session.add(Event(at=now() - timedelta(days=91), kind="run.late", actor="engine")))
    plant(database, logs, job)

    sweep(database, logs, 100)

    with database.read() as session:
        assert [event.kind for event in events.listing(session)] == ["job.created"]
    assert logs.jobs() == {job.id}
