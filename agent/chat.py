"""The process of one turn of an ordinary session: parked until `go`, then the model with the tools it was given.

python -P -m agent.chat
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

from agent import claude
from agent.files import file_tools
from agent.job_tools import job_tools
from agent.remote import Remote
from agent.sandbox import find_sandbox
from agent.shell import shell_tool
from agent.tools import Tool, Workspace
from agent.wire import Spec, open_wire

_PR_SET_DUMPABLE = 4


class Answering:
    """What has come of the turn: in an ordinary one the model's words, in a form what it filled in."""

    reminder: str | None = None

    def __init__(self) -> None:
        self.is_done = False
        self.gave_up: str | None = None
        self.filled: dict[str, Any] | None = None

    async def fill_in(self, given: dict[str, Any]) -> str:
        """Takes the filled form; the turn ends with it."""
        self.filled, self.is_done = given, True
        return "Taken."


def main() -> None:
    """One turn, from the spec on stdin to the `end` line on stdout."""
    # The key and the token are in this memory: no other process of the person may read it.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    wire = open_wire()
    spec = wire.parked()
    answering = Answering()
    end = claude.speak(spec, toolbox(spec, answering), wire, answering)
    wire.emit({"type": "end", **end, "filled": answering.filled})
    sys.stderr.flush()
    os._exit(0)


def toolbox(spec: Spec, answering: Answering) -> list[Tool]:
    """The tools of the turn, by what the spec allows: `files`, `shell`, `jobs`, or the schema of a `form`."""
    if "form" in spec.tools:
        return [
            Tool("fill_in", "Fill in the form. Leave out what was not said.", spec.tools["form"], answering.fill_in)
        ]
    workspace = Workspace(Path(spec.project), tuple(Path(path) for path in spec.forbidden), spec.secrets)
    tools: list[Tool] = []
    if spec.tools.get("files"):
        tools += file_tools(workspace, lambda _path: None)
    sandbox = find_sandbox() if spec.tools.get("shell") else None
    if sandbox is not None:
        tools.append(shell_tool(sandbox, workspace, prepare=lambda: True, changed=lambda _paths: None, path=spec.path))
    if spec.tools.get("jobs"):
        tools += job_tools(Remote(spec.api_url, spec.session_token))
    return tools


if __name__ == "__main__":
    main()
