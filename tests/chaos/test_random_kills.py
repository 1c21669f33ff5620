"""kill -9 of a real app at random moments while jobs are due all the time: no run is lost, doubled or told wrongly.

CHAOS_KILLS=1000 is the whole measure; the usual run takes a sample.
"""

import os
import random
import time
from datetime import timedelta
from pathlib import Path

import make
import pytest
from support.serving import Served

from desktop.loops import Threads
from store.clock import iso, now
from store.database import Database, check
from store.upgrade import upgrade

pytestmark = [pytest.mark.mission("B3", "L3", "L6"), pytest.mark.timeout(7_200)]

KILLS = int(os.environ.get("CHAOS_KILLS", "30"))
EVERY_SECS = 0.4
LONGEST_LIFE_SECS = 1.5


def code_of(number: int) -> int:
    return 3 if number % 4 == 0 else 0


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """An app with a job due every moment: each writes down that it ran, takes a while, and ends with its own code."""
    made = Served(tmp_path, {"CRONMEND_HEALER": "off", "CRONMEND_KEEP_RUNS": "1000000"})
    made.home.mkdir(mode=0o700)
    upgrade(made.home / "cronmend.db", made.home / "backups")
    database = Database(made.home / "cronmend.db")
    database.start(Threads().spawn)
    begin = now() + timedelta(seconds=5)
    for number in range(1, round(KILLS * LONGEST_LIFE_SECS / EVERY_SECS) + 1):
        at = begin + timedelta(seconds=number * EVERY_SECS)
        command = f"echo {number} >> {tmp_path}/ran; sleep 0.{number % 10}; exit {code_of(number)}"
        make.job(database, name=f"job {number}", command=command, schedule=None, runAt=iso(at))
    database.close()
    return made


def test_random_kills_lose_and_double_nothing(served: Served, tmp_path: Path) -> None:
    chance = random.Random(1)
    kills = 0
    while has_more(served) and kills < KILLS:
        served.start()
        time.sleep(chance.uniform(0.0, LONGEST_LIFE_SECS))
        served.kill()
        kills += 1

    served.start()

    served.until(lambda: not has_more(served), secs=KILLS * LONGEST_LIFE_SECS + 120)
    rows = served.ask(
        "SELECT job_id, count(*), min(status), min(exit_code), max(system_marked_failure)"
        " FROM cron_runs GROUP BY job_id"
    )
    count = served.ask("SELECT count(*) FROM cron_jobs")[0][0]
    assert len(rows) == count, "no due slot is lost"
    for job_id, runs, status, code, marked in rows:
        expected = "failed" if code_of(job_id) else "completed"
        assert (runs, status, code, marked) == (1, expected, code_of(job_id), 0), job_id
    ran = [int(line) for line in (tmp_path / "ran").read_text().split()]
    assert sorted(ran) == list(range(1, count + 1)), "each ran once"
    assert (
        served.ask("SELECT id FROM cron_jobs WHERE paused_heal_id IS NOT NULL OR breaker_paused_at IS NOT NULL") == []
    )
    served.stop()
    check(served.home / "cronmend.db", thorough=True)
    served.close()


def has_more(served: Served) -> bool:
    waiting = served.ask("SELECT count(*) FROM cron_jobs WHERE next_run_at IS NOT NULL")[0][0]
    alive = served.ask("SELECT count(*) FROM cron_runs WHERE status IN ('pending', 'running')")[0][0]
    return bool(waiting or alive)
