"""A job as a person writes it down, checked field by field before anything is stored."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from scheduler.conditions import read_condition
from store.errors import Invalid
from store.settings import POOL_NAME

MOST_COMMAND_BYTES = 131_071
"""Linux takes no longer single argument than this (MAX_ARG_STRLEN less its NUL)."""

MOST_PROMPT_CHARS = 20_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _plain_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


Text = Annotated[str, AfterValidator(_plain_text)]
Seconds = Annotated[int, Field(ge=1, le=31_536_000, strict=True)]


class JobDraft(BaseModel):
    """The fields of a job that a person sets.  Names on the outside are camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=False)

    name: Text
    command: Text | None = None
    recipe: Text | None = None
    prompt: Text | None = None
    schedule: Text | None = None
    run_at: Text | None = None
    timezone: Text | None = None
    project: Text | int | None = None
    project_id: int | None = None
    cwd: Text | None = None
    env: dict[Text, Text] = Field(default_factory=dict)
    overlap: Literal["skip", "queue", "parallel", "replace"] = "skip"
    catch_up: Literal["skip", "once", "all"] = "once"
    catch_up_max_age_secs: Seconds | None = None
    jitter_secs: Annotated[int, Field(ge=0, le=86_400, strict=True)] = 0
    timeout_secs: Seconds | None = None
    retries: Annotated[int, Field(ge=0, le=100, strict=True)] = 0
    retry_backoff_secs: Annotated[int, Field(ge=0, le=86_400, strict=True)] = 30
    retry_on: list[Annotated[int, Field(ge=1, le=255, strict=True)]] = Field(default_factory=list)
    pool: Text | None = None
    effects: Literal["none", "idempotent", "external", "unknown"] = "unknown"
    verify_command: Text | None = None
    cleanup_command: Text | None = None
    expect_within_secs: Seconds | None = None
    success_when: list[Text] = Field(default_factory=list)
    require_approval: bool = False
    healing_enabled: bool = True
    deliver_to: Text | None = None
    tags: list[Text] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _named(cls, value: str) -> str:
        value = value.strip()
        if not value:
            raise ValueError("must not be empty; give the job a name")
        if len(value) > 200 or not value.isprintable():
            raise ValueError("must be one line of at most 200 characters")
        return value

    @field_validator("prompt")
    @classmethod
    def _asked(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.strip():
            raise ValueError("must not be empty; write what Claude is to do")
        if len(value) > MOST_PROMPT_CHARS:
            raise ValueError(f"is {len(value):,} characters; at most {MOST_PROMPT_CHARS:,} are taken")
        return value.strip()

    @field_validator("command", "verify_command", "cleanup_command")
    @classmethod
    def _runnable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip()
        if not value:
            raise ValueError("must not be empty; write the shell line to run")
        if len(value.encode()) > MOST_COMMAND_BYTES:
            raise ValueError(
                f"is {len(value.encode()):,} bytes; the system takes at most {MOST_COMMAND_BYTES:,}. "
                "Put it into a script file and name the file here"
            )
        return value

    @field_validator("env")
    @classmethod
    def _environment(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _NAME.match(name):
                raise ValueError(f"{name!r} is not a variable name; use letters, digits and _")
            if name.startswith(("CRONMEND_", "ANTHROPIC_")):
                raise ValueError(f"{name} is reserved; choose another name")
        return value

    @field_validator("success_when")
    @classmethod
    def _conditions(cls, value: list[str]) -> list[str]:
        return list(dict.fromkeys(read_condition(text) for text in value if text.strip()))

    @field_validator("retry_on")
    @classmethod
    def _codes(cls, value: list[int]) -> list[int]:
        return sorted(set(value))

    @field_validator("pool")
    @classmethod
    def _pooled(cls, value: str | None) -> str | None:
        if value is not None and not POOL_NAME.fullmatch(value):
            raise ValueError("must be one word of letters, digits, ., - and _")
        return value

    @field_validator("tags")
    @classmethod
    def _labels(cls, value: list[str]) -> list[str]:
        return sorted({tag.strip() for tag in value if tag.strip()})


def read_draft(body: dict[str, Any]) -> JobDraft:
    """The draft in `body`; raises Invalid with the first field that cannot be accepted, and why."""
    try:
        draft = JobDraft.model_validate(body)
    except ValidationError as error:
        raise _as_invalid(error) from None
    _check_target(draft)
    _refuse_what_is_not_there_yet(draft)
    return draft


def _as_invalid(error: ValidationError) -> Invalid:
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "body"
    if first["type"] == "extra_forbidden":
        return Invalid(field, f"{field}: there is no such field of a job.")
    if first["type"] == "missing":
        return Invalid(field, f"{field}: is missing.")
    message = first["msg"].removeprefix("Value error, ")
    return Invalid(field, f"{field}: {message[0].lower()}{message[1:]}.")


def _check_target(draft: JobDraft) -> None:
    targets = [name for name in ("command", "recipe", "prompt") if getattr(draft, name) is not None]
    if not targets:
        raise Invalid("command", "command: is missing; write the shell line to run, or give a prompt.")
    if len(targets) > 1:
        raise Invalid(targets[1], f"{targets[1]}: a job has one target; leave out {targets[0]} or {targets[1]}.")
    for_commands = {
        "successWhen": (bool(draft.success_when), "the answer of a prompt is its result"),
        "cleanupCommand": (draft.cleanup_command is not None, "a prompt can be told to clean up"),
        "retryOn": (bool(draft.retry_on), "a prompt has no exit code"),
    }
    for field, (is_given, why) in for_commands.items():
        if draft.prompt is not None and is_given:
            raise Invalid(field, f"{field}: is for commands; {why}.")
    if (draft.schedule is None) == (draft.run_at is None):
        raise Invalid("schedule", "schedule: give either a schedule or a single time (runAt, --at).")


def _refuse_what_is_not_there_yet(draft: JobDraft) -> None:
    asked = {
        "recipe": draft.recipe is not None,
        "deliverTo": draft.deliver_to is not None,
    }
    for field, wanted in asked.items():
        if wanted:
            raise Invalid(field, f"{field}: this version cannot do that yet; leave it out.")


def existing_folder(field: str, text: str, base: Path | None = None) -> Path:
    """The absolute folder meant by `text`; raises Invalid when there is none."""
    path = Path(text).expanduser()
    if not path.is_absolute():
        if base is None:
            raise Invalid(field, f"{field}: {text} is not an absolute path; write it in full.")
        path = base / path
    if not path.is_dir():
        raise Invalid(field, f"{field}: there is no folder {path}; create it or name another.")
    return path.resolve()
