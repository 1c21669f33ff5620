"""Every setting there is, in one table, with where its present value comes from."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Mapped, Session, mapped_column

from store import events
from store.errors import Invalid
from store.types import Base

log = logging.getLogger("settings")

POOL_NAME = re.compile(r"[\w.-]{1,40}")


class StoredSetting(Base):
    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return parse


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError(f"must be {least} or more")
        return number

    return parse


def _hours(text: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", text):
        raise ValueError("must look like 22:00-07:00")
    return text


def _pools(text: str) -> dict[str, int]:
    pairs = [pair.partition("=") for pair in text.replace(",", " ").split()]
    if not all(POOL_NAME.fullmatch(name) and most.isdecimal() and int(most) for name, _, most in pairs):
        raise ValueError("must look like nas=1 gpu=2")
    return {name: int(most) for name, _, most in pairs}


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


@dataclass(frozen=True)
class Setting:
    """One setting: `name` on the settings page and in the environment, how it is read, what it means."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    meaning: str


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "CRONMEND_HEALER",
            "auto",
            _choice("auto", "claude", "claude-code", "playbook", "off"),
            "Who heals: the playbook and then Claude (auto), one of them alone, or nobody.",
        ),
        Setting("CRONMEND_MODEL", "claude-sonnet-5-5", str, "The model of heal sessions."),
        Setting("SANDBOX_TIMEOUT_SECS", 1800, _whole(1), "Hard limit of a run that sets none itself, in seconds."),
        Setting("MAX_PARALLEL_JOBS", 0, _whole(0), "Commands at once; 0: no limit. Runs started by hand never wait."),
        Setting("CRONMEND_POOLS", {}, _pools, "Runs at once in pools of jobs, as in nas=1 gpu=2; other pools: one."),
        Setting("MAX_CONCURRENT_AUTO_HEALS", 3, _whole(1), "Automatic heals open at once over all jobs."),
        Setting("CRONMEND_KEEP_RUNS", 100, _whole(1), "Runs of a job that are kept, with their logs."),
        Setting("CRONMEND_LOG_MB", 100, _whole(1), "Of a longer log beginning and end are kept, in MiB."),
        Setting("CRONMEND_THEME", "system", _choice("system", "light", "dark"), "The look of the pages."),
        Setting("CRONMEND_SINGLE_KEYS", "on", _choice("on", "off"), "Whether single letters act on the pages."),
        Setting("CRONMEND_QUIET_HOURS", "", _hours, "When no toast is shown, as in 22:00-07:00; empty: always shown."),
        Setting("CRONMEND_WINDOW", (1200, 800), _size, "The window's size."),
        Setting(
            "CRONMEND_CLOSE",
            "ask",
            _choice("ask", "keep", "quit"),
            "What closing the window does: asks, keeps jobs running, or quits.",
        ),
    )
}


@dataclass(frozen=True)
class Value:
    value: Any
    origin: str


def store(session: Session, name: str, text: str) -> None:
    """Keeps the value of the settings page; an empty one gives the setting back to the environment.

    Raises Invalid naming the setting.
    """
    row = session.get(StoredSetting, name)
    if not text:
        if row is not None:
            session.delete(row)
    else:
        try:
            SETTINGS[name].parse(text)
        except ValueError as error:
            raise Invalid(name, f"{name}: {error}.") from error
        session.merge(StoredSetting(key=name, value=text))
    events.record(session, "settings.changed", "person", reason=name)


def read(session: Session, environment: Mapping[str, str]) -> dict[str, Value]:
    """Each setting's value with its origin: settings page > environment > default.

    A value that cannot be read is a warning and the next origin's value, never a crash.
    """
    stored = {row.key: row.value for row in session.scalars(select(StoredSetting))}
    return {name: _resolve(setting, stored, environment) for name, setting in SETTINGS.items()}


def _resolve(setting: Setting, stored: Mapping[str, str], environment: Mapping[str, str]) -> Value:
    for origin, source in (("settings page", stored), ("environment", environment)):
        text = source.get(setting.name)
        if text is None or text == "":
            continue
        try:
            return Value(setting.parse(text), origin)
        except ValueError as error:
            log.warning(
                "[engine] %s from the %s is not usable (%s); using %r", setting.name, origin, error, setting.default
            )
    return Value(setting.default, "default")
