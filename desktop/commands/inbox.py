"""cronmend inbox: list, show, resolve, snooze."""

from collections.abc import Callable
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, local, print_facts, print_json, print_table


@click.group()
def inbox() -> None:
    """The inbox: what waits for you."""


@inbox.command("list")
@click.option("--status", type=click.Choice(["pending", "approved", "rejected", "dismissed", "expired", "all"]))
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@json_option
def list_cards(*, as_json: bool, **asked: Any) -> None:
    """List cards, newest first."""
    rows = Client().call("GET", "/inbox", query=asked)
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda card: card["id"]),
        ("KIND", lambda card: card["actionKind"]),
        ("TITLE", lambda card: card["title"]),
        ("PREVIEW", lambda card: card["preview"]),
        ("AT", lambda card: local(card["createdAt"])),
    ]
    print_table(rows, columns, "Nothing waits for you.")


@inbox.command()
@click.argument("card_id", type=int)
@json_option
def show(card_id: int, *, as_json: bool) -> None:
    """Show one card."""
    card = Client().call("GET", f"/inbox/{card_id}")
    print_json(card) if as_json else print_facts(card)


@inbox.command()
@click.argument("card_id", type=int)
@click.argument("kind", type=click.Choice(["approve", "reject", "dismiss"]))
@click.option("--reason", help="Why.")
@json_option
def resolve(card_id: int, kind: str, reason: str | None, *, as_json: bool) -> None:
    """Decide a card."""
    body = {"kind": kind, **({"reason": reason} if reason else {})}
    card = Client().call("POST", f"/inbox/{card_id}/resolve", body)
    print_json(card) if as_json else print(f"Card {card_id} is {card['status']}.")


@inbox.command()
@click.argument("card_id", type=int)
@click.option("--until", default="in 1 hour", show_default=True, help="When it comes back.")
@json_option
def snooze(card_id: int, until: str, *, as_json: bool) -> None:
    """Hide a card for a while."""
    card = Client().call("POST", f"/inbox/{card_id}/resolve", {"kind": "snooze", "until": until})
    print_json(card) if as_json else print(f"Card {card_id} comes back {local(card['snoozedUntil'])}.")
