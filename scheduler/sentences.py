"""A job told in one English sentence: its command, time, folder and name, as far as words alone say them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scheduler.cronline import read_line
from scheduler.instants import parse_instant
from scheduler.phrases import read_clock, read_phrase
from store.errors import Invalid

MOST_CHARS = 2_000
_MOST_WORDS = 8
_MOST_NAME_CHARS = 60

_TICKS = re.compile(r"`([^`\n]+)`")
_FOLDER = re.compile(r"\b(?:in|inside|from) (?:the (?:folder|project) )?((?:~|\.{0,2}/)[^\s,;]*|~)(?=[\s,;.]|$)")
_RUNS = re.compile(r"(?i)^(?:please )?(?:run|execute|start|call) (?!(?:the|a|an|my|our|this|all) [a-z])(.+)$")
_CRON = re.compile(r"(?<!\S)(?:[0-9*/,-]+ ){4}[0-9*/,A-Za-z-]+(?!\S)|(?<!\S)@[a-z]+(?!\S)")
_CLOCK = re.compile(r"(?i)\bat ([0-2]?[0-9](?::[0-5][0-9])?(?: ?[ap]m)?|noon|midnight)\b")
_LOOSE = re.compile(r"(?i)^(?:and|then|please|to|[,;:–-])+(?: |$)|(?: |^)(?:and|then|on|at|[,.;:–-])+$")

_DAY = r"(?:sun|mon|tues|wednes|thurs|fri|satur)day"
_STARTS_PLAN = re.compile(rf"every|each|on|once|twice|(?:dai|hour|week|month|night|minute)ly|week(?:day|end)s|{_DAY}s")
_STARTS_INSTANT = re.compile(r"in|tomorrow|today|on|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_NUMBERS = dict(
    pair.split()
    for pair in ("one 1", "two 2", "three 3", "four 4", "five 5", "six 6", "ten 10", "twelve 12", "fifteen 15")
) | {"twenty": "20", "thirty": "30"}
# How people say what the phrase grammar knows by another name; the first that fits is taken.
_OTHER_WORDS = [
    (re.compile(pattern), said)
    for pattern, said in (
        (r"^on the first (?:day )?of (?:the|every|each) month", "monthly"),
        (r"^on ", ""),
        (r"^each ", "every "),
        (r"^once (?:a|an|every|per) ", "every "),
        (r"^twice (?:a|every|per) day$", "every 12h"),
        (r"^every (?:half an? hour|half hour)$", "every 30m"),
        (r"^every quarter (?:of an )?hour$", "every 15m"),
        (r"^(?:nightly|every night)\b", "daily at 3am"),
        (r"^every morning\b", "daily"),
        (r"^every evening\b", "daily at 6pm"),
        (rf"^(every (?:weekday|weekend|day|{_DAY})) morning\b", r"\1"),
        (rf"^(every (?:weekday|weekend|day|{_DAY})) evening\b", r"\1 at 6pm"),
        (rf"^(every (?:weekday|weekend|day|{_DAY})) night\b", r"\1 at 3am"),
        (r"(at \S+(?: [ap]m)?) at ", "at "),
    )
]

NO_COMMAND = "No command was recognized: write the shell line to run."
NO_TIME = "No time was recognized: choose one."
NO_DAY = "No day was named, so every day is assumed."


@dataclass(frozen=True)
class Reading:
    """Fields of a job that is not saved, under their JSON names, and what the reader could not tell."""

    fields: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Time:
    """Where in the sentence a time stands, and what it means."""

    start: int
    end: int
    field: str
    text: str
    note: str | None = None


def read_sentence(text: str, timezone: str, now: datetime) -> Reading:
    """What the sentence says.  A command is known by `back ticks`, or by following "run"."""
    left = " ".join(text[:MOST_CHARS].split())
    fields: dict[str, str] = {}
    notes: list[str] = []
    if ticks := _TICKS.search(left):
        fields["command"] = ticks[1].strip()
        left = _cut(left, ticks.start(), ticks.end())
    if folder := _FOLDER.search(left):
        fields["project"] = folder[1].rstrip(".") or folder[1]
        left = _cut(left, folder.start(), folder.end())
    when = _find_time(left, timezone, now)
    if when is not None:
        fields[when.field] = when.text
        left = _cut(left, when.start, when.end)
    notes += [note for note in (when.note if when else NO_TIME,) if note]
    runs = _RUNS.match(left)
    if runs and "command" not in fields:
        fields["command"] = _trim(runs[1])
    if "command" not in fields:
        notes.insert(0, NO_COMMAND)
    fields["name"] = _name(left, fields.get("command", ""))
    return Reading({name: value for name, value in fields.items() if value}, tuple(notes))


def _cut(text: str, start: int, end: int) -> str:
    return _trim(f"{text[:start].rstrip()} {text[end:].lstrip(' ,')}")


def _trim(text: str) -> str:
    """Without what a cut has left standing at the ends."""
    before = None
    while text != before:
        before, text = text, _LOOSE.sub("", text.strip(" ,;").rstrip(".")).strip()
    return text


def _name(left: str, command: str) -> str:
    said = _trim(re.sub(r"(?i)^(?:please )?(?:run|execute|start|call)\b", "", left)) if command else left
    name = said if said and said != command else command
    name = name if len(name) <= _MOST_NAME_CHARS else name[:_MOST_NAME_CHARS].rsplit(" ", 1)[0]
    return name[:1].upper() + name[1:] if name != command[: len(name)] else name


def _find_time(text: str, timezone: str, now: datetime) -> _Time | None:
    return _find_cron(text) or _find_plan(text) or _find_instant(text, timezone, now) or _find_clock(text)


def _find_cron(text: str) -> _Time | None:
    for match in _CRON.finditer(text):
        try:
            read_line(match[0])
        except Invalid:
            continue
        return _Time(*match.span(), "schedule", match[0])
    return None


def _find_plan(text: str) -> _Time | None:
    """A phrase of the schedule grammar, or one that it names a remedy for when there is no better."""
    refused = None
    for start, end in _spans(text, _STARTS_PLAN):
        said = _in_known_words(text[start:end].lower())
        try:
            if read_phrase(said) is not None:
                return _with_clock(text, _Time(start, end, "schedule", said))
        except Invalid:
            if re.search(r"every \d", said) and (refused is None or end - start < refused.end - refused.start):
                refused = _Time(start, end, "schedule", said)
    return refused


def _with_clock(text: str, plan: _Time) -> _Time:
    """A time of day that stands right before or after the phrase belongs to it."""
    if " at " in plan.text:
        return plan
    for clock in _CLOCK.finditer(text):
        is_near = text[clock.end() : plan.start].strip(" ,") == "" or text[plan.end : clock.start()].strip(" ,") == ""
        said = f"{plan.text} at {clock[1].lower()}"
        try:
            if is_near and read_phrase(said) is not None:
                return _Time(min(plan.start, clock.start()), max(plan.end, clock.end()), "schedule", said)
        except Invalid:
            continue
    return plan


def _find_instant(text: str, timezone: str, now: datetime) -> _Time | None:
    for start, end in _spans(text, _STARTS_INSTANT):
        said = text[start:end].removeprefix("on ")
        try:
            parse_instant(said, timezone, now)
        except Invalid:
            continue
        return _Time(start, end, "runAt", said)
    return None


def _find_clock(text: str) -> _Time | None:
    clock = _CLOCK.search(text)
    if clock is None or read_clock(clock[1]) is None:
        return None
    return _Time(*clock.span(), "schedule", f"daily at {clock[1].lower()}", NO_DAY)


def _spans(text: str, starter: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Runs of words that begin with such a word, the longest first; without the punctuation at their end."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for first, (start, end) in enumerate(words):
        if starter.fullmatch(text[start:end].lower().strip(",.;")):
            for last in range(min(len(words), first + _MOST_WORDS) - 1, first - 1, -1):
                stop = words[last][1]
                yield start, start + len(text[start:stop].rstrip(",.;"))


def _in_known_words(said: str) -> str:
    said = " ".join(_NUMBERS.get(word, word) for word in said.split())
    for pattern, known in _OTHER_WORDS:
        said = pattern.sub(known, said)
    return said
