"""The conversation with Claude, through the SDK's own tool runner.  The only importer of anthropic."""

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import anthropic
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool
from anthropic.lib.tools import ToolError as SdkToolError
from anthropic.types.beta import BetaMessage

from agent.prices import cost_usd
from agent.tools import Tool, ToolError
from agent.wire import Spec, Wire
from store.redaction import redact

REPLY_SECS = 150.0
"""The longest wait for one reply: the app takes three silent minutes for a hung session."""

STOP_LOOK_SECS = 0.2
SAME_STEPS = 4
SAME_ERRORS = 3
ANTHROPIC_HOST = "anthropic.com"

NUDGE = (
    "The schedule is still paused. If the fix is proven, call resume_schedule; if it cannot be repaired here, call "
    "give_up with the exact step a person has to take; else go on."
)
GO_ON = "Your reply was cut off. Go on from there, in shorter steps."


class Progress(Protocol):
    """What the tools of the session have brought about so far."""

    has_resumed: bool
    gave_up: str | None


class _Tool(BetaAsyncBuiltinFunctionTool):
    """One of our tools as the runner wants it."""

    def __init__(self, tool: Tool, secrets: Sequence[str]) -> None:
        self._tool = tool
        self._secrets = secrets

    def to_dict(self) -> Any:
        tool = self._tool
        return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}

    async def call(self, input: object) -> str:  # noqa: A002 - the runner's name
        given = input if isinstance(input, dict) else {}
        try:
            return redact(await self._tool.call(given), self._secrets) or "(nothing)"
        except ToolError as error:
            raise SdkToolError(redact(str(error), self._secrets)) from None
        except Exception as error:  # noqa: BLE001 - the runner would send repr(error), with whatever is in it
            raise SdkToolError(f"The tool failed ({type(error).__name__}).") from None


async def converse(spec: Spec, tools: Sequence[Tool], wire: Wire, progress: Progress, note: str = "") -> dict[str, Any]:
    """Speaks until the schedule is resumed or there is a reason to end; outcome, detail and usage for the app."""
    conversation = _Conversation(spec, tools, wire, progress)
    talk = asyncio.ensure_future(conversation.hold(note))
    stop = asyncio.ensure_future(_stopped(wire))
    done, _ = await asyncio.wait({talk, stop}, timeout=spec.limits["wallSecs"], return_when=asyncio.FIRST_COMPLETED)
    for task in (talk, stop):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
    if talk in done:
        outcome, detail = talk.result()
    else:
        outcome, detail = ("stopped", "") if stop in done else ("budget", "the time for one heal is over")
    return {"outcome": outcome, "detail": detail, "usage": conversation.usage}


async def _stopped(wire: Wire) -> None:
    # The flag belongs to the wire's thread, so there is no event of this loop to wait for.
    while not wire.stopped.is_set():  # noqa: ASYNC110
        await asyncio.sleep(STOP_LOOK_SECS)


