"""What a valid cron line does that its writer may not expect, and what it means in words."""

import functools
import re

from cron_descriptor import Options, get_description

from scheduler.cronline import REBOOT

_ENGLISH = Options(locale_code="en_US", use_24hour_time_format=True)
_STEP = re.compile(r"\*/([0-9]+)")
_SHORTEST_MONTH = {"2": 28, "4": 30, "6": 30, "9": 30, "11": 30}
_CYCLES = (("minute", 60, "hour"), ("hour", 24, "day"), ("day of month", 0, "month"), ("month", 12, "year"))


@functools.lru_cache(maxsize=4_096)
def describe(cron: str) -> str:
    """The line in English: "Every 30 minutes", "At 09:30, Monday through Friday"."""
    if cron == REBOOT:
        return "Once after each start of the machine"
    minute, hour, day, month, weekday = cron.split()
    times = f"{_spell_out(minute, 60)} {_spell_out(hour, 24)}"
    # The library spreads the ordinal of one term over a whole list, and joins the two day fields by one word only.
    weekday = _spell_out(weekday, 7)
    terms = weekday.split(",") if "#" in weekday or "L" in weekday else [weekday]
    if weekday == "*" or (day == "*" and len(terms) == 1):
        return _translate(f"{times} {day} {month} {weekday}")
    joint = _joint(cron) if day != "*" else ", "
    every_month = _translate(f"{times} * * *")
    only_months = _translate(f"{times} * {month} *").removeprefix(every_month)
    days = joint + " or ".join(map(_describe_weekday, terms))
    return _translate(f"{times} {day} * *") + days + only_months


def _joint(cron: str) -> str:
    return ", and only " if both_days_must_match(cron) else ", or "


def _translate(cron: str) -> str:
    text = str(get_description(cron, _ENGLISH))
    text = re.sub(r"\bLW (?=of the month)", "the last weekday ", text)
    return re.sub(r"\bL (?=of the month)", "the last day ", text)


def _describe_weekday(term: str) -> str:
    text = _translate(f"0 0 * * {term}").removeprefix("At 00:00, ").removeprefix("only ")
    return text if text.startswith(("on ", "every ")) else f"on {text}"


def _spell_out(text: str, size: int) -> str:
    """An uneven step as the list of its values: "every 45 minutes" would be a lie."""
    match = _STEP.fullmatch(text)
    if match is None or size % int(match[1]) == 0:
        return text
    return ",".join(map(str, range(0, size, int(match[1]))))


def both_days_must_match(cron: str) -> bool:
    """Whether the day fields are joined by "and": the rule when one of them begins with a star."""
    day, _, weekday = cron.split()[2:]
    return day.startswith("*") or weekday.startswith("*")


def find_notes(cron: str) -> tuple[str, ...]:
    """Sentences about uneven steps, the two day fields, and months or years that are left out."""
    if cron == REBOOT:
        return ()
    return (*_note_steps(cron), *_note_day_fields(cron), *_note_short_months(cron))


def _note_steps(cron: str) -> list[str]:
    notes = []
    for (name, size, cycle), text in zip(_CYCLES, cron.split()[:4], strict=True):
        match = _STEP.fullmatch(text)
        if match and (not size or size % int(match[1])):
            notes.append(
                f"{name}: {text} is uneven, it starts again with every {cycle}, so the last gap is shorter."
                if size
                else f"{name}: {text} is uneven, it starts again on the 1st of every {cycle}."
            )
    return notes


def _note_day_fields(cron: str) -> list[str]:
    day, _, weekday = cron.split()[2:]
    if "*" in (day, weekday):
        return []
    if both_days_must_match(cron):
        return [f"Runs only when day of month {day} and day of week {weekday} both match."]
    notes = [f"Runs when either day field matches: day of month {day} or day of week {weekday}."]
    if day == "1-31":
        notes.append("day of month: 1-31 matches every day, so the day of week changes nothing; write * instead.")
    return notes


def _note_short_months(cron: str) -> list[str]:
    """Days 29 to 31 that some of the line's months do not have."""
    day, month, weekday = cron.split()[2:]
    if cron.split()[2:] == ["29", "2", "*"]:
        return ["Runs in leap years only."]
    months = month.split(",")
    shortest = min((_SHORTEST_MONTH.get(name, 31) for name in months), default=31) if _is_plain(month) else 28
    late = [term for term in day.split(",") if term in {"29", "30", "31"} and int(term) > shortest]
    also = " (the day of week still counts)" if weekday != "*" else ""
    return [f"day of month: months without day {term} are left out{also}; L is the last day." for term in late]


def _is_plain(month: str) -> bool:
    return re.fullmatch(r"[0-9]+(,[0-9]+)*", month) is not None
