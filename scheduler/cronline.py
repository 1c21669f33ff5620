"""The five fields of a cron line: normalized, or refused with the field and the remedy."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from cronsim import CronSim, CronSimError

from store.errors import Invalid

REBOOT = "@reboot"
LONGEST_LINE = 1000
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    REBOOT: REBOOT,
}
_HINT = (
    "write five fields (minute, hour, day of month, month, day of week) "
    "or a phrase such as “every 30m” or “weekdays at 09:30”."
)
_ANCHOR = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock without a zone, only to ask whether a line ever fires
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S*)", re.IGNORECASE)
_TERM = re.compile(r"(?P<first>\*|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\w+))?", re.ASCII)
_NTH = re.compile(r"(?P<day>\w+)#(?P<nth>\w+)", re.ASCII)
_LAST_DAY = re.compile(r"(?P<day>[0-9]+|[A-Z]{3})L")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Field:
    """One of the five: its name for people, its range, and the words that stand for numbers."""

    name: str
    low: int
    high: int
    words: tuple[str, ...] = field(default=())

    def refuse(self, message: str) -> Invalid:
        return Invalid("schedule", f"{self.name}{message}")

    def read(self, text: str) -> int:
        """The number that `text` stands for.  Raises Invalid when it is none of this field."""
        if text in self.words:
            return self.words.index(text) + self.low
        if not _NUMBER.fullmatch(text):
            raise self.refuse(f": “{text.lower()}” is not a value; use {self._values()}.")
        number = int(text)
        if not self.low <= number <= self.high:
            raise self.refuse(f" {number} is outside {self.low}-{self.high}.")
        return number

    def _values(self) -> str:
        names = f" or {self.words[0].lower()}-{self.words[-1].lower()}" if self.words else ""
        return f"{self.low}-{self.high}{names}"


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
WEEKDAY = Field("day of week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)


def read_line(text: str) -> str:
    """`text` as five normalized fields, or "@reboot".  Raises Invalid("schedule") with the cause and the remedy."""
    tokens = text.split()
    if len(tokens) == 1 and text.startswith("@"):
        return _read_alias(tokens[0])
    if match := _ZONE_PREFIX.match(text):
        raise _invalid(f"A time zone does not go into the schedule; use --timezone {match[1] or 'NAME'}.")
    _check_shape(text, tokens)
    cron = " ".join(_read_field(part, token.upper()) for part, token in zip(FIELDS, tokens, strict=True))
    _check_fires(cron)
    return cron


def _invalid(message: str) -> Invalid:
    return Invalid("schedule", message)


def _read_alias(token: str) -> str:
    if token.lower() not in _ALIASES:
        raise _invalid(f"{token} is not known; use one of {', '.join(_ALIASES)}, or {_HINT}")
    return _ALIASES[token.lower()]


def _check_shape(text: str, tokens: list[str]) -> None:
    """Raise Invalid unless the text looks like five fields."""
    if re.fullmatch(r"[A-Za-z]{2,}\W*", tokens[0]):
        raise _invalid(f"“{text}” is not a schedule; {_HINT}")
    if re.search(r",\s|\s,", text):
        raise _invalid(f"“{text}” has a space in a list; write it without, such as mon,fri.")
    if len(tokens) > 5 and re.search(r"[a-z./~]{4}|^[./~]", tokens[5], re.IGNORECASE):
        raise _invalid(f"“{tokens[5]}” is the sixth word; the schedule is the five fields before the command.")
    if len(tokens) == 6:
        raise _invalid(f"“{text}” has six fields; seconds are not supported; use five fields.")
    if len(tokens) != 5:
        raise _invalid(f"“{text}” has {len(tokens)} field{'s'[: len(tokens) != 1]} instead of five; {_HINT}")


def _read_field(part: Field, text: str) -> str:
    """The normalized field: numbers for names, 0 for Sunday, no zero in front, a bounded range for every step."""
    terms = [_read_term(part, term) for term in text.split(",")]
    return ",".join(dict.fromkeys(terms))


def _read_term(part: Field, term: str) -> str:
    if not term:
        raise part.refuse(": a list has an empty place; remove the extra comma.")
    if special := _read_special(part, term):
        return special
    match = _TERM.fullmatch(term)
    if match is None:
        raise part.refuse(f": “{term.lower()}” is not a value, a range (1-5), a step (*/5) or a list (1,3).")
    first, last, step = match["first"], match["last"], match["step"]
    if first == "*":
        if last:
            raise part.refuse(f": “{term.lower()}” mixes * with a range; write one of them.")
        return "*" + _read_step(part, term, step)
    if last:
        return _read_range(part, first, last, _read_step(part, term, step))
    if step:
        return _read_range(part, first, str(part.high), _read_step(part, term, step))
    return _fold_sunday(part, part.read(first))


def _read_special(part: Field, term: str) -> str | None:
    """L and LW of the day of month, 5L and 5#2 of the day of week; other dialects' signs are refused by name."""
    if part is DAY and term in {"L", "LW"}:
        return term
    if part is WEEKDAY and (match := _LAST_DAY.fullmatch(term)):
        return _fold_sunday(part, part.read(match["day"])) + "L"
    if part is WEEKDAY and (match := _NTH.fullmatch(term)):
        if match["nth"] not in {"1", "2", "3", "4", "5"}:
            raise part.refuse(f": “{term.lower()}” asks for week {match['nth']} of a month; use #1 to #5.")
        return f"{_fold_sunday(part, part.read(match['day']))}#{match['nth']}"
    for sign, (pattern, remedy) in _OTHER_DIALECTS.items():
        if re.fullmatch(pattern, term):
            raise part.refuse(f": {sign} is not supported; {remedy}.")
    return None