class _Conversation:
    def __init__(self, spec: Spec, tools: Sequence[Tool], wire: Wire, progress: Progress) -> None:
        self._spec = spec
        self._wire = wire
        self._progress = progress
        self._tools = [_Tool(tool, spec.secrets) for tool in tools]
        self._messages: list[Any] = []
        self._turns = 0
        self._steps: deque[str] = deque(maxlen=SAME_STEPS)
        self._errors: deque[str] = deque(maxlen=SAME_ERRORS)
        self._model = str(spec.provider["model"])
        self.usage = {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0}

    async def hold(self, note: str) -> tuple[str, str]:
        """Outcome and detail.  The key is in no exception text: only kinds of errors leave here."""
        prompt = f"{self._spec.prompt}\n\nThe built-in playbook tried first: {note}" if note else self._spec.prompt
        try:
            async with _client(self._spec) as client:
                return await self._hold(client, prompt)
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError):
            return "provider_unavailable", "key refused"
        except (anthropic.APIStatusError, anthropic.APIConnectionError) as error:
            status = getattr(error, "status_code", None)
            return "provider_unavailable", f"{type(error).__name__}{f' {status}' if status else ''}"
        except TimeoutError:
            return "provider_unavailable", "no reply in time"

    async def _hold(self, client: AsyncAnthropic, prompt: str) -> tuple[str, str]:
        self._add_user(prompt)
        for reminder in (NUDGE, None):
            outcome = await self._run(client)
            if outcome is not None:
                return outcome
            if reminder is not None:
                self._add_user(reminder)
        return "no_resume", "the model ended its turn without resuming the schedule"

    def _add_user(self, text: str) -> None:
        content = [{"type": "text", "text": text}]
        self._messages.append({"role": "user", "content": content})
        self._emit("user", content)

    async def _run(self, client: AsyncAnthropic) -> tuple[str, str] | None:
        """Turns of the runner until something is decided; None when the model just ended its turn."""
        was_cut = False
        while True:
            outcome, stop_reason = await self._turns_of_one_runner(client)
            if outcome is not None or stop_reason != "max_tokens":
                return outcome
            if was_cut:
                return "failed", "the model's reply was cut off twice"
            was_cut = True
            self._add_user(GO_ON)

    async def _turns_of_one_runner(self, client: AsyncAnthropic) -> tuple[tuple[str, str] | None, str | None]:
        runner: Any = client.beta.messages.tool_runner(
            model=self._model,
            max_tokens=int(self._spec.limits["maxTokens"]),
            system=[{"type": "text", "text": self._spec.system, "cache_control": {"type": "ephemeral"}}],
            messages=list(self._messages),
            tools=self._tools,
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            thread=False,  # else only deltas are sent, which no other server than Anthropic's understands
            stream=_may_stream(self._spec),
        )
        items = runner.__aiter__()
        try:
            while True:
                try:
                    item = await asyncio.wait_for(anext(items), REPLY_SECS)
                except StopAsyncIteration:
                    return None, "end_turn"
                message: BetaMessage = await self._read(item)
                outcome = self._gate(message)
                if outcome is not None:
                    return outcome, None
                results = await runner.generate_tool_call_response()
                if results is None:
                    return None, message.stop_reason
                outcome = self._after_tools(results)
                if outcome is not None:
                    return outcome, None
        finally:
            await runner.close()

    async def _read(self, item: Any) -> BetaMessage:
        """The whole reply; of a streamed one its text is passed on as it comes."""
        if not hasattr(item, "get_final_message"):
            message: BetaMessage = item
        else:
            message = await self._read_stream(item)
        if message.stop_reason == "end_turn" and any(block.type == "tool_use" for block in message.content):
            message.stop_reason = "tool_use"  # gateways mislabel it, and the runner would drop the call
        content = [block.to_dict(mode="json") for block in message.content]
        self._messages.append({"role": "assistant", "content": content})
        self._count(message)
        self._emit("assistant", content, message)
        return message

    async def _read_stream(self, stream: Any) -> BetaMessage:
        told, unsent = time.monotonic(), ""
        async for event in stream:
            if event.type == "text":
                unsent += event.text
                if time.monotonic() - told >= 0.25:
                    self._wire.emit({"type": "delta", "text": redact(unsent, self._spec.secrets)})
                    told, unsent = time.monotonic(), ""
        message: BetaMessage = await stream.get_final_message()
        return message

    def _gate(self, message: BetaMessage) -> tuple[str, str] | None:
        """Checked before the tools of a reply run."""
        self._turns += 1
        if message.stop_reason == "refusal":
            return "model_refused", ""
        if self._turns > int(self._spec.limits["turns"]):
            return "budget", f"more than {self._spec.limits['turns']} turns"
        if self.usage["costUsd"] > float(self._spec.limits["budgetUsd"]):
            return "budget", f"more than ${self._spec.limits['budgetUsd']}"
        return None

    def _after_tools(self, results: dict[str, Any]) -> tuple[str, str] | None:
        content: list[Any] = list(results["content"])
        self._messages.append({"role": "user", "content": content})
        self._emit("user", content)
        if self._progress.has_resumed:
            return "done", "the fix is proven and the schedule resumed"
        if self._progress.gave_up is not None:
            return "gave_up", self._progress.gave_up
        return ("no_progress", "the same step again and again") if self._is_stuck(content) else None

    def _is_stuck(self, results: list[Any]) -> bool:
        calls = [block for block in self._messages[-2]["content"] if block.get("type") == "tool_use"]
        step = json.dumps([[(c["name"], c["input"]) for c in calls], [r.get("content") for r in results]], default=str)
        self._steps.append(step)
        errors = [str(result.get("content")) for result in results if result.get("is_error")]
        self._errors.append(errors[0] if errors else f"no error {self._turns}")
        same_step = len(self._steps) == SAME_STEPS and len(set(self._steps)) == 1
        return same_step or (len(self._errors) == SAME_ERRORS and len(set(self._errors)) == 1)

    def _count(self, message: BetaMessage) -> None:
        usage = {key: value for key, value in message.usage.to_dict().items() if isinstance(value, int)}
        cached = usage.get("cache_creation_input_tokens", 0) + usage.get("cache_read_input_tokens", 0)
        self.usage["inputTokens"] += usage.get("input_tokens", 0) + cached
        self.usage["outputTokens"] += usage.get("output_tokens", 0)
        self.usage["costUsd"] += cost_usd(self._model, usage) or 0.0

    def _emit(self, role: str, content: list[Any], message: BetaMessage | None = None) -> None:
        line: dict[str, Any] = {"type": "message", "role": role, "provider": "claude", "content": content}
        if message is not None:
            line |= {"usage": message.usage.to_dict(), "model": message.model, "stopReason": message.stop_reason}
        self._wire.emit(line)


def _client(spec: Spec) -> AsyncAnthropic:
    """Key or token, exactly one, given explicitly: the SDK must not look for others by itself."""
    provider = spec.provider
    base_url = provider["baseUrl"]
    # A proxy of the environment would be asked for loopback addresses too.
    http_client = DefaultAsyncHttpxClient(trust_env=False) if _is_loopback(base_url) else None
    key: dict[str, Any] = (
        {"api_key": provider["apiKey"]} if provider["apiKey"] else {"auth_token": provider["authToken"]}
    )
    return AsyncAnthropic(**key, base_url=base_url, max_retries=2, timeout=REPLY_SECS, http_client=http_client)


def _is_loopback(base_url: str | None) -> bool:
    return base_url is not None and urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def _may_stream(spec: Spec) -> bool:
    """Streams only where it is known to be right: other servers end streamed tool calls with the wrong word."""
    base_url = spec.provider["baseUrl"]
    host = urlsplit(base_url).hostname or "" if base_url else ANTHROPIC_HOST
    return bool(spec.provider.get("stream", host == ANTHROPIC_HOST or host.endswith(f".{ANTHROPIC_HOST}")))
