"""A rate tells of the slots that were due, not of the runs that there were."""

from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest

from store.database import Database
from store.runs import Run
from store.slot_rates import SlotRate, slot_rate

BEGIN = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.mission("B1", "L7")
def test_what_was_missed_counts_and_what_nobody_waited_for_does_not(database: Database) -> None:
    job = make.job(database)
    rows: list[dict[str, Any]] = [
        {"status": "completed"},
        {"status": "failed"},  # a retry of it is green
        {"status": "failed"},
        {"status": "skipped", "skip_reason": "merged", "slots_covered": 9},
        {"status": "completed", "triggered_by": "catch_up"},
        {"status": "skipped", "skip_reason": "appClosed"},
        {"status": "skipped", "skip_reason": "paused", "slots_covered": 500},
        {"status": "running"},
    ]

    def plant(session: Any) -> None:
        for number, row in enumerate(rows, 1):
            run = Run(
                **{"job_id": job.id, "slot_at": BEGIN + timedelta(hours=number), "triggered_by": "schedule", **row}
            )
            session.add(run)
            session.flush()
        session.add(Run(job_id=job.id, status="completed", triggered_by="retry", retry_of=2, root_run_id=2, attempt=2))
        session.add(Run(job_id=job.id, status="completed", triggered_by="manual"))

    database.write(plant)

    with database.read() as session:
        found = slot_rate(session, job.id)

    assert found == SlotRate(due=14, green=3, since=BEGIN + timedelta(hours=1))
