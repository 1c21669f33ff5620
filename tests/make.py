"""Builders: a test names only what it is about."""

from datetime import datetime
from typing import Any

from scheduler import jobs
from store.database import Database
from store.jobs import Job


def job(database: Database, *, due: datetime | None = None, columns: dict[str, Any] | None = None, **body: Any) -> Job:
    """A job as a person would make it, then moved to be due and given columns that only the app sets."""

    def change(session: Any) -> Job:
        made = jobs.create(
            session, {"name": "nightly", "command": "true", "schedule": "hourly", "timezone": "UTC", **body}
        )
        for name, value in {**(columns or {}), **({"next_run_at": due} if due else {})}.items():
            setattr(made, name, value)
        return made

    return database.write(change)
