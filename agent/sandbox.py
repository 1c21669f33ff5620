"""Bubblewrap."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.tools import Workspace


@dataclass(frozen=True)
class Completed:
    exit_code: int
    output: bytes
    timed_out: bool


class Sandbox:
    def run(
        self,
        workspace: Workspace,
        command: Sequence[str],
        *,
        writable: bool,
        cwd: Path,
        path: str = "",
        timeout_secs: float,
    ) -> Completed:
        raise NotImplementedError


def find_sandbox() -> Sandbox | None:
    return None


def refusal(workspace: Workspace, private: Sequence[Path]) -> str | None:
    return None
