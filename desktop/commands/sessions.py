"""cronmend sessions: list, show, start, send, stop, archive."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, local, plain, print_json, print_table


@click.group()
def sessions() -> None:
    """Sessions: conversations with Claude in a project; a heal is one too."""


@sessions.command("list")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@json_option
def list_sessions(*, as_json: bool, **asked: Any) -> None:
    """List sessions, newest first."""
    rows = Client().call("GET", "/sessions", query=asked)
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda one: one["id"]),
        ("TITLE", lambda one: one["title"]),
        ("STATUS", lambda one: one["status"]),
        ("BY", lambda one: one["model"] or one["provider"]),
        ("COST", lambda one: f"${one['costUsd']:.2f}"),
        ("AT", lambda one: local(one["createdAt"])),
    ]
    print_table(rows, columns, "No sessions yet. Start one: cronmend sessions start 'What to do' --project DIR")


@sessions.command()
@click.argument("session_id", type=int)
@json_option
def show(session_id: int, *, as_json: bool) -> None:
    """Show one session with its transcript."""
    found = Client().call("GET", f"/sessions/{session_id}")
    if as_json:
        print_json(found)
        return
    print(f"{found['title']}: {found['status']}{' (' + found['error'] + ')' if found['error'] else ''}")
    for message in found["messages"]:
        for block in message["content"]:
            print(f"\n[{message['seq']}] {_who(message)}: {_said(block)}")


@sessions.command()
@click.argument("prompt")
@click.option("--project", help="A folder, or a project's id; the workspace without one.")
@click.option("--job", "job_id", type=int, help="Repair this job by hand: it is paused until the session is archived.")
@json_option
def start(prompt: str, project: str | None, job_id: int | None, *, as_json: bool) -> None:
    """Start a session; prints its id.  It goes on by itself: look with show."""
    body: dict[str, Any] = {"prompt": prompt}
    if job_id is not None:
        body["jobId"] = job_id
    elif project is not None:
        body["project"] = project if project.isdigit() else str(Path(project).expanduser().absolute())
    found = Client().call("POST", "/sessions", body)
    print_json(found) if as_json else print(found["id"])


@sessions.command()
@click.argument("session_id", type=int)
@click.argument("text")
@json_option
def send(session_id: int, text: str, *, as_json: bool) -> None:
    """Say something more in a session that is not at work."""
    found = Client().call("POST", f"/sessions/{session_id}/messages", {"text": text})
    print_json(found) if as_json else print(f"Session {session_id} is at work.")


@sessions.command()
@click.argument("session_id", type=int)
@json_option
def stop(session_id: int, *, as_json: bool) -> None:
    """Stop what is at work in a session; a heal is stopped with it."""
    found = Client().call("POST", f"/sessions/{session_id}/stop")
    print_json(found) if as_json else print(f"Session {session_id} is being stopped.")


@sessions.command()
@click.argument("session_id", type=int)
@json_option
def archive(session_id: int, *, as_json: bool) -> None:
    """Put a session away; a job that it held still goes on."""
    found = Client().call("POST", f"/sessions/{session_id}/archive")
    print_json(found) if as_json else print(f"Session {session_id} is archived.")


def _who(message: dict[str, Any]) -> str:
    return str(message["provider"] or message["role"])


def _said(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return _lines(block["text"])
    if kind == "tool_use":
        return plain(f"calls {block['name']} {block['input']}")
    if kind == "tool_result":
        return "result: " + _lines(_text_of(block.get("content")))
    return plain(f"({kind})")


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content)


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))
