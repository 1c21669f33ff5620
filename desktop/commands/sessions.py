"""cronmend sessions: list, show."""

from collections.abc import Callable
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, local, plain, print_json, print_table


@click.group()
def sessions() -> None:
    """Sessions: what was said and done in a heal."""


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
    print_table(rows, columns, "No sessions yet. One opens with each heal.")


@sessions.command()
@click.argument("session_id", type=int)
@json_option
def show(session_id: int, *, as_json: bool) -> None:
    """Show one session with its transcript."""
    found = Client().call("GET", f"/sessions/{session_id}")
    if as_json:
        print_json(found)
        return
    print(f"{found['title']}: {found['status']}")
    for message in found["messages"]:
        for block in message["content"]:
            print(f"\n[{message['seq']}] {_who(message)}: {_said(block)}")


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
