"""Toasts: the system's notifications of failed jobs.  Best effort: a machine without them only misses them."""

import asyncio
import logging
import queue
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from store import events
from store.clock import now
from store.database import Database

log = logging.getLogger("cron-heal")

MERGE_SECS = 1.0
"""Failures so close together make one toast."""

ASK_SECS = 2.0
MOST_NAMED = 4
SERVICE = "org.freedesktop.Notifications"


@dataclass(frozen=True)
class Failure:
    """What is told: the job's name and why its run failed."""

    job_id: int
    run_id: int
    name: str
    cause: str


class Toaster:
    """A worker of desktop.loops.  `tell` is called once for each final failure, by whoever decides on it.

    `quiet_hours`: the setting, as in `22:00-07:00`; empty when off.  Each toast that is shown, muted or cannot be
    shown is an event.
    """

    def __init__(self, database: Database, quiet_hours: Callable[[], str]) -> None:
        self._database = database
        self._quiet_hours = quiet_hours
        self._waiting: queue.SimpleQueue[Failure] = queue.SimpleQueue()
        self._told_at: datetime | None = None
        self.nudge: Callable[[], None] = lambda: None
        self.state = "not tried yet"

    def tell(self, failure: Failure) -> None:
        self._waiting.put(failure)
        self._told_at = self._told_at or now()
        self.nudge()

    def next_at(self) -> datetime | None:
        return self._told_at + timedelta(seconds=MERGE_SECS) if self._told_at else None

    def step(self) -> bool:
        due = self.next_at()
        if due is None or due > now():
            return False
        self._told_at = None
        failures = []
        while not self._waiting.empty():
            failures.append(self._waiting.get())
        if not failures:
            return False
        kind, self.state = self._show(failures)
        self._database.write(lambda session: _record(session, kind, self.state, failures))
        return True

    def _show(self, failures: Sequence[Failure]) -> tuple[str, str]:
        """The event's kind, and the state in words."""
        if is_quiet(self._quiet_hours(), now().astimezone()):
            return "toast.muted", "quiet hours"
        if not show(*words_for(failures)):
            return "toast.unavailable", "no notification service on this machine"
        return "toast.shown", "work"


def show(title: str, message: str) -> bool:
    """Shows one now; False where the machine shows none."""
    try:
        asyncio.run(_send(title, message))
    except Exception as error:  # noqa: BLE001 - whatever a desktop's bus comes up with
        log.info("[cron-heal] no toast: %s", type(error).__name__)
        return False
    return True


def words_for(failures: Sequence[Failure]) -> tuple[str, str]:
    """Title and message of one toast for one failure, or for a burst."""
    if len(failures) == 1:
        return f"{failures[0].name} failed", failures[0].cause
    names = list(dict.fromkeys(failure.name for failure in failures))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{len(failures)} runs failed", ", ".join(names[:MOST_NAMED]) + more


def is_quiet(hours: str, local: datetime) -> bool:
    """Whether `local` lies in hours such as `22:00-07:00`, which may span midnight."""
    begin, _, end = hours.partition("-")
    if not end:
        return False
    at = f"{local:%H:%M}"
    return begin <= at < end if begin <= end else (at >= begin or at < end)


async def _send(title: str, message: str) -> None:
    # Imported when the first toast is due: 0.1 s that no start has to pay.
    from desktop_notifier import DesktopNotifier  # noqa: PLC0415

    if sys.platform == "linux":
        await asyncio.wait_for(_find_service(), ASK_SECS)  # the notifier itself never says that nobody listens
    await asyncio.wait_for(DesktopNotifier("Cronmend").send(title, message), ASK_SECS)


async def _find_service() -> None:
    from dbus_fast.aio import MessageBus  # noqa: PLC0415 - there on Linux only

    bus = await MessageBus().connect()
    try:
        path = "/org/freedesktop/DBus"
        described = await bus.introspect("org.freedesktop.DBus", path)
        daemon = bus.get_proxy_object("org.freedesktop.DBus", path, described).get_interface("org.freedesktop.DBus")
        is_there = await daemon.call_name_has_owner(SERVICE)  # type: ignore[attr-defined]
        if not is_there and SERVICE not in await daemon.call_list_activatable_names():  # type: ignore[attr-defined]
            raise LookupError(SERVICE)
    finally:
        bus.disconnect()


def _record(session: Session, kind: str, reason: str, failures: Sequence[Failure]) -> None:
    told = [{"job_id": one.job_id, "run_id": one.run_id, "reason": reason} for one in failures]
    events.record_all(session, kind, "app", told)
