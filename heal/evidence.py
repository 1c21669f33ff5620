"""The evidence of a failed run: what is known about it, in the words a person and a model can use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heal.conclusion import conclude
from heal.failure import Failure as Failure
from heal.failure import Output
from heal.output import clean_text

TAIL_LINES = 50
MOST_CAUSE_CHARS = 300


@dataclass(frozen=True)
class Evidence:
    """What is kept with the run.  `hits` are short stable words, in the order in which they were found."""

    command: str
    schedule: str
    exit_code: int | None
    signal: int | None
    spawn_error: str | None
    hits: tuple[str, ...]
    stdout_tail: str
    stderr_tail: str
    category: str
    cause: str

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "schedule": self.schedule,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "spawnError": self.spawn_error,
            "hits": list(self.hits),
            "stdoutTail": self.stdout_tail,
            "stderrTail": self.stderr_tail,
            "category": self.category,
            "cause": self.cause,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Evidence":
        return cls(
            command=data["command"],
            schedule=data["schedule"],
            exit_code=data["exitCode"],
            signal=data["signal"],
            spawn_error=data["spawnError"],
            hits=tuple(data["hits"]),
            stdout_tail=data["stdoutTail"],
            stderr_tail=data["stderrTail"],
            category=data["category"],
            cause=data["cause"],
        )


def examine(failure: Failure) -> Evidence:
    """Reads the output for known signs, names the cause, and takes every secret out.  Any bytes will do."""
    output = Output.of(failure)
    (category, cause), found = conclude(failure, output)

    def kept(text: str) -> str:
        return clean_text(text, failure.secrets)

    return Evidence(
        command=kept(failure.command),
        schedule=kept(failure.schedule),
        exit_code=failure.exit_code,
        signal=failure.signal,
        spawn_error=output.spawn[0] if output.spawn else None,
        hits=tuple(dict.fromkeys(one.hit for one in found)),
        stdout_tail="\n".join(output.out[-TAIL_LINES:]),
        stderr_tail="\n".join(output.err[-TAIL_LINES:]),
        category=category,
        # One line: a command of several lines may be part of it.
        cause=" ".join(kept(cause).split())[:MOST_CAUSE_CHARS],
    )
