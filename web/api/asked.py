"""Reading what a request asks, with errors that name the field."""

from datetime import datetime
from typing import Any

from flask import request

from scheduler.instants import parse_instant
from scheduler.zones import local_timezone
from store.clock import now
from store.errors import Invalid, Refusal
from web.whole import read_whole

MOST_ROWS = 1_000


def body() -> dict[str, Any]:
    """The JSON object of the request; {} without one.  Raises Refusal `malformed`."""
    if not request.get_data(cache=True):
        return {}
    if not request.is_json:
        raise Refusal("The body must be JSON (Content-Type: application/json).", code="malformed")
    found = request.get_json(silent=True)
    if not isinstance(found, dict):
        raise Refusal("The body must be a JSON object.", code="malformed")
    return found


def number(name: str, *, default: int | None = None, most: int | None = None) -> int | None:
    """A whole number of the query string."""
    text = request.args.get(name)
    if text is None:
        return default
    found = read_whole(text)
    if found is None:
        raise Invalid(name, f"{name}: {text!r} is not a whole number.")
    return min(found, most) if most else found


def limit() -> int:
    return number("limit", default=100, most=MOST_ROWS) or 1


def choice(name: str, allowed: tuple[str, ...]) -> str | None:
    text = request.args.get(name)
    if text is not None and text not in allowed:
        raise Invalid(name, f"{name}: {text!r} is not one of {', '.join(allowed)}.")
    return text


def instant(name: str) -> datetime | None:
    text = request.args.get(name)
    return None if text is None else parse_instant(text, local_timezone(), now(), field=name)


def flag(name: str, *, default: bool) -> bool:
    text = request.args.get(name)
    return default if text is None else text not in ("0", "false", "no")


def texts(body: dict[str, Any], name: str) -> list[str]:
    """A list of texts or numbers in the body; one alone counts as a list.  Raises Invalid."""
    found = body.get(name, [])
    values = found if isinstance(found, list) else [found]
    if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in values):
        raise Invalid(name, f"{name}: must be a list of texts.")
    return [str(value).strip() for value in values if str(value).strip()]
