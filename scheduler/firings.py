"""The instants at which a cron line fires in a zone, odd nights included.

cronsim does the calendar on wall-clock times without a zone; what a clock change makes of each of them is decided here.
Left to itself with a zone it may answer an instant before the one it was asked about in a repeated hour, and it
loses runs where the clock moves by half an hour (both in version 2.8).
"""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim

from scheduler.zones import locate


class Firing(NamedTuple):
    """One instant in UTC, and a sentence when a clock change shaped it."""

    at: datetime
    note: str | None = None


def find_firings(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[Firing]:
    """Every instant of `cron` strictly after `after`, in order, once each."""
    follow = _follow_elapsed_time if is_elapsed(cron) else _follow_wall_time
    previous = after
    try:
        for firing in follow(cron, zone, after):
            if firing.at > previous:
                previous = firing.at
                yield firing
    except OverflowError:
        # The calendar ends with the year 9999.
        return


def is_elapsed(cron: str) -> bool:
    """Whether runs follow elapsed time: minute or hour begins with a star (the rule of Debian's cron)."""
    minute, hour, *_ = cron.split()
    return minute.startswith("*") or hour.startswith("*")


def _follow_wall_time(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[Firing]:
    """Fixed times: once at the first instant after a jump, once in a repeated hour."""
    for wall in CronSim(cron, _wall(after, zone)):
        first, second, real = locate(wall, zone)
        if not real:
            yield Firing(first, _explain_jump(wall, first.astimezone(zone)))
        else:
            yield Firing(first, "this hour happens twice; runs the first time" if second else None)


def _follow_elapsed_time(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[Firing]:
    """Wildcard times: nothing inside a jump, and both times in a repeated hour."""
    every_hour = cron.split()[1] == "*"
    repeats: deque[Firing] = deque()
    missed: datetime | None = None
    for wall in CronSim(cron, _start_of_repeat(after, zone)):
        first, second, real = locate(wall, zone)
        while repeats and repeats[0].at < first:
            yield repeats.popleft()
        if not real:
            missed = None if every_hour else missed or wall
            continue
        if second:
            repeats.append(Firing(second, "this hour happens twice; this is the second time"))
            yield Firing(first, "this hour happens twice; runs both times")
        else:
            yield Firing(
                first, None if missed is None else f"{missed:%H:%M on %Y-%m-%d} does not exist and is left out"
            )
        missed = None
    yield from repeats


def _wall(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None)


def _start_of_repeat(after: datetime, zone: ZoneInfo) -> datetime:
    """The wall time to look from: earlier than `after` when times before it are still to come a second time."""
    wall = _wall(after, zone).replace(fold=0)
    first, second, _ = locate(wall, zone)
    return wall - (second - first) if second else wall


def _explain_jump(wall: datetime, runs: datetime) -> str:
    if wall.date() == runs.date():
        return f"{wall:%H:%M} does not exist this night; runs at {runs:%H:%M}"
    return f"{wall:%H:%M on %Y-%m-%d} does not exist; runs at {runs:%H:%M on %Y-%m-%d}"
