"""Dispatch through a real app: how many run at once, and what waits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.serving import Served


def runs_of(served: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = served.json("runs", "list")
    return found


@pytest.mark.mission("L3")
def test_no_more_run_at_once_than_allowed_and_none_is_lost(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(MAX_PARALLEL_JOBS="2")
    add = ("jobs", "add", "--command", "sleep 0.5", "--at", "in 3s", "--cwd", str(tmp_path), "--name")
    for number in range(5):
        served.run(*add, f"job {number}")
    by_hand = served.run("jobs", "add", "--name", "h", "--command", "true", "--schedule", "0 0 1 1 *").out.strip()
    served.until(lambda: [run for run in runs_of(served) if run["status"] == "running"])

    assert served.run("jobs", "run", by_hand).code == 0, "what a person starts does not wait for a place"

    served.until(lambda: sum(run["status"] == "completed" for run in runs_of(served)) == 6)
    spans = [(run["startedAt"], run["completedAt"]) for run in runs_of(served) if str(run["jobId"]) != by_hand]
    most = max(sum(begun <= at < ended for begun, ended in spans) for at, _ in spans)
    assert most == 2


@pytest.mark.mission("L3")
def test_a_pool_has_as_many_places_as_the_settings_say(serve: Callable[..., Served]) -> None:
    served = serve(CRONMEND_POOLS="nas=2")
    pooled = ("jobs", "add", "--schedule", "0 0 1 1 *", "--pool", "nas", "--command", "sleep 2", "--name")
    jobs = [served.run(*pooled, f"job {number}").out.strip() for number in range(3)]

    for job in jobs:
        served.run("jobs", "run", job, "--detach")

    served.until(lambda: sum(run["status"] == "completed" for run in runs_of(served)) == 3)
    spans = [(run["startedAt"], run["completedAt"]) for run in runs_of(served)]
    assert max(sum(begun <= at < ended for begun, ended in spans) for at, _ in spans) == 2


@pytest.mark.mission("L6")
def test_a_stopped_run_is_cleaned_up_after_and_a_failing_cleanup_is_no_success(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    add = ("jobs", "add", "--schedule", "0 0 1 1 *", "--cwd", str(tmp_path), "--no-healing", "--name")
    slow = served.run(*add, "slow", "--command", "touch lock; sleep 60", "--cleanup", "rm lock; echo $CRONMEND_OUTCOME")
    fine = served.run(*add, "fine", "--command", "true", "--cleanup", "exit 9")
    stopped = served.json("jobs", "run", slow.out.strip(), "--detach")["runId"]
    served.until((tmp_path / "lock").exists)

    served.run("runs", "abort", str(stopped))
    failed = served.run("jobs", "run", fine.out.strip())

    served.until(lambda: served.json("runs", "show", str(stopped))["status"] == "aborted")
    assert not (tmp_path / "lock").exists()
    assert served.run("runs", "log", str(stopped)).out == "aborted\n"
    assert "its cleanup failed: exit code 9" in failed.err
    newest = served.json("runs", "list", "--job", fine.out.strip())[0]
    assert (newest["status"], newest["exitCode"]) == ("failed", 0)
    assert newest["cause"] == "its cleanup failed: exit code 9"
