"""Single instants as a person types them: ISO 8601, "tomorrow 09:00", "in 10 minutes", "18:15"."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from scheduler.phrases import read_clock
from scheduler.zones import find_zone, locate
from store.errors import Invalid

_FORMS = "write 2026-12-01 09:30, tomorrow 09:00, 18:15 or in 10 minutes"
_DELAY = re.compile(r"in ([0-9]{1,9}) ?([a-z]+)")
_DAY = re.compile(r"(today|tomorrow)(?: at)?(?: (.+))?")
_DATE = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})(?![0-9-])")
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
}


def parse_instant(text: str, timezone: str, now: datetime, field: str = "at") -> datetime:
    """The instant `text` names, in UTC; a time without offset is read in `timezone`, seen from `now`.

    A time that the clock jumps over becomes the first instant after the jump, one that happens twice the first.
    A bare time of day is the next such.  Raises Invalid in `field` for text that names no instant.
    """
    zone = find_zone(timezone)
    words = " ".join(text.lower().split())
    if not words or not text.isprintable():
        raise Invalid(field, f"There is no time in {text!a}; {_FORMS}.")
    try:
        found = _read_delay(words, now) or _read_day(words, zone, now, field) or _read_iso(text.strip(), zone, field)
    except OverflowError:
        raise Invalid(field, f"“{text}” is beyond the years that a calendar can name; {_FORMS}.") from None
    if found is None:
        raise Invalid(field, f"“{text}” is not a time; {_FORMS}.")
    return found


def _read_delay(words: str, now: datetime) -> datetime | None:
    match = _DELAY.fullmatch(words)
    unit = _UNITS.get(match[2]) if match else None
    return now.astimezone(UTC) + int(match[1]) * unit if match and unit else None


def _read_day(words: str, zone: ZoneInfo, now: datetime, field: str) -> datetime | None:
    """ "today 18:00" and "tomorrow 9 am"; a time of day alone is the next such after `now`."""
    today = now.astimezone(zone).date()
    if match := _DAY.fullmatch(words):
        clock = read_clock(match[2] or "")
        if clock is None:
            raise Invalid(field, f"“{words}” names no time of day; write {match[1]} 09:00.")
        return _at(today + timedelta(days=match[1] == "tomorrow"), clock, zone)
    clock = read_clock(words) if not words.isdigit() else None
    if clock is None:
        return None
    soon = _at(today, clock, zone)
    return soon if soon > now else _at(today + timedelta(days=1), clock, zone)


def _at(day: date, clock: tuple[int, int], zone: ZoneInfo) -> datetime:
    return locate(datetime.combine(day, time(*clock)), zone).first


def _read_iso(text: str, zone: ZoneInfo, field: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        _refuse_missing_date(text, field)
        return None
    return locate(read, zone).first if read.tzinfo is None else read.astimezone(UTC)


def _refuse_missing_date(text: str, field: str) -> None:
    """Raise Invalid when it is the date in `text` that no calendar has."""
    if match := _DATE.match(text):
        try:
            date(*map(int, match.groups()))
        except ValueError as problem:
            raise Invalid(field, f"The date {match[0]} does not exist ({problem}).") from None
