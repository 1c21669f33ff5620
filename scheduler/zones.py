"""Time zones by IANA name, and where a wall-clock time falls on the line of instants."""

import difflib
import os
from bisect import bisect_left
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from store.errors import Invalid


class Fall(NamedTuple):
    """What a zone makes of one wall-clock time: `first` always, `second` when the hour happens twice.

    `real` is false when the clock jumps over the time; `first` is then the first instant after the jump.
    """

    first: datetime
    second: datetime | None
    real: bool


def find_zone(name: str, field: str = "timezone") -> ZoneInfo:
    """The zone of that exact name.  Raises Invalid in `field`, with the nearest name, when there is none."""
    if name in _names():
        return ZoneInfo(name)
    near = _suggest(name)
    remedy = f"did you mean {near}?" if near else "use a name like Europe/Berlin or UTC."
    shown = name if name.isprintable() else ascii(name)
    raise Invalid(field, f"{shown or 'An empty text'} is not a time zone; {remedy}")


def successors(name: str) -> list[str]:
    """Zones that may take the place of one that is gone, the nearest name first; none when it is there."""
    if name in _names():
        return []
    near = _suggest(name)
    return list(dict.fromkeys([*([near] if near else []), local_timezone()]))


def local_timezone(etc: Path = Path("/etc")) -> str:
    """The machine's IANA zone name: TZ when it is a name, else the `localtime` link, else `timezone`, else UTC."""
    candidates = (os.environ.get("TZ", "").removeprefix(":"), *_configured_names(etc))
    return next((name for name in candidates if name in _names()), "UTC")


def locate(wall: datetime, zone: ZoneInfo) -> Fall:
    """Where the naive `wall` time of `zone` falls, in UTC."""
    early, late = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    if early is None or late is None:
        raise TypeError("A ZoneInfo knows the offset of every time.")
    before, after = ((wall - offset).replace(tzinfo=UTC, fold=0) for offset in (early, late))
    if early == late:
        return Fall(before, None, real=True)
    if early > late:
        return Fall(before, after, real=True)
    return Fall(_end_of_jump(after, before, zone), None, real=False)


def _end_of_jump(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The instant in (low, high] at which the zone's offset becomes that of `high`."""
    offset = high.astimezone(zone).utcoffset()
    seconds = range(int(low.timestamp()), int(high.timestamp()) + 1)
    found = bisect_left(seconds, True, key=lambda at: datetime.fromtimestamp(at, zone).utcoffset() == offset)
    return datetime.fromtimestamp(seconds[found], UTC)


@cache
def _names() -> frozenset[str]:
    # The list that ships with the data: asking ZoneInfo would let a case-blind disk accept "europe/berlin".
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def _suggest(name: str) -> str | None:
    """The zone whose name, or whose last part (the city), is nearest to `name`."""
    # Etc/GMT+2 lies two hours WEST of Greenwich: it is nobody's intention.
    # EST is no help to somebody who wrote CEST: only places are guessed at.
    known = [zone for zone in sorted(_names()) if "/" in zone and not zone.startswith("Etc/")]
    by_city = {zone.rpartition("/")[2].lower(): zone for zone in known}
    by_name = {zone.lower(): zone for zone in known}
    wanted = name.strip().lower().replace(" ", "_")
    if exact := next((zone for zone in _names() if zone.lower() == wanted), None):
        return exact
    for index, cutoff in ((by_name, 0.75), (by_city, 0.8)):
        near = difflib.get_close_matches(wanted, index, n=1, cutoff=cutoff)
        if near:
            return index[near[0]]
    return None


def _configured_names(etc: Path) -> list[str]:
    link, written = etc / "localtime", etc / "timezone"
    names = []
    if link.is_symlink():
        # The link as written comes first: behind it an old name may point on to its successor.
        targets = (link.readlink(), link.resolve())
        names += [target.as_posix().rpartition("zoneinfo/")[2] for target in targets]
    if written.is_file():
        names.append(written.read_text(encoding="utf-8", errors="replace").strip())
    return names
