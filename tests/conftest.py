"""A real database file, or a whole running app, for each test that wants one."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.serving import Served

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


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Makes apps that are ended with the test: `serve()` starts one, `serve(ANTHROPIC_API_KEY="…")` with a key."""
    made: list[Served] = []

    def start(**environment: str) -> Served:
        served = Served(tmp_path, environment)
        made.append(served)
        served.start()
        return served

    yield start
    for served in made:
        served.close()
