"""The database file: opening, reading, writing, backing up."""

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.orm import Session

from store.clock import now
from store.errors import Refusal
from store.storage_trouble import Unwritable, is_damage, trouble_of
from store.writer import Writer

T = TypeVar("T")
KEPT_BACKUPS = 10
CACHE_KIB = 512
"""Of each connection: the system keeps the file in memory anyway."""


class Damaged(Refusal):
    """The file is not a healthy SQLite database."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="database_damaged")


# Written like any other change, and leaves everything as it is.
_NO_CHANGE = text("UPDATE boots SET pid = pid WHERE id = (SELECT max(id) FROM boots)")


class Database:
    """Readers from a pool, each in its own short transaction; one writer thread."""

    def __init__(self, path: Path, *, refuse_writes: Callable[[], Refusal] | None = None) -> None:
        self.path = path
        self._refuse_writes = refuse_writes
        self._engine = _engine(path, read_only=refuse_writes is not None)
        self.writer = Writer(self._engine)

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A read-only transaction.  Objects read stay usable after it."""
        with Session(self._engine, expire_on_commit=False, autoflush=False) as session:
            session.connection(execution_options={"read": True})
            yield session
            session.expunge_all()

    def write(self, change: Callable[[Session], T], *, urgent: bool = False) -> T:
        """See Writer.write.  Raises the refusal of a database that was opened to be read only."""
        if self._refuse_writes is not None:
            raise self._refuse_writes()
        return self.writer.write(change, urgent=urgent)

    def find_trouble(self) -> str | None:
        """Why nothing can be written, in words; when that was so, the disk is asked again."""
        if self.writer.trouble is not None:
            with contextlib.suppress(Refusal):
                self.write(lambda session: session.execute(_NO_CHANGE))
        return self.writer.trouble

    @property
    def is_read_only(self) -> bool:
        return self._refuse_writes is not None

    def start(self, spawn_thread: Callable[[str, Callable[[], None]], threading.Thread]) -> None:
        self._thread = spawn_thread("writer", self.writer.run)

    def close(self) -> None:
        self.writer.close()
        if (thread := getattr(self, "_thread", None)) is not None:
            thread.join(timeout=10)
        self._engine.dispose()


def _engine(path: Path, *, read_only: bool) -> Engine:
    address = f"file:{path}?mode=ro&uri=true" if read_only else str(path)
    engine = create_engine(f"sqlite:///{address}", connect_args={"timeout": 30}, pool_size=8, max_overflow=48)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver's own BEGIN would be a deferred one
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", f"cache_size=-{CACHE_KIB}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A read that turns into a write fails at once with "database is locked", so writers lock first.
        reading = read_only or connection.get_execution_options().get("read")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def check(path: Path, *, thorough: bool = False) -> None:
    """Raises Damaged when the file cannot be read as a database; `thorough` reads every page."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if thorough else "ok"
    except sqlite3.DatabaseError as error:
        if not is_damage(error):  # out of reach at present; nothing must be done to the file
            raise Unwritable(trouble_of(error) or f"{path} cannot be read: {error}") from error
        raise Damaged(f"{path} is not a healthy database: {error}") from error
    if verdict != "ok":
        raise Damaged(f"{path} is damaged: {verdict}")


def back_up(path: Path, folder: Path, why: str) -> Path:
    """A consistent copy of the database made with SQLite's own backup; the oldest beyond ten are removed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"cronmend-{now():%Y%m%dT%H%M%S%f}-{why}.db"
    with (
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
    target.chmod(0o600)
    for old in backups(folder)[KEPT_BACKUPS:]:
        old.unlink(missing_ok=True)
    return target


def backups(folder: Path) -> list[Path]:
    """Backups, newest first."""
    return sorted(folder.glob("cronmend-*.db"), reverse=True)


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Moves a database and its companions out of the way; returns the new name."""
    aside = path.with_name(f"{path.name}.{why}-{now():%Y%m%dT%H%M%S}")
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def put_back(backup: Path, path: Path) -> Path | None:
    """Makes a backup the database; the file that was there is moved aside, its new name is returned."""
    aside = set_aside(path, "replaced") if path.exists() else None
    shutil.copy2(backup, path)
    path.chmod(0o600)
    return aside
