"""A long life: 10,000 jobs, 1,000,000 runs and a log of 1 GB; how long a start and each page take (P7, P8).

.venv/bin/python bench/history.py [--jobs 10000] [--runs 1000000]
"""

import argparse
import http.client
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.serving import Served  # noqa: E402 - a real serve process, as the tests start it

from store.upgrade import upgrade  # noqa: E402

REPEATS = 7


def plant(home: Path, jobs: int, runs: int) -> None:
    """Hourly jobs, and their runs one a minute: one in ten failed."""
    home.mkdir(mode=0o700)
    upgrade(home / "cronmend.db", home / "backups")
    with closing(sqlite3.connect(home / "cronmend.db")) as database:
        database.execute("PRAGMA synchronous=OFF")
        names = [row[1] for row in database.execute("PRAGMA table_info(cron_jobs)")]
        given = {
            "target_type": "command",
            "command": "true",
            "env": "{}",
            "schedule": "0 * * * *",
            "timezone": "UTC",
            "run_mode": "recurring",
            "overlap": "skip",
            "catch_up": "skip",
            "jitter_secs": 0,
            "retries": 0,
            "retry_backoff_secs": 30,
            "effects": "unknown",
            "success_when": "[]",
            "require_approval": 0,
            "healing_enabled": 1,
            "consecutive_heal_failures": 0,
            "tags": "[]",
            "next_run_at": "2099-01-01T00:00:00.000Z",
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z",
        }
        assert set(given) <= set(names), sorted(set(given) - set(names))
        columns = ", ".join(("id", "name", *given))
        marks = ", ".join("?" * (len(given) + 2))
        rows = ((number, f"job {number}", *given.values()) for number in range(1, jobs + 1))
        database.executemany(f"INSERT INTO cron_jobs ({columns}) VALUES ({marks})", rows)
        database.executemany(
            "INSERT INTO cron_runs (job_id, slots_covered, status, triggered_by, attempt, retry_number, claimed_at,"
            " started_at, completed_at, duration_ms, exit_code, system_marked_failure, suppressed, log_bytes,"
            " heal_decision)"
            " VALUES (?, 1, ?, 'manual', 1, 0, ?, ?, ?, 1000, ?, 0, 0, 0, 'superseded')",
            (_run(number, jobs) for number in range(runs)),
        )
        database.commit()
        database.execute("ANALYZE")
        database.commit()


def _run(number: int, jobs: int) -> tuple[object, ...]:
    at = f"2026-{1 + number // 100_000 % 12:02d}-01T00:00:00.000Z"
    failed = number % 10 == 0
    return number % jobs + 1, "failed" if failed else "completed", at, at, at, int(failed)


def measure(host: str, path: str, headers: dict[str, str]) -> float:
    """The best of some requests, in milliseconds."""
    best = float("inf")
    for _ in range(REPEATS):
        connection = http.client.HTTPConnection(host, timeout=60)
        begun = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        best = min(best, (time.perf_counter() - begun) * 1_000)
        connection.close()
        assert answer.status == 200, (path, answer.status)
    return best


def log_in(served: Served) -> tuple[str, dict[str, str]]:
    """Host and cookie of a person's window."""
    url = served.call("POST", "/app/activate")[1]["url"]
    host = urlsplit(url).netloc
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", url.partition(host)[2])
    answer = connection.getresponse()
    answer.read()
    return host, {"Cookie": (answer.headers["Set-Cookie"] or "").partition(";")[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder), {"CRONMEND_KEEP_RUNS": "1000000"})
        plant(served.home, asked.jobs, asked.runs)
        logs = served.home / "logs" / "1"
        logs.mkdir(mode=0o700, parents=True)
        line = b"a line of a log that is long\\n" * 40_000
        with (logs / "1.out").open("wb") as log:
            while log.tell() < 1_000_000_000:
                log.write(line)
        begun = time.perf_counter()
        served.start()
        print(f"P8  start until it answers             {time.perf_counter() - begun:8.2f} s")
        try:
            report(served, asked.runs)
        finally:
            served.close()


def report(served: Served, runs: int) -> None:
    host, cookie = log_in(served)
    api = urlsplit(served.address["url"]).netloc
    token = {"Authorization": f"Bearer {served.address['controlToken']}"}
    for said, where, path, headers in (
        ("P7  page of all jobs", host, "/jobs", cookie),
        ("P7  jobs that match a word", host, "/jobs/rows?q=job+77", cookie),
        ("P7  newest 100 runs", api, "/cron/runs?limit=100", token),
        ("P7  … of a job", api, "/cron/runs?limit=100&job=5", token),
        ("P7  … that failed", api, "/cron/runs?limit=100&status=failed", token),
        ("P7  … last page", api, f"/cron/runs?limit=100&before={min(runs, 101)}", token),
        ("P7  a job's page", host, "/jobs/5", cookie),
        ("P7  a run's page, log of 1 GB", host, "/runs/1", cookie),
        ("    status", api, "/cron/status", token),
    ):
        print(f"{said:38s} {measure(where, path, headers):8.1f} ms", flush=True)


if __name__ == "__main__":
    main()
