"""cronmend runs: list, show, log, abort."""

import sys
from collections.abc import Callable
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.following import copy_more, follow
from desktop.commands.printing import json_option, local, print_facts, print_json, print_table


@click.group()
def runs() -> None:
    """Runs: what happened, slot by slot."""


@runs.command("list")
@click.option("--job", type=int, help="Runs of one job.")
@click.option("--status", help="Runs in one state, as 'failed'.")
@click.option("--since", help="Runs since a time, as 'yesterday 09:00' or ISO 8601.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@json_option
def list_runs(*, as_json: bool, **asked: Any) -> None:
    """List runs, newest first."""
    rows = Client().call("GET", "/cron/runs", query=asked)
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda run: run["id"]),
        ("JOB", lambda run: run["jobId"]),
        ("STATUS", lambda run: f"skipped: {run['skipReason']}" if run["skipReason"] else run["status"]),
        ("BY", lambda run: run["triggeredBy"]),
        ("SLOT", lambda run: local(run["slotAt"])),
        ("STARTED", lambda run: local(run["startedAt"])),
        ("MS", lambda run: run["durationMs"]),
        ("EXIT", lambda run: run["exitCode"]),
        ("CAUSE", lambda run: run["cause"] or run["error"]),
    ]
    print_table(rows, columns, "No runs yet. Start one: cronmend jobs run ID")


@runs.command()
@click.argument("run_id", type=int)
@json_option
def show(run_id: int, *, as_json: bool) -> None:
    """Show one run with its evidence."""
    run = Client().call("GET", f"/cron/runs/{run_id}")
    print_json(run) if as_json else print_facts(run)


@runs.command()
@click.argument("run_id", type=int)
@click.option("--stream", type=click.Choice(["out", "err"]), default="out", show_default=True)
@click.option("--follow", "following", is_flag=True, help="Go on until the run has ended.")
def log(run_id: int, stream: str, *, following: bool) -> None:
    """Print the raw bytes of a run's output."""
    client = Client()
    if following:
        follow(client, run_id, {stream: sys.stdout.buffer})
        return
    offsets = {stream: 0}
    while copy_more(client, run_id, stream, sys.stdout.buffer, offsets):
        pass


@runs.command()
@click.argument("run_id", type=int)
@click.option("--reason", help="Why.")
@json_option
def abort(run_id: int, reason: str | None, *, as_json: bool) -> None:
    """End a run with everything it started."""
    run = Client().call("POST", f"/cron/runs/{run_id}/abort", {"reason": reason} if reason else {})
    print_json(run) if as_json else print(f"Run {run_id} is being ended.")
