"""cronmend heals: list, show, start, undo."""

import sys
from collections.abc import Callable
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, local, print_facts, print_json, print_table


@click.group()
def heals() -> None:
    """Heals: repairs of jobs that broke."""


@heals.command("list")
@click.option("--job", type=int, help="Heals of one job.")
@click.option("--status", type=click.Choice(["pending", "spawned", "fixed", "abandoned"]))
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@json_option
def list_heals(*, as_json: bool, **asked: Any) -> None:
    """List heals, newest first."""
    rows = Client().call("GET", "/cron/heals", query=asked)
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda heal: heal["id"]),
        ("JOB", lambda heal: heal["jobId"]),
        ("STATUS", lambda heal: heal["status"]),
        ("CAUSE", lambda heal: heal["rootCause"] or heal["cause"]),
        ("OUTCOME", _outcome),
        ("AT", lambda heal: local(heal["createdAt"])),
    ]
    print_table(rows, columns, "No heals yet. One opens by itself when a job fails for good.")


def _outcome(heal: dict[str, Any]) -> str:
    if heal["status"] == "fixed":
        proof = "not verified" if heal["proof"] == "unverified" else f"proven by {heal['proof']}"
        return f"{heal['fix'] or 'fixed'} ({proof})"
    return heal["abandonedReason"] or heal["closingReason"] or "at work"


@heals.command()
@click.argument("heal_id", type=int)
@click.option("--diff", "as_diff", is_flag=True, help="Print its changes as a unified diff.")
@json_option
def show(heal_id: int, *, as_diff: bool, as_json: bool) -> None:
    """Show one heal."""
    client = Client()
    if as_diff:
        sys.stdout.buffer.write(client.raw("GET", f"/cron/heals/{heal_id}/diff").body)
        return
    heal = client.call("GET", f"/cron/heals/{heal_id}")
    print_json(heal) if as_json else print_facts(heal)


@heals.command()
@click.argument("job_id", type=int)
@json_option
def start(job_id: int, *, as_json: bool) -> None:
    """Fix it: open a heal for a job's last failed run; prints its id."""
    started = Client().call("POST", f"/cron/jobs/{job_id}/heal")
    if as_json:
        print_json(started)
    elif started["healId"] is not None:
        print(started["healId"])
    else:
        print(f"A heal has worked on this run before: session {started['sessionId']} looks at it with the file tools.")
        print("The job is not paused.")


@heals.command()
@click.argument("heal_id", type=int)
@json_option
def undo(heal_id: int, *, as_json: bool) -> None:
    """Put the files that a heal changed back as they were."""
    answer = Client().call("POST", f"/cron/heals/{heal_id}/undo")
    if as_json:
        print_json(answer)
        return
    print("Put back: " + (", ".join(answer["restored"]) or "nothing"))
    if answer["kept"]:
        print("Changed since, left alone: " + ", ".join(answer["kept"]))