_OTHER_DIALECTS = {
    "?": (r"\?.*", "write *"),
    "W (the nearest weekday)": (r"\d+W", "use LW for the last weekday of the month, or a day"),
    "L here": (
        r"L(?:W|[-/0-9].*)?|(?:[0-9]+|[A-Z]{3})L",
        "L goes into the day of month, 5L (the last Friday) into the day of week",
    ),
    "H": (r"H\b.*", "choose a value, or use a jitter"),
    "~ (random)": (r".*~.*", "choose a value, or use a jitter"),
}


def _fold_sunday(part: Field, number: int) -> str:
    return str(number % 7 if part is WEEKDAY else number)


def _read_range(part: Field, first: str, last: str, step: str) -> str:
    low, high = part.read(first), part.read(last)
    if low == high:
        # A step from a range of one would be read as a step from there to the end of the field.
        return _fold_sunday(part, low)
    if low < high:
        return f"{low}-{high}{step}"
    wrapped = f"{low}-7" if part is WEEKDAY and high == 0 else f"{_span(low, _top(part))},{_span(part.low, high)}"
    raise part.refuse(f": {first.lower()}-{last.lower()} runs backwards; write {wrapped}.")


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _top(part: Field) -> int:
    return 6 if part is WEEKDAY else part.high


def _read_step(part: Field, term: str, step: str | None) -> str:
    if step is None:
        return ""
    if not _NUMBER.fullmatch(step):
        raise part.refuse(f": the step of “{term.lower()}” is not a number; write one such as */5.")
    size = int(step)
    if size == 0:
        raise part.refuse(": a step of 0 never moves; use 1 or more.")
    if size > part.high - part.low:
        raise part.refuse(f": {term.lower()} is {_too_wide(part, size)}")
    return f"/{size}" if size > 1 else ""


def _too_wide(part: Field, size: int) -> str:
    """What a step larger than its field would really do, and what to write instead."""
    if part is MINUTE:
        return f"hourly, not every {size} minutes; write 0 for hourly, or use “every 2h”."
    if part is HOUR:
        return f"daily, not every {size} hours; write 0 for daily at midnight, or use “daily at 09:00”."
    return f"only the first value; the largest step is {part.high - part.low}."


def _check_fires(cron: str) -> None:
    """Raise Invalid for a line whose day and month never meet."""
    try:
        fires = next(CronSim(cron, _ANCHOR), None) is not None
    except CronSimError:
        fires = False
    if not fires:
        day, month, weekday = cron.split()[2:]
        also = "" if weekday == "*" else f" on day of week {weekday}"
        raise DAY.refuse(f" {day} does not come in month {month}{also}: it never fires; use L for the last day.")


def check_text(text: str) -> None:
    """Raise Invalid("schedule") for a text that is empty, too long or not one line."""
    if not text.strip():
        raise _invalid(f"The schedule is empty; {_HINT}")
    if len(text) > LONGEST_LINE:
        raise _invalid(f"The schedule is longer than {LONGEST_LINE} characters; {_HINT}")
    if not text.replace("\t", " ").strip().isprintable():
        raise _invalid("The schedule holds a line break or a control character; write it on one line.")
