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
