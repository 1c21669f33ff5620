"""kill -9 of the app around every kind of commit: nothing is lost, nothing runs twice, nothing stays paused."""

import collections
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import make
import pytest
from support.serving import Served

from desktop.loops import Threads
from store.clock import now
from store.database import Database
from store.upgrade import upgrade

pytestmark = [pytest.mark.mission("O4", "O9", "B3"), pytest.mark.timeout(300)]

HOOK = Path(__file__).parent / "hook"

POINTS = (
    "run.claimed",
    "run.started",
    "run.failed",
    "run.completed",
    "heal.decided",
    "heal.opened",
    "session.opened",
    "heal.spawned",
    "heal.went",
    "session.message",
    "heal.edit",
    "heal.verified",
    "heal.fixed",
    "heal.closing",
    "heal.undone",
    "heal.abandoned",
    "session.ended",
    "card.opened",
    "toast.unavailable",  # a second later, when all else is done
)
"""Every kind of commit of the scenario; the first test here fails when there is another one."""

CURABLE = b"#!/bin/sh\r\necho fine\r\n"
HOPELESS = b"#!/bin/sh\r\nexit 4\r\n"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Served]:
    """Two jobs that are due: one breaks and can be repaired, the other one not even then."""
    served = Served(tmp_path, {"PYTHONPATH": str(HOOK)})
    served.home.mkdir(mode=0o700)
    upgrade(served.home / "cronmend.db", served.home / "backups")
    database = Database(served.home / "cronmend.db")
    database.start(Threads().spawn)
    for name, script in (("curable", CURABLE), ("hopeless", HOPELESS)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "work.sh").write_bytes(script)
        (folder / "work.sh").chmod(0o755)
        make.job(
            database,
            name=name,
            command="echo $CRONMEND_RUN_ID >> ran.txt; sleep 0.3; ./work.sh",
            schedule="0 0 1 1 *",
            project=str(folder),
            effects="none",
            due=now() - timedelta(seconds=2),
        )
    database.close()
    yield served
    served.close()


UNSETTLED = """
SELECT (SELECT count(*) FROM cron_runs WHERE status IN ('pending', 'running'))
     + (SELECT count(*) FROM cron_runs WHERE status = 'failed' AND heal_decision IS NULL)
     + (SELECT count(*) FROM cron_heal_attempts WHERE status IN ('pending', 'spawned'))
     + (SELECT count(*) < 2 FROM cron_heal_attempts)
"""


def settle(served: Served) -> None:
    """Waits until nothing is left to do, as one look at the database tells."""
    served.until(lambda: served.ask(UNSETTLED) == [(0,)])


def check(served: Served, folder: Path) -> None:
    """What must hold whatever happened."""
    slots = served.ask("SELECT job_id, count(*) FROM cron_runs WHERE slot_at IS NOT NULL GROUP BY job_id")
    assert slots == [(1, 1), (2, 1)], "each due slot has one row"
    for name in ("curable", "hopeless"):
        ran = (folder / name / "ran.txt").read_text().split()
        assert len(ran) == len(set(ran)), "no run was started twice"
    assert served.ask("SELECT id FROM cron_runs WHERE system_marked_failure") == [], "the keeper knew every end"
    ended = collections.Counter(
        run
        for (run,) in served.ask(
            "SELECT run_id FROM events WHERE kind IN ('run.completed', 'run.failed', 'run.timeout', 'run.aborted')",
        )
    )
    assert set(ended.values()) == {1}, "each run ended once"
    assert served.ask("SELECT id FROM cron_jobs WHERE paused_heal_id IS NOT NULL") == []
    heals = dict(served.ask("SELECT job_id, status FROM cron_heal_attempts"))
    assert set(heals.values()) <= {"fixed", "abandoned"}
    repaired = CURABLE.replace(b"\r\n", b"\n")
    assert (folder / "curable" / "work.sh").read_bytes() == (repaired if heals[1] == "fixed" else CURABLE)
    assert heals[2] == "abandoned"
    assert (folder / "hopeless" / "work.sh").read_bytes() == HOPELESS


def test_the_list_of_points_is_complete(scene: Served, tmp_path: Path) -> None:
    scene.environment["COMMITS_TO"] = str(tmp_path / "commits")

    scene.start()
    settle(scene)
    scene.until(lambda: scene.ask("SELECT id FROM events WHERE kind = 'toast.unavailable'"))

    check(scene, tmp_path)
    assert scene.ask("SELECT status FROM cron_heal_attempts WHERE job_id = 1") == [("fixed",)]
    seen = set((tmp_path / "commits").read_text().split())
    assert seen == set(POINTS)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", POINTS)
def test_a_kill_there_loses_nothing(scene: Served, tmp_path: Path, kind: str, when: str) -> None:
    scene.environment["KILL_POINT"] = f"{when}:{kind}"
    scene.start_and_expect_kill()
    del scene.environment["KILL_POINT"]

    scene.start()
    settle(scene)

    check(scene, tmp_path)
