"""One conversation with the scripted Claude, in this process, with a few small tools."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

from support.claude_server import call
from support.session_bench import KEY, make_spec

from agent.claude import converse
from agent.tools import Tool, ToolError
from agent.wire import Spec, Wire
from heal.tools import REMINDER

LEAK = f"the key is {KEY}"
ANSWERS = {"resume_schedule": "The schedule is active again.", "leak": LEAK, "look": "nothing new"}


class Talk:
    """One conversation with a few small tools; what it said to the app, and what the tools were given."""

    def __init__(self, claude_url: str, **changes: Any) -> None:
        provider = {"apiKey": KEY, "baseUrl": claude_url, **changes.pop("provider", {})}
        self.spec: Spec = make_spec(Path("/nowhere"), provider=provider, **changes)
        self.is_done = False
        self.gave_up: str | None = None
        self.reminder: str | None = REMINDER
        self.given: list[tuple[str, dict[str, Any]]] = []
        self._said = io.StringIO()
        self.wire = Wire(io.StringIO(), self._said)

    def hold(self, note: str = "") -> dict[str, Any]:
        tools = [self._tool(name) for name in ("look", "leak", "fail", "crash", "resume_schedule", "give_up")]
        return asyncio.run(converse(self.spec, tools, self.wire, self, note))

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._said.getvalue().splitlines()]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == "message"]

    def _tool(self, name: str) -> Tool:
        async def answer(given: dict[str, Any]) -> str:
            self.given.append((name, given))
            if name == "fail":
                raise ToolError(f"no such thing ({LEAK})")
            if name == "crash":
                raise RuntimeError(LEAK)
            if name == "resume_schedule":
                self.is_done = True
            if name == "give_up":
                self.gave_up = given["reason"]
            return ANSWERS.get(name, "done")

        return Tool(name, f"The tool {name}.", {"type": "object", "properties": {}}, answer)


RESUME = [call("resume_schedule", root_cause="r", fix="f")]


def results(body: dict[str, Any]) -> list[Any]:
    """What the tools answered, as the model reads it in the last message."""
    return [block["content"] for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]
