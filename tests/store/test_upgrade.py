"""Migrations: the steps and the models say the same, and a newer file is left alone."""

import contextlib
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from store.errors import Refusal
from store.models import Base
from store.upgrade import upgrade


def test_the_steps_make_exactly_the_tables_of_the_models(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    upgrade(path, tmp_path / "backups")
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    assert differences == []


def test_a_file_of_a_newer_version_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    upgrade(path, tmp_path / "backups")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(Refusal, match="newer Cronmend"):
        upgrade(path, tmp_path / "backups")
    assert path.read_bytes() == before
