"""The file tools of one project, as a session uses them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.files import file_tools
from agent.tools import ToolError, Workspace


class FileBench:
    """The tools of one project, and what the app was told before each edit."""

    def __init__(self, workspace: Workspace, before_edit: Callable[[str], None] | None = None) -> None:
        self.project = workspace.project
        self.told: list[str] = []
        self._tools = {tool.name: tool for tool in file_tools(workspace, before_edit or self.told.append)}

    def use(self, tool: str, **given: Any) -> str:
        return asyncio.run(self._call(tool, given))

    def refused(self, tool: str, **given: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.use(tool, **given)
        return str(caught.value)

    def put(self, name: str, text: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    async def _call(self, tool: str, given: dict[str, Any]) -> str:
        return await self._tools[tool].call(given)
