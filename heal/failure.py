"""A run that failed, as it is examined, and its output as lines."""

from dataclasses import dataclass, field

from heal.output import clean_lines, clean_text
from heal.places import Places

# Nothing that belongs together reaches over such a line.
_DIVIDER = "-"


@dataclass(frozen=True)
class Failure:
    """A failed run.  `stdout` and `stderr` are the ends of the streams, at most 256 KiB each.

    `stopped` says that the engine ended the run, and why: "timeout", "abort", "replace" or None.
    """

    command: str
    schedule: str
    exit_code: int | None
    signal: int | None
    spawn_error: str | None
    stopped: str | None
    timeout_secs: int
    stdout: bytes
    stderr: bytes
    cwd: str
    project: str | None
    path: str
    secrets: tuple[str, ...] = ()

    @property
    def places(self) -> Places:
        """The disk as this run saw it."""
        return Places(self.cwd, self.project, self.path)


@dataclass(frozen=True)
class Output:
    """What a run said, without secrets: why it did not start, standard error, standard output."""

    spawn: list[str]
    err: list[str]
    out: list[str]
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", [*self.spawn, _DIVIDER, *self.err, _DIVIDER, *self.out])

    @classmethod
    def of(cls, failure: Failure) -> "Output":
        spawn = [clean_text(failure.spawn_error, failure.secrets)] if failure.spawn_error else []
        return cls(spawn, clean_lines(failure.stderr, failure.secrets), clean_lines(failure.stdout, failure.secrets))

    @property
    def last(self) -> str:
        """The last words, rather of standard error; empty if there are none."""
        return next((line.strip() for line in reversed([*self.out, *self.err]) if line.strip()), "")
