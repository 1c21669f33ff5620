"""The one writer: every change to the database goes through this thread, in groups."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from store.storage_trouble import Unwritable, trouble_of

log = logging.getLogger("engine")

T = TypeVar("T")

CACHE_KIB = 4_096
GROUP_SECS = 0.020
"""How long a group may take in further writes while the queue is not empty."""


def _changes(connection: Connection) -> int:
    """Rows that this connection has changed so far."""
    count: int = connection.connection.driver_connection.total_changes  # type: ignore[union-attr]
    return count


@dataclass
class _Write:
    change: Callable[[Session], Any]
    answer: "Future[Any]" = field(default_factory=Future)


class Writer:
    """Runs changes one after another, each in its own savepoint, and commits them in groups.

    A change that raises is undone alone; the others of its group stay.  `write` answers after the commit.
    After a commit that recorded events, `on_commit` is told their kinds.
    """

    def __init__(self, engine: Engine, on_commit: Callable[[frozenset[str]], None] = lambda _kinds: None) -> None:
        self._engine = engine
        self.on_commit = on_commit
        self.trouble: str | None = None
        """Why nothing can be written at present, for the page; None when all is well."""

        self._urgent: deque[_Write] = deque()
        self._usual: deque[_Write] = deque()
        self._waiting = threading.Condition()
        self._closed = False

    def write(self, change: Callable[[Session], T], *, urgent: bool = False) -> T:
        """The result of `change` once it is durable; the engine's own writes are urgent.

        Raises what it raised, and Unwritable when the disk did not take it.
        """
        item = _Write(change)
        with self._waiting:
            if self._closed:
                raise RuntimeError("the database is closed")
            (self._urgent if urgent else self._usual).append(item)
            self._waiting.notify()
        result: T = item.answer.result()
        return result

    def run(self) -> None:
        """The writer thread: until `close`."""
        with self._engine.connect() as connection:
            # A group of a thousand rows must fit, or it is written twice.
            connection.exec_driver_sql(f"PRAGMA cache_size=-{CACHE_KIB}")
            connection.commit()
            while (first := self._take(wait=True)) is not None:
                self._commit_group(connection, first)

    def close(self) -> None:
        """Lets the writes already asked for finish, then ends the thread."""
        with self._waiting:
            self._closed = True
            self._waiting.notify()

    def _take(self, *, wait: bool) -> _Write | None:
        with self._waiting:
            while True:
                queue = self._urgent or self._usual
                if queue:
                    return queue.popleft()
                if not wait or self._closed:
                    return None
                self._waiting.wait()

    def _commit_group(self, connection: Connection, first: _Write) -> None:
        kinds: set[str] = set()
        done: list[tuple[_Write, Any]] = []
        deadline = time.monotonic() + GROUP_SECS
        before = _changes(connection)
        try:
            with connection.begin():
                item: _Write | None = first
                while item is not None:
                    self._apply(connection, item, kinds, done)
                    item = self._take(wait=False) if time.monotonic() < deadline else None
        except Exception as error:  # noqa: BLE001 - the commit failed (disk full, say): each asker is told
            for write, _ in done:
                self._fail(write, error)
            return
        if self.trouble is not None and _changes(connection) > before:
            log.info("[engine] the database takes changes again")
            self.trouble = None
        for write, result in done:
            write.answer.set_result(result)
        if kinds:
            self.on_commit(frozenset(kinds))

    def _fail(self, item: _Write, error: Exception) -> None:
        trouble = trouble_of(error)
        if trouble is None:
            item.answer.set_exception(error)
            return
        if trouble != self.trouble:
            log.error("[engine] %s (%s)", trouble, error)
            self.trouble = trouble
        refusal = Unwritable(trouble)
        refusal.__cause__ = error
        item.answer.set_exception(refusal)

    def _apply(self, connection: Connection, item: _Write, kinds: set[str], done: list[tuple[_Write, Any]]) -> None:
        told: set[str] = set()
        try:
            # The session only joins our savepoint: its own close must neither commit nor roll anything back.
            joined = {"join_transaction_mode": "rollback_only", "expire_on_commit": False, "info": {"kinds": told}}
            with connection.begin_nested():
                session = Session(connection, **joined)  # type: ignore[arg-type]
                result = item.change(session)
                session.flush()
                session.expunge_all()
        except Exception as error:  # noqa: BLE001 - one failure must not undo the group
            self._fail(item, error)
        else:
            kinds |= told
            done.append((item, result))
