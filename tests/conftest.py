"""A real database file for each test that wants one."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.database import Database
from store.upgrade import upgrade


def spawn_thread(name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    return thread


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "cronmend.db"
    upgrade(path, tmp_path / "backups")
    opened = Database(path)
    opened.start(spawn_thread)
    yield opened
    opened.close()
