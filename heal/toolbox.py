"""All tools of a heal session that speaks with a model."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.files import file_tools
from agent.sandbox import find_sandbox
from agent.shell import shell_tool
from agent.tools import Tool, ToolError, Workspace
from agent.wire import Spec, Wire
from heal.tools import Act, Healing


def toolbox(spec: Spec, wire: Wire, healing: Healing) -> list[Tool]:
    """File tools, bash where a sandbox can be had, and the healing tools."""
    workspace = Workspace(Path(spec.project), tuple(Path(path) for path in spec.forbidden), spec.secrets)

    def before_edit(path: str) -> None:
        wire.ask("edit", paths=[path], by="tool")

    def prepare() -> bool:
        return bool(wire.ask("shell")["writable"])

    def changed(paths: Sequence[str]) -> None:
        wire.emit({"type": "changed", "paths": list(paths)})

    tools = file_tools(workspace, before_edit)
    sandbox = find_sandbox() if spec.tools.get("bash") else None
    if sandbox is not None:
        tools.append(shell_tool(sandbox, workspace, prepare=prepare, changed=changed, path=spec.path))
    return [*tools, *(_tool(act) for act in healing.acts())]


def _tool(act: Act) -> Tool:
    schema = {
        "type": "object",
        "properties": {text: {"type": "string", "description": what} for text, what in act.texts.items()},
        "required": list(act.texts),
        "additionalProperties": False,
    }

    async def call(given: dict[str, Any]) -> str:
        missing = [text for text in act.texts if not isinstance(given.get(text), str)]
        if missing:
            raise ToolError(f"{missing[0]} is missing; it must be text.")
        try:
            return await asyncio.to_thread(act.do, given)
        except OSError as error:
            raise ToolError(f"The app does not answer ({type(error).__name__}).") from None

    return Tool(act.name, act.description, schema, call)
