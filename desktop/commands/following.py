"""Following a run to its end on the terminal."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from desktop.commands.client import Client

LOOK_SECS = 0.1


def follow(client: Client, run_id: int, streams: Sequence[str]) -> dict[str, Any]:
    """Copies the streams to the same ones of this process until the run has ended; the run."""
    offsets = dict.fromkeys(streams, 0)
    while True:
        run: dict[str, Any] = client.call("GET", f"/cron/runs/{run_id}")
        grew = [copy_more(client, run_id, stream, offsets) for stream in streams]
        if any(grew):
            continue
        if run["status"] not in ("pending", "running", "stuck", "awaitingApproval"):
            return run
        time.sleep(LOOK_SECS)


def copy_more(client: Client, run_id: int, stream: str, offsets: dict[str, int]) -> bool:
    """Copies what a stream has grown by; whether it has."""
    query = {"stream": stream, "offset": offsets[stream]}
    data = client.raw("GET", f"/cron/runs/{run_id}/log", query=query).body
    target = sys.stdout if stream == "out" else sys.stderr
    target.buffer.write(data)
    target.buffer.flush()
    offsets[stream] += len(data)
    return bool(data)


def exit_code_of(run: dict[str, Any]) -> int:
    """What a shell would have said of this run."""
    if run["exitCode"] is not None:
        return int(run["exitCode"])
    if run["signal"]:
        return 128 + int(run["signal"])
    return 0 if run["status"] == "completed" else 1
