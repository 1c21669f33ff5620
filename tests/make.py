"""Builders: a test names only what it is about."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from agent.credentials import Access
from agent.sessions import Office
from agent.tokens import SessionTokens
from scheduler import jobs
from store.database import Database
from store.jobs import Job
from store.settings import Value


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


def office(environment: Mapping[str, str] | None = None, settings: Callable[[], Mapping[str, Value]] = dict) -> Office:
    """What the app would give sessions; its address answers nobody."""
    return Office(
        api_url=lambda: "http://127.0.0.1:9",
        access=Access(environment or {}),
        tokens=SessionTokens(),
        secrets=tuple,
        private=(),
        settings=settings,
        path=lambda: os.environ["PATH"],
    )
