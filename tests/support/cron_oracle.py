"""When a cron line fires, found the slow way: every minute of a zone is looked at, nothing is computed.

It shares no code with the product.  The rules are those of Debian's cron.
"""

import calendar
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def fire_times(cron: str, zone_name: str, start: datetime, end: datetime) -> list[datetime]:
    """Every instant in (start, end] at which the normalized line `cron` fires, in UTC, in order."""
    minute, hour = cron.split()[:2]
    # Two days before the start are walked too, so that walls of an earlier first time round count as seen.
    walk = _walk(zone_name, start - timedelta(days=2), end)
    if minute[0] == "*" or hour[0] == "*":
        return [at for at, passed in walk if at > start and _matches(cron, passed[-1])]
    fired = []
    seen: set[datetime] = set()
    for at, passed in walk:
        due = [wall for wall in passed if _matches(cron, wall) and wall not in seen]
        seen.update(due)
        if due and at > start:
            fired.append(at)
    return fired


@cache
def _walk(zone_name: str, start: datetime, end: datetime) -> list[tuple[datetime, list[datetime]]]:
    """Each minute with the wall-clock minutes that pass in it: one as a rule, many when the clock jumps ahead."""
    zone = ZoneInfo(zone_name)
    walk = []
    previous = _wall(start, zone)
    at = start + MINUTE
    while at <= end:
        wall = _wall(at, zone)
        gone = (wall - previous) // MINUTE
        walk.append((at, [wall - n * MINUTE for n in reversed(range(gone))] if gone > 0 else [wall]))
        previous = wall
        at += MINUTE
    return walk


def _wall(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def _matches(cron: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = cron.split()
    if not (_has(minute, wall.minute, 0) and _has(hour, wall.hour, 1) and _has(month, wall.month, 3)):
        return False
    day_matches = any(_day_term(term, wall.date()) for term in day.split(","))
    weekday_matches = any(_weekday_term(term, wall.date()) for term in weekday.split(","))
    if day[0] == "*" or weekday[0] == "*":
        return day_matches and weekday_matches
    return day_matches or weekday_matches


def _day_term(term: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if term == "L":
        return day.day == last
    if term == "LW":
        working = [n for n in range(1, last + 1) if day.replace(day=n).weekday() < 5]
        return day.day == working[-1]
    return _has(term, day.day, 2)


def _weekday_term(term: str, day: date) -> bool:
    number = day.isoweekday() % 7
    same = [n for n in range(1, 32) if n <= calendar.monthrange(day.year, day.month)[1] and (n - day.day) % 7 == 0]
    if term.endswith("L"):
        return number == int(term[:-1]) % 7 and day.day == same[-1]
    if "#" in term:
        wanted, nth = term.split("#")
        return number == int(wanted) % 7 and same.index(day.day) + 1 == int(nth)
    return _has(term, number, 4) or (number == 0 and _has(term, 7, 4))


def _has(text: str, value: int, place: int) -> bool:
    return value in _values(text, place)


@cache
def _values(text: str, place: int) -> frozenset[int]:
    low, high = RANGES[place]
    return frozenset(
        n for n in range(low, high + 1) if any(_term_has(term, n, RANGES[place]) for term in text.split(","))
    )


def _term_has(term: str, value: int, span: tuple[int, int]) -> bool:
    body, _, step = term.partition("/")
    low, high = span
    if body != "*":
        first, _, last = body.partition("-")
        low, high = int(first), int(last or first)
    return low <= value <= high and (value - low) % int(step or 1) == 0
