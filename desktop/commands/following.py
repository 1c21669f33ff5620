"""Following a run to its end on the terminal."""

import time
from collections.abc import Mapping
from typing import Any, BinaryIO

from desktop.commands.client import Client

LOOK_SECS = 0.1


def follow(client: Client, run_id: int, targets: Mapping[str, BinaryIO]) -> dict[str, Any]:
    """Copies each stream, `out` and `err`, to its target until the run has ended; the run."""
    offsets = dict.fromkeys(targets, 0)
    while True:
        run: dict[str, Any] = client.call("GET", f"/cron/runs/{run_id}")
        grew = [copy_more(client, run_id, stream, target, offsets) for stream, target in targets.items()]
        if any(grew):
            continue
        if run["status"] not in ("pending", "running", "stuck", "awaitingApproval"):
            return run
        time.sleep(LOOK_SECS)


def copy_more(client: Client, run_id: int, stream: str, target: BinaryIO, offsets: dict[str, int]) -> bool:
    """Copies what a stream has grown by; whether it has."""
    query = {"stream": stream, "offset": offsets[stream]}
    answer = client.raw("GET", f"/cron/runs/{run_id}/log", query=query)
    target.write(answer.body)
    target.flush()
    offsets[stream] = int(answer.headers["X-Next-Offset"])
    return bool(answer.body)


def exit_code_of(run: dict[str, Any]) -> int:
    """What a shell would have said of this run; a failure is never 0, though the command may have ended so."""
    if run["exitCode"]:
        return int(run["exitCode"])
    if run["signal"]:
        return 128 + int(run["signal"])
    return 0 if run["status"] == "completed" else 1
