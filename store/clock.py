"""The one place that reads the wall clock."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.fromtimestamp(time.time(), tz=UTC)


def iso(at: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and Z, the form of the database and of every JSON answer."""
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def parse_iso(text: str) -> datetime:
    """The aware instant that `iso` wrote."""
    return datetime.fromisoformat(text)
