"""How listings and objects look on a terminal, and as JSON."""

import json
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

MOST_WIDE = 60

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    rows: Sequence[dict[str, Any]], columns: Sequence[tuple[str, Callable[[dict[str, Any]], Any]]], empty: str
) -> None:
    """Aligned columns; the sentence `empty` says what to do when there is no row."""
    if not rows:
        print(empty)
        return
    cells = [[title for title, _ in columns]]
    cells += [[_short(plain(value(row))) for _, value in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_facts(facts: dict[str, Any]) -> None:
    """One object, a line a key."""
    width = max(len(key) for key in facts)
    for key, value in facts.items():
        shown = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else plain(value)
        print(f"{key.ljust(width)}  {shown}")


def plain(value: Any) -> str:
    """Text without control characters: what a job printed must not steer the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cf") else char for char in str(value))


def local(at: str | None) -> str:
    """An ISO instant in this machine's time."""
    if at is None:
        return "-"
    return datetime.fromisoformat(at).astimezone(UTC).astimezone().strftime("%a %Y-%m-%d %H:%M:%S")


def _short(text: str) -> str:
    return text if len(text) <= MOST_WIDE else text[: MOST_WIDE - 1] + "…"
