"""What a playbook rule looks at and what it answers.  Standard library only: it runs in a small, quick child."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Case:
    """A failed run, as the playbook sees it.  Paths are absolute and real; `run_started_at` is in epoch seconds."""

    project: str
    cwd: str
    command: str
    path: str
    exit_code: int | None = None
    signal: int | None = None
    spawn_error: str | None = None
    stdout_tail: str = ""
    stderr_tail: str = ""
    category: str = "unknown"
    cause: str = ""
    run_started_at: float = 0.0
    forbidden: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "forbidden": list(self.forbidden)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Case":
        return cls(**{**data, "forbidden": tuple(data.get("forbidden", ()))})


@dataclass(frozen=True)
class Repair:
    """A change that a rule can make.

    `paths`: the files and folders it will touch, relative to the project, so that they are saved first.
    `apply` checks once more that the case is as it was looked at, and raises ValueError with a sentence if not.
    """

    paths: tuple[str, ...]
    summary: str
    apply: Callable[[], None]


@dataclass(frozen=True)
class Verdict:
    """What a rule says: it can repair, only waiting helps, or only a person can (`step` says exactly how)."""

    kind: Literal["repair", "wait", "tell"]
    rule: str
    cause: str
    explanation: str
    step: str | None = None
    repair: Repair | None = None
