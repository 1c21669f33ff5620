"""cronmend settings: get, set."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, print_json, print_table
from store.errors import NotFound


@click.group()
def settings() -> None:
    """Settings: each value, and where it comes from."""


@settings.command()
@click.argument("name", required=False)
@json_option
def get(name: str | None, *, as_json: bool) -> None:
    """Show all settings, or print the value of one."""
    rows = Client().call("GET", "/settings")
    if name is not None:
        row = next((row for row in rows if row["name"] == name), None)
        if row is None:
            raise NotFound("setting", name)
        print_json(row) if as_json else print(row["value"])
        return
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("NAME", lambda row: row["name"]),
        ("VALUE", lambda row: row["value"]),
        ("FROM", lambda row: row["origin"]),
        ("MEANING", lambda row: row["meaning"]),
    ]
    print_table(rows, columns, "There are no settings.")


@settings.command("set")
@click.argument("name")
@click.argument("value")
@json_option
def set_value(name: str, value: str, *, as_json: bool) -> None:
    """Keep a value; an empty one gives the setting back to the environment or its default."""
    row = Client().call("PUT", f"/settings/{quote(name, safe='')}", {"value": value})
    print_json(row) if as_json else print(f"{row['name']} is {row['value']} (from the {row['origin']}).")
