"""The bash tool: one command at a time, in the sandbox, with what it changed told to the app."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.sandbox import WITHOUT_WRITES, Completed, Sandbox
from agent.tools import Tool, ToolError, Workspace
from store.redaction import redact

COMMAND_SECS = 120.0

Look = dict[str, tuple[int, int, int, int]]
"""Of each file: size, time of change in nanoseconds, mode, inode."""


def shell_tool(
    sandbox: Sandbox,
    workspace: Workspace,
    *,
    prepare: Callable[[], bool],
    changed: Callable[[list[str]], None],
    path: str,
) -> Tool:
    """`prepare` is called once before the first command and says whether commands may change the project.

    `changed` is called after each command that did, with paths relative to the project.
    """
    shell = shutil.which("bash") or "/bin/sh"
    writable: list[bool] = []

    def act(command: str) -> Completed:
        if not writable:
            writable.append(prepare())
        before = _look(workspace)
        done = sandbox.run(
            workspace,
            [shell, "-c", command],
            writable=writable[0],
            cwd=workspace.project,
            path=path,
            timeout_secs=COMMAND_SECS,
        )
        after = _look(workspace)
        different = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if different:
            changed(different)
        return done

    async def call(given: dict[str, Any]) -> str:
        command = given.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            raise ToolError("command is missing; it must be a shell line.")
        done = await asyncio.to_thread(act, command)
        text = redact(done.output.decode(errors="replace"), workspace.secrets).rstrip("\n")
        if done.timed_out:
            raise ToolError(f"{text}\nended after {COMMAND_SECS:.0f} s".strip())
        if done.exit_code:
            return f"{text}\nexit code {done.exit_code}".strip()
        return text or "(no output)"

    schema = {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "A shell line."}},
        "required": ["command"],
        "additionalProperties": False,
    }
    about = "Run a shell line in the project folder, in a sandbox: no network, nothing else of the machine in view."
    return Tool("bash", about, schema, call)


def _look(workspace: Workspace) -> Look:
    found: Look = {}
    for folder, names, files in os.walk(workspace.project):
        names[:] = [name for name in names if not _is_left_out(workspace, Path(folder, name))]
        for name in files:
            path = Path(folder, name)
            try:
                facts = path.lstat()
            except OSError:
                continue
            key = path.relative_to(workspace.project).as_posix()
            found[key] = (facts.st_size, facts.st_mtime_ns, facts.st_mode, facts.st_ino)
    return found


def _is_left_out(workspace: Workspace, folder: Path) -> bool:
    return folder.name in WITHOUT_WRITES or (folder / "pyvenv.cfg").is_file() or folder in workspace.forbidden
