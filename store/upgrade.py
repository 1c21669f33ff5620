"""Brings a database to the newest schema, with a copy of the file first."""

import contextlib
import sqlite3
from pathlib import Path

from sqlalchemy import create_engine

from store.database import back_up
from store.errors import Refusal

HEAD = "0005"
"""The newest step under store/migrations/versions."""


def version_of(path: Path) -> str | None:
    """The schema version of the file, None for a new or empty one."""
    if not path.exists():
        return None
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:
            return None
    return row[0] if row else None


def upgrade(path: Path, backup_folder: Path) -> Path | None:
    """Runs the missing steps; returns the backup that was made first, None when there was nothing to do or to save.

    Raises Refusal when a newer Cronmend wrote the file.
    """
    version = version_of(path)
    if version == HEAD:
        return None
    if version is not None and version > HEAD:
        raise Refusal(
            f"{path} was written by a newer Cronmend (schema {version}, this one knows {HEAD}). Install the newer one.",
            code="database_newer",
        )
    saved = back_up(path, backup_folder, f"before-{HEAD}") if version else None
    _run_steps(path)
    path.chmod(0o600)
    return saved


def _run_steps(path: Path) -> None:
    # Alembic costs 0.3 s and 12 MiB and is needed once per upgrade, not at each start.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()
