"""The feed: tells open pages which things changed, from the events table, so that they fetch their own fragments."""

import itertools
import threading
import time
from collections.abc import Iterable, Iterator

from store import events
from store.database import Database
from store.errors import Refusal
from store.events import Event

MOST_STREAMS = 12
COALESCE_SECS = 0.25
HEARTBEAT_SECS = 10.0
LOOK_SECS = 0.5
MOST_EVENTS = 500
MOST_SAID = 20


class Feed:
    """Wakes streams after commits.  `woken` is called by wiring; `stop` lets every stream end."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._version = 0
        self._stopped = False
        self._said: tuple[str, ...] = ()
        self._said_count = 0
        self._streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.open_streams = 0

    def woken(self) -> None:
        """Something was committed."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def say(self, name: str) -> bool:
        """Tells every open page something that is no event of the database; False when no page listens."""
        with self._changed:
            self._said = (*self._said[-MOST_SAID:], name)
            self._said_count += 1
            self._version += 1
            self._changed.notify_all()
        return self.open_streams > 0

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def wait(self, secs: float) -> None:
        """Until something was committed, at most so long."""
        with self._changed:
            seen = self._version
            self._changed.wait_for(lambda: self._version != seen or self._stopped, secs)

    def enter(self) -> None:
        """A stream begins.  Raises Refusal when there are too many; `leave` must follow otherwise."""
        if not self._streams.acquire(blocking=False):
            raise Refusal("Too many pages are open; close one, or reload later.", code="too_many_streams")
        with self._changed:
            self.open_streams += 1

    def leave(self) -> None:
        """A stream has ended, whether or not its page ever read from it."""
        with self._changed:
            self.open_streams -= 1
        self._streams.release()

    def follow(self, last_id: int | None) -> Iterator[str]:
        """Messages of a page's stream, from the event after `last_id` on; `reset` when that is not known here."""
        newest = self.newest()
        if last_id is not None and last_id > newest:
            yield _message("reset", newest)
        at = newest if last_id is None or last_id > newest else last_id
        yield f"retry: 1000\nid: {at}\nevent: hello\ndata:\n\n"
        heard = time.monotonic()
        said = self._said_count
        while not self._stopped:
            if self._said_count != said:
                yield "".join(_message(name, at) for name in self._said[said - self._said_count :])
                said = self._said_count
            found = self._after(at)
            if found:
                at, heard = found[-1].id, time.monotonic()
                yield "".join(_message(name, at) for name in sorted(names_of(found)))
                time.sleep(COALESCE_SECS)
                continue
            if time.monotonic() - heard > HEARTBEAT_SECS:
                heard = time.monotonic()
                yield ": still here\n\n"
            else:
                yield ""  # lets the server see that the page has gone
            self.wait(LOOK_SECS)

    def newest(self) -> int:
        """The id of the newest event."""
        with self._database.read() as session:
            found = events.listing(session, limit=1)
        return found[0].id if found else 0

    def _after(self, last_id: int) -> list[Event]:
        with self._database.read() as session:
            return list(events.after(session, last_id, limit=MOST_EVENTS))


def names_of(found: Iterable[Event]) -> set[str]:
    """What a page may listen to: lists by their noun, single things by noun and id."""
    return set(itertools.chain.from_iterable(_names(event) for event in found))


def _names(event: Event) -> Iterator[str]:
    family = event.kind.partition(".")[0]
    yield {"run": "jobs", "job": "jobs", "heal": "jobs", "session": "sessions", "card": "inbox"}.get(family, family)
    if family == "heal":
        yield "inbox"
    for noun, identity in (("run", event.run_id), ("heal", event.heal_id), ("session", event.session_id)):
        if identity is not None:
            yield f"{noun}-{identity}"


def _message(name: str, at: int) -> str:
    return f"id: {at}\nevent: {name}\ndata:\n\n"
