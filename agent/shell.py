"""The bash tool: one command at a time, in the sandbox, with what it changed told to the app."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.capture import Completed
from agent.files import capped
from agent.sandbox import Sandbox
from agent.terrain import is_sealed
from agent.tools import Tool, ToolError, Workspace
from store.redaction import redact

COMMAND_SECS = 120.0

Look = dict[str, tuple[int, ...]]
"""Of each file: size, times of change in nanoseconds, mode, inode; of each folder and other thing: mode, inode."""


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
    shell = _Shell(sandbox, workspace, prepare, changed, path)
    schema = {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "A shell line."}},
        "required": ["command"],
        "additionalProperties": False,
    }
    about = (
        "Run a shell line in the project folder, in a sandbox: no network, nothing else of the machine in view, "
        f"nothing running on afterwards; at most {COMMAND_SECS:.0f} s."
    )
    return Tool("bash", about, schema, shell.call)


class _Shell:
    def __init__(
        self,
        sandbox: Sandbox,
        workspace: Workspace,
        prepare: Callable[[], bool],
        changed: Callable[[list[str]], None],
        path: str,
    ) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._prepare = prepare
        self._changed = changed
        self._path = path
        self._program = next((name for name in ("/bin/bash", "/usr/bin/bash") if Path(name).exists()), "/bin/sh")
        self._is_writable: bool | None = None
        self._left_out: frozenset[str] = frozenset()

    async def call(self, given: dict[str, Any]) -> str:
        command = given.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            raise ToolError("command is missing; it must be a shell line.")
        try:
            done = await asyncio.to_thread(self._run, command)
        except OSError as error:
            raise ToolError(f"bash: the command could not be started: {os.strerror(error.errno or 0)}.") from None
        text = capped(redact(done.output.decode(errors="replace"), self._workspace.secrets)).rstrip("\n")
        if done.timed_out:
            raise ToolError(f"{text}\nended after {COMMAND_SECS:.0f} s".strip())
        if done.exit_code:
            return f"{text}\nexit code {done.exit_code}".strip()
        return text or "(no output)"

    def _run(self, command: str) -> Completed:
        if self._is_writable is None:
            self._is_writable = self._prepare()
            # Once: a command that makes a folder look like an environment hides nothing by that.
            self._left_out = frozenset(_folders_left_out(self._workspace))
        before = self._look()
        try:
            return self._sandbox.run(
                self._workspace,
                [self._program, "-c", command],
                writable=self._is_writable,
                cwd=self._workspace.project,
                path=self._path,
                timeout_secs=COMMAND_SECS,
            )
        finally:
            after = self._look()
            different = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            if different:
                self._changed(different)

    def _look(self) -> Look:
        if not self._is_writable:
            return {}
        found: Look = {}
        project = str(self._workspace.project)
        waiting = [project]
        while waiting:
            for entry in _entries(waiting.pop()):
                if entry.path in self._left_out:
                    continue
                found[entry.path[len(project) + 1 :]] = _facts(entry)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []


def _facts(entry: os.DirEntry[str]) -> tuple[int, ...]:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return ()
    if not entry.is_file(follow_symlinks=False):
        return facts.st_mode, facts.st_ino
    # The second time is the kernel's own: a command cannot set it back, as it can the first.
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_mode, facts.st_ino


def _folders_left_out(workspace: Workspace) -> list[str]:
    """Sealed and forbidden places as they are before the first command."""
    found = [str(path) for path in workspace.forbidden]
    waiting = [str(workspace.project)]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False) and entry.path not in found:
                if is_sealed(Path(entry.path)):
                    found.append(entry.path)
                else:
                    waiting.append(entry.path)
    return found
