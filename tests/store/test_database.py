"""The database file: schema, writer, damage, backups."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from store import events
from store.database import Damaged, Database, back_up, backups, check, set_aside
from store.projects import Project
from store.upgrade import HEAD, upgrade, version_of


def test_a_new_database_has_the_newest_schema(tmp_path: Path) -> None:
    upgrade(tmp_path / "new.db", tmp_path / "backups")
    assert version_of(tmp_path / "new.db") == HEAD


def test_a_change_that_raises_is_undone_alone(database: Database) -> None:
    def broken(session: Session) -> None:
        session.add(Project(name="half", folder_path="/half"))
        session.flush()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        database.write(broken)
    database.write(lambda session: session.add(Project(name="whole", folder_path="/whole")))
    with database.read() as session:
        assert session.scalars(select(Project.name)).all() == ["whole"]


def test_a_commit_tells_the_kinds_of_its_events(database: Database) -> None:
    told: list[frozenset[str]] = []
    database.writer.on_commit = told.append
    database.write(lambda session: events.record(session, "job.created", "person"))
    assert told == [frozenset({"job.created"})]


def test_a_reader_cannot_hold_up_the_writer(database: Database) -> None:
    with database.read() as session:
        session.execute(text("SELECT count(*) FROM projects"))
        database.write(lambda writing: writing.add(Project(name="meanwhile", folder_path="/meanwhile")))
    with database.read() as session:
        assert session.scalar(select(Project.name)) == "meanwhile"


def test_a_file_that_is_no_database_is_said_to_be_damaged_and_set_aside_whole(tmp_path: Path) -> None:
    path = tmp_path / "cronmend.db"
    path.write_bytes(b"not a database" * 500)
    with pytest.raises(Damaged, match="not a healthy database"):
        check(path)
    aside = set_aside(path)
    assert not path.exists()
    assert aside.read_bytes().startswith(b"not a database")


def test_a_backup_holds_what_was_committed(database: Database, tmp_path: Path) -> None:
    database.write(lambda session: session.add(Project(name="kept", folder_path="/kept")))
    saved = back_up(database.path, tmp_path / "backups", "test")
    connection = sqlite3.connect(saved)
    assert connection.execute("SELECT name FROM projects").fetchall() == [("kept",)]
    connection.close()
    assert backups(tmp_path / "backups") == [saved]
