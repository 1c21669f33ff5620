"""Schedules in everyday words ("every 30m", "weekdays at 09:30"), read as five cron fields."""

import re
from collections.abc import Callable

from store.errors import Invalid

_HOUR, _DAY = 60, 24 * 60
_DEFAULT_TIME = "09:00"
# What five fields can say, in minutes: the divisors of an hour, and whole hours that divide a day.
_INTERVALS = [n for n in range(1, _HOUR) if _HOUR % n == 0] + [n * _HOUR for n in range(1, 25) if 24 % n == 0]

_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_DAY_NUMBERS = {name: str(day) for day, full in enumerate(_WEEKDAYS) for name in (full, full[:3])}
_DAY_NAME = "|".join(_DAY_NUMBERS)
_MORE_DAYS = rf"(?:(?:,|,? and) (?:{_DAY_NAME})s?)*"

_INTERVAL = re.compile(r"(?:every )?([0-9]{1,6}) ?([a-z]+)")
_CLOCK_12 = re.compile(r"(1[0-2]|0?[1-9])(?::([0-5][0-9]))? ?([ap])m")
_CLOCK_24 = re.compile(r"([01]?[0-9]|2[0-3])(?::([0-5][0-9]))?")
_NAMED_TIMES = {"midnight": (0, 0), "noon": (12, 0)}

_PLAIN = {
    "every minute": "* * * * *",
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    "every hour": "0 * * * *",
}
# Each pattern may be followed by a time of day; the template takes minute, hour and the named days.
_CALENDAR = [
    (re.compile(r"(?:daily|every day)"), "{m} {h} * * *"),
    (re.compile(r"(?:weekdays|every weekday)"), "{m} {h} * * 1-5"),
    (re.compile(r"(?:weekends|every weekend)"), "{m} {h} * * 0,6"),
    (re.compile(r"(?:monthly|every month)"), "{m} {h} 1 * *"),
    (re.compile(rf"(?:weekly|every)(?: on)? (?P<days>(?:{_DAY_NAME})s?{_MORE_DAYS})"), "{m} {h} * * {d}"),
    (re.compile(rf"(?P<days>(?:{_DAY_NAME})s{_MORE_DAYS})"), "{m} {h} * * {d}"),
    (re.compile(r"(?:weekly|every week)"), "{m} {h} * * 1"),
]


def read_phrase(text: str) -> str | None:
    """The five fields that `text` means, or None when it is no phrase.

    Raises Invalid("schedule") for a phrase whose interval or time of day five fields cannot say.
    """
    phrase = " ".join(text.lower().split())
    return _PLAIN.get(phrase) or _read_interval(phrase) or _read_calendar(phrase)


def read_clock(text: str) -> tuple[int, int] | None:
    """Hour and minute of a time of day ("9", "09:30", "9:30 am", "noon"), or None when it is none."""
    text = text.strip().lower()
    if text in _NAMED_TIMES:
        return _NAMED_TIMES[text]
    if match := _CLOCK_12.fullmatch(text):
        return int(match[1]) % 12 + (12 if match[3] == "p" else 0), int(match[2] or 0)
    if match := _CLOCK_24.fullmatch(text):
        return int(match[1]), int(match[2] or 0)
    return None


def _read_calendar(phrase: str) -> str | None:
    for pattern, template in _CALENDAR:
        match = pattern.match(phrase)
        if match is None or phrase[match.end() :][:1] not in {"", " "}:
            continue
        written = phrase[match.end() :].strip().removeprefix("at ") or _DEFAULT_TIME
        clock = read_clock(written)
        if clock is None:
            raise Invalid("schedule", f"“{written}” is not a time of day; write 09:30, 18:15 or 9:30 am.")
        named = re.findall(_DAY_NAME, match.groupdict().get("days") or "")
        days = ",".join(sorted({_DAY_NUMBERS[day] for day in named}))
        return template.format(h=clock[0], m=clock[1], d=days)
    return None


def _read_interval(phrase: str) -> str | None:
    match = _INTERVAL.fullmatch(phrase)
    reader = _UNITS.get(match[2]) if match else None
    return reader(int(match[1])) if match and reader else None


def _every_minutes(count: int) -> str:
    return _spread(count, f"{count} minute{'s'[: count != 1]}", "an hour" if count < _HOUR else "a day in whole hours")


def _every_hours(count: int) -> str:
    return _spread(count * _HOUR, f"{count} hour{'s'[: count != 1]}", "a day")


def _spread(minutes: int, words: str, whole: str) -> str:
    """Fields that fire every so many minutes, evenly round the clock."""
    if minutes == 0:
        raise Invalid("schedule", "An interval of 0 never passes; the shortest is 1m.")
    if minutes > _DAY:
        raise Invalid("schedule", f"{words} is longer than a day; use 24h, or a day and a time (“mondays at 09:00”).")
    if minutes not in _INTERVALS:
        lower = max(n for n in _INTERVALS if n < minutes)
        upper = min(n for n in _INTERVALS if n > minutes)
        raise Invalid("schedule", f"{words} does not divide {whole}; use {_short(lower)} or {_short(upper)}.")
    if minutes < _HOUR:
        return f"*/{minutes} * * * *" if minutes > 1 else "* * * * *"
    hours = minutes // _HOUR
    return {1: "0 * * * *", 24: "0 0 * * *"}.get(hours, f"0 */{hours} * * *")


def _short(minutes: int) -> str:
    return f"{minutes}m" if minutes < _HOUR else f"{minutes // _HOUR}h"


def _refuse_seconds(_count: int) -> str:
    raise Invalid("schedule", "Seconds are not supported; the shortest interval is 1m.")


def _every_days(count: int) -> str:
    if count == 1:
        return "0 9 * * *"
    raise Invalid(
        "schedule", f"“every {count} days” cannot be said in five fields; use “every day” or a day such as “fridays”."
    )


def _every_weeks(count: int) -> str:
    if count == 1:
        return "0 9 * * 1"
    raise Invalid("schedule", f"“every {count} weeks” cannot be said in five fields; use “every week” or “monthly”.")


_UNITS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _refuse_seconds),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), _every_minutes),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _every_hours),
    **dict.fromkeys(("d", "day", "days"), _every_days),
    **dict.fromkeys(("w", "week", "weeks"), _every_weeks),
}
