"""The one place that reads the wall clock."""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

_seconds: Callable[[], float] = time.time


def now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.fromtimestamp(_seconds(), tz=UTC)


@contextlib.contextmanager
def simulated(seconds: Callable[[], float]) -> Iterator[None]:
    """Another wall clock, in seconds since the epoch, for the whole process: years pass in a test's minute."""
    global _seconds  # noqa: PLW0603 - there is one wall clock
    before, _seconds = _seconds, seconds
    try:
        yield
    finally:
        _seconds = before


def iso(at: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and Z, the form of the database and of every JSON answer."""
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def parse_iso(text: str) -> datetime:
    """The aware instant that `iso` wrote."""
    return datetime.fromisoformat(text)
