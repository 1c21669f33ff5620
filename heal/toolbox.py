"""All tools of a heal session that speaks with a model."""

from collections.abc import Sequence
from pathlib import Path

from agent.files import file_tools
from agent.sandbox import find_sandbox
from agent.shell import shell_tool
from agent.tools import Tool, Workspace
from agent.wire import Spec, Wire
from heal.tools import Healing


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
    return [*tools, *healing.tools()]
