"""A run's page: what it waits for, and its output as it was printed."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browsing import Seat

pytestmark = pytest.mark.timeout(180)


@pytest.mark.mission("L3")
def test_jobs_of_a_pool_take_turns_and_say_what_they_wait_for(seat: Seat, tmp_path: Path) -> None:
    served = seat.app
    pooled = ("jobs", "add", "--cwd", str(tmp_path), "--schedule", "0 0 1 1 *", "--pool", "nas", "--name")
    first = served.run(*pooled, "first", "--command", "sleep 3").out.strip()
    second = served.run(*pooled, "second", "--command", "true").out.strip()
    served.run("jobs", "run", first, "--detach")
    served.until(lambda: [run for run in served.json("runs", "list") if run["status"] == "running"])

    waiting = served.json("jobs", "run", second, "--detach")["runId"]

    page = seat.go(f"/runs/{waiting}")
    expect(page.locator("#run-panel .banner")).to_contain_text("It waits for a place in the pool nas: run")
    expect(page.locator("#run-panel h1 + *")).to_contain_text("Succeeded", timeout=20_000)
    before, after = (
        next(run for run in served.json("runs", "list") if str(run["jobId"]) == job) for job in (first, second)
    )
    assert after["startedAt"] >= before["completedAt"]
