"""cronmend serve, status, doctor, audit: the app itself."""

import sys
from collections.abc import Callable
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, local, print_facts, print_json, print_table
from desktop.paths import data_paths


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The loopback port; any free one by default.")
@click.option("--fresh", is_flag=True, help="Begin empty after a damaged database was set aside.")
def serve(port: int, *, fresh: bool) -> None:
    """Run Cronmend without a window, until Ctrl-C or SIGTERM."""
    from desktop.serve import serve as run_app  # noqa: PLC0415 - the engine; no other command needs it

    run_app(data_paths(), port=port, fresh=fresh)


def open_window() -> None:
    """Opens the window; a running app raises its own, or says where its pages are."""
    client, paths = Client(), data_paths()
    if not paths.instance and client.is_running():
        answer = client.call("POST", "/app/activate")
        print("Cronmend is open already." if answer["raised"] else f"Cronmend is running at {answer['url']}")
        return
    from desktop.serve import serve as run_app  # noqa: PLC0415 - the engine

    run_app(paths, in_window=True)


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Counters, and the state of the scheduler."""
    found = Client().call("GET", "/cron/status")
    print_json(found) if as_json else print_facts(found)


@click.command()
@json_option
def doctor(*, as_json: bool) -> int:
    """Look for what keeps jobs from running and healing, and say the remedy."""
    from desktop.doctor import examine  # noqa: PLC0415 - looks at everything, so it imports much

    findings = examine(Client())
    if as_json:
        print_json([finding.shape() for finding in findings])
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.is_ok else 'LOOK'}  {finding.check}: {finding.detail}")
            if finding.remedy and not finding.is_ok:
                print(f"      {finding.remedy}")
    sys.stdout.flush()
    return 0 if all(finding.is_ok or not finding.is_serious for finding in findings) else 1


@click.command()
@click.option("--kind", help="Events of a kind, as 'heal' or 'run.failed'.")
@click.option("--job", type=int, help="Events of one job.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@json_option
def audit(*, as_json: bool, **asked: Any) -> None:
    """What happened, newest first."""
    rows = Client().call("GET", "/cron/audit", query=asked)
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("AT", lambda event: local(event["at"])),
        ("KIND", lambda event: event["kind"]),
        ("JOB", lambda event: event["jobId"]),
        ("RUN", lambda event: event["runId"]),
        ("HEAL", lambda event: event["healId"]),
        ("BY", lambda event: event["actor"]),
        ("REASON", lambda event: event["reason"]),
    ]
    print_table(rows, columns, "Nothing has happened yet.")
