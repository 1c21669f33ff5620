"""A job's schedule: one object that reads it, says it in words, previews it and fires it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice, takewhile

from scheduler.cronline import REBOOT, check_text, read_line
from scheduler.firings import Firing, find_firings
from scheduler.lint import describe, find_notes
from scheduler.phrases import read_phrase
from scheduler.zones import find_zone


@dataclass(frozen=True)
class Instant:
    """One coming run: `at` in UTC, `local` for people, `note` when a clock change shapes it."""

    at: datetime
    local: str
    note: str | None


@dataclass(frozen=True)
class Schedule:
    """`cron` is five normalized fields or "@reboot", `text` what the person wrote, `timezone` an IANA name."""

    cron: str
    text: str
    timezone: str

    @classmethod
    def parse(cls, text: str, timezone: str) -> "Schedule":
        """The schedule a phrase or a cron line means.

        Raises Invalid in "schedule" or "timezone"; the message names the cause and the remedy.
        """
        find_zone(timezone)
        check_text(text)
        written = " ".join(text.split())
        phrase = read_phrase(written)
        cron = phrase or read_line(written)
        return cls(cron, written if phrase or written.startswith("@") else cron, timezone)

    @cached_property
    def words(self) -> str:
        """The schedule in English."""
        return describe(self.cron)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what its writer may not expect."""
        return find_notes(self.cron)

    def next_after(self, after: datetime) -> datetime | None:
        """The first instant strictly after `after`, in UTC; None when there is none ("@reboot")."""
        first = next(self._firings(after), None)
        return first and first.at

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The instants in (after, until], in order."""
        return takewhile(lambda at: at <= until, (firing.at for firing in self._firings(after)))

    def upcoming(self, after: datetime, count: int) -> list[Instant]:
        """The next `count` instants strictly after `after`, the way they will fire."""
        zone = find_zone(self.timezone)
        return [
            Instant(at, f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}", note)
            for at, note in islice(self._firings(after), count)
        ]

    def period(self, at: datetime) -> timedelta:
        """The gap between the two next instants after `at`; timedelta.max when there are no two."""
        pair = [firing.at for firing in islice(self._firings(at), 2)]
        return pair[1] - pair[0] if len(pair) == 2 else timedelta.max

    def _firings(self, after: datetime) -> Iterator[Firing]:
        zone = find_zone(self.timezone)
        return iter(()) if self.cron == REBOOT else find_firings(self.cron, zone, after)
