"""The app's own log as a page: filtered by prefix, level and words, live."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from web.desk import desk
from web.shell import page, part

blueprint = Blueprint("app_log", __name__)

PREFIXES = ("[cron-heal]", "[CronHeal]", "[self-repair]", "[engine]")
MOST_BYTES = 2 * 1024 * 1024
MOST_ENTRIES = 500

_ENTRY = re.compile(r"(?P<at>[0-9-]{10} [0-9:]{8}),[0-9]{3} (?P<level>[A-Z]+) (?P<text>.*)", re.DOTALL)
_STARTS = re.compile(r"(?m)^(?=[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},)")
_GRAVE = ("WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True)
class Entry:
    """One entry with the lines that belong to it, as of a traceback."""

    at: str
    level: str
    prefix: str
    text: str

    @property
    def tone(self) -> str:
        return {"WARNING": "warn", "ERROR": "bad", "CRITICAL": "bad"}.get(self.level, "")


@dataclass(frozen=True)
class LogView:
    entries: Sequence[Entry]
    prefix: str
    sought: str
    is_grave: bool


@blueprint.get("/log")
def show_log() -> ResponseReturnValue:
    return page("log/index.html", _view(), "Log")


@blueprint.get("/log/entries")
def entries() -> ResponseReturnValue:
    return part("log/_entries.html", _view())


def _view() -> LogView:
    prefix = request.args.get("prefix", "")
    sought = request.args.get("q", "").strip()
    is_grave = request.args.get("grave") == "on"
    found = [
        entry
        for entry in _read(Path(desk().facts()["home"]) / "app.log")
        if (prefix not in PREFIXES or entry.prefix == prefix)
        and (not is_grave or entry.level in _GRAVE)
        and sought.lower() in f"{entry.at} {entry.level} {entry.prefix} {entry.text}".lower()
    ]
    chosen = prefix if prefix in PREFIXES else ""
    return LogView(found[-MOST_ENTRIES:], chosen, sought, is_grave)


def _read(file: Path) -> list[Entry]:
    """The newest entries of the log, oldest first; of the file before it, too, when it is short."""
    data = _tail(file, MOST_BYTES)
    older = _tail(file.with_name(file.name + ".1"), MOST_BYTES - len(data))
    parts = _STARTS.split((older + data).decode(errors="replace"))
    matches = (_ENTRY.match(text.rstrip("\n")) for text in parts)
    return [_entry(match) for match in matches if match]


def _entry(match: re.Match[str]) -> Entry:
    prefix, space, rest = match["text"].partition(" ")
    has_prefix = prefix in PREFIXES and space
    return Entry(match["at"], match["level"], prefix if has_prefix else "", rest if has_prefix else match["text"])


def _tail(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - most))
            return stream.read(most)
    except OSError:
        return b""
