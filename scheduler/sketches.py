"""Create a job with AI: a sentence becomes the fields of a job, to be looked over and saved by a person."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from scheduler.instants import parse_instant
from scheduler.schedule import Schedule
from scheduler.sentences import MOST_CHARS, NO_COMMAND, NO_TIME, read_sentence
from store.errors import Invalid
from store.projects import Project

FillIn = Callable[[str, str, dict[str, Any]], dict[str, Any] | None]

TARGETS = {"command", "prompt"}
TIMES = {"schedule", "runAt"}
BY_CLAUDE = "claude"
BY_WORDS = "words"
MOST_FIELD_CHARS = 4_000

SYSTEM = """\
You fill in the form of a scheduled job from what a person says. Call fill_in once. Leave out every field that the \
sentence does not settle: a person looks over the form, completes and saves it; nothing runs by this. A job either \
runs a shell command (use command) or is a task for Claude with files of a project (use prompt), never both. Never \
invent paths, addresses or options that the sentence does not name."""

_TEXTS = {
    "name": "A short name, at most 60 characters.",
    "command": "The one shell line to run, if the sentence names a program, script or command.",
    "prompt": "What Claude is to do at each run, if the sentence asks for reading, thinking or writing, not a program.",
    "schedule": "When it repeats: 'every 30m', 'every 2 hours', 'daily at 9am', 'weekdays at 18:15', 'mondays and "
    "fridays at 9am', 'monthly', or five cron fields.",
    "runAt": "A single time in place of a schedule: 'tomorrow 09:00', 'in 10 minutes', '2027-01-31T06:00'.",
    "project": "The folder it belongs to, as the sentence names it, or that of a known project which it clearly means.",
    "verifyCommand": "A command without side effects that proves the job works, if the sentence names one.",
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string", "description": said} for name, said in _TEXTS.items()},
        "effects": {
            "type": "string",
            "enum": ["none", "idempotent", "external", "unknown"],
            "description": "none: running it twice does no harm; idempotent: twice is as once; external: mail, "
            "payment, push, webhook; unknown when the sentence does not settle it.",
        },
    },
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Sketch:
    """Fields of a job under their JSON names, never saved; who read them; what a person must still look at."""

    fields: Mapping[str, str]
    by: str
    notes: Sequence[str]


def sketch(text: str, fill_in: FillIn | None, known: Sequence[Project], timezone: str, now: datetime) -> Sketch:
    """What the sentence says, read by the model where there is one, else by its words alone.

    Raises Invalid "text" for an empty or an overlong one.
    """
    text = text.strip()
    if not text:
        raise Invalid("text", "text: is empty; say what is to run, and when.")
    if len(text) > MOST_CHARS:
        raise Invalid("text", f"text: is {len(text):,} characters; at most {MOST_CHARS:,} are taken.")
    said = read_sentence(text, timezone, now)
    filled = fill_in(SYSTEM, _request(text, known), SCHEMA) if fill_in else None
    read = {name: value for name, value in (filled or {}).items() if _is_field(name, value)}
    if not read:
        late = ["Claude gave no answer in time; this is what the words alone say."] if fill_in else []
        return _checked(said.fields, BY_WORDS, [*late, *said.notes], timezone, now)
    settled = {name for group in (TARGETS, TIMES) if read.keys() & group for name in group}
    fields = {name: value for name, value in said.fields.items() if name not in settled} | read
    missing = [NO_COMMAND] * (not fields.keys() & TARGETS) + [NO_TIME] * (not fields.keys() & TIMES)
    return _checked(fields, BY_CLAUDE, missing, timezone, now)


def _request(text: str, known: Sequence[Project]) -> str:
    folders = "\n".join(f"- {project.name}: {project.folder_path}" for project in known if not project.is_workspace)
    return f"Known projects:\n{folders or '(none)'}\n\nThe sentence:\n{text}"


def _is_field(name: str, value: Any) -> bool:
    is_text = isinstance(value, str) and bool(value.strip()) and len(value) <= MOST_FIELD_CHARS and "\0" not in value
    return is_text and (name in _TEXTS or (name == "effects" and value in SCHEMA["properties"]["effects"]["enum"]))


def _checked(fields: Mapping[str, str], by: str, notes: list[str], timezone: str, now: datetime) -> Sketch:
    """The fields as they are, with a note on each that could not be saved."""
    kept = dict(fields)
    if kept.get("command") and kept.get("prompt"):
        del kept["command"]
    if kept.get("schedule") and kept.get("runAt"):
        del kept["runAt"]
    try:
        if "schedule" in kept:
            Schedule.parse(kept["schedule"], timezone)
        if "runAt" in kept:
            parse_instant(kept["runAt"], timezone, now, field="runAt")
    except Invalid as problem:
        notes = [*notes, problem.message]
    if "project" in kept:
        folder = Path(kept["project"]).expanduser()
        kept["project"] = str(folder)
        if not folder.is_absolute() or not folder.is_dir():
            notes = [*notes, f"There is no folder {folder}: choose the project."]
    return Sketch(kept, by, notes)
