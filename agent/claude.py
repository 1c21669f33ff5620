"""The conversation with Claude, through the SDK's own tool runner.  The only importer of anthropic."""

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
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
from store.redaction import MARK, redact

log = logging.getLogger("cron-heal")

REPLY_SECS = 150.0
"""The longest wait for one reply: the app takes three silent minutes for a hung session."""

STOP_LOOK_SECS = 0.2
DELTA_SECS = 0.25
SAME_STEPS = 4
SAME_ERRORS = 3
SHORTEST_SECRET = 6
MOST_REASON_CHARS = 200
MOST_BREAKS = 2
ANTHROPIC_HOST = "anthropic.com"

GO_ON = "Your reply was cut off. Go on from there, in shorter steps."

End = tuple[str, str]
"""Outcome and detail."""


class _BrokeOff(Exception):  # noqa: N818 - what has happened
    """A stream ended before its reply did; the SDK asks again only for replies that are not streamed."""


class Progress(Protocol):
    """What the tools of the session have brought about so far."""

    is_done: bool
    gave_up: str | None
    reminder: str | None
    """What a model is told that ends its turn with nothing done; None where its words are what was asked for."""


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


def speak(spec: Spec, tools: Sequence[Tool], wire: Wire, progress: Progress, note: str = "") -> dict[str, Any]:
    """`converse` for a process that ends with it."""
    # At its end asyncio.run waits for threads, and one of them may wait for the end of a run.
    loop = asyncio.new_event_loop()
    return loop.run_until_complete(converse(spec, tools, wire, progress, note))


async def converse(spec: Spec, tools: Sequence[Tool], wire: Wire, progress: Progress, note: str = "") -> dict[str, Any]:
    """Speaks until the schedule is resumed or there is a reason to end; outcome, detail and usage for the app."""
    conversation = _Conversation(spec, tools, wire, progress)
    talk = asyncio.ensure_future(conversation.hold(note))
    stop = asyncio.ensure_future(_stopped(wire))
    done, _ = await asyncio.wait({talk, stop}, timeout=spec.limits["wallSecs"], return_when=asyncio.FIRST_COMPLETED)
    for task in (talk, stop):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
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
        self._secrets = _secrets_of(spec)
        self._tools = [_Tool(tool, self._secrets) for tool in tools]
        self._messages: list[Any] = [dict(message) for message in spec.history]
        self._turns = 0
        self._loops = _LoopDetector()
        self._model = str(spec.provider["model"])
        self.usage = {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0}

    async def hold(self, note: str) -> End:
        """The whole conversation.  No error leaves here, so that nothing in its text can either."""
        prompt = f"{self._spec.prompt}\n\nThe built-in playbook tried first: {note}" if note else self._spec.prompt
        try:
            async with _client(self._spec, self._secrets) as client:
                return await self._hold(client, prompt)
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError):
            return "provider_unavailable", "key refused"
        except anthropic.APIError as error:
            return "provider_unavailable", redact(_reason(error), self._secrets)
        except TimeoutError:
            return "provider_unavailable", "no reply in time"
        except Exception as error:  # noqa: BLE001 - a server that is not the real one may answer anything
            log.warning("[cron-heal] the conversation broke off: %s", type(error).__name__)
            return "provider_unavailable", f"the reply could not be understood ({type(error).__name__})"

    async def _hold(self, client: AsyncAnthropic, prompt: str) -> End:
        if prompt:
            self._add_user(prompt)
        end = await self._run(client)
        if end is None and self._progress.reminder is None:
            return "answered", ""
        if end is None:
            self._add_user(str(self._progress.reminder))
            end = await self._run(client)
        return end or ("no_resume", "the model ended its turn without resuming the schedule")

    def _add_user(self, text: str) -> None:
        content = [{"type": "text", "text": text}]
        if self._messages and self._messages[-1]["role"] == "user":
            # The model said nothing in between, and two messages of one side may not follow each other.
            self._messages[-1]["content"] = [*self._messages[-1]["content"], *content]
        else:
            self._messages.append({"role": "user", "content": content})
        self._emit("user", content)

    async def _run(self, client: AsyncAnthropic) -> End | None:
        """Runners until something is decided; None when the model just ended its turn."""
        was_cut, breaks = False, 0
        while True:
            try:
                end, stop_reason = await self._turns_of_one_runner(client)
            except _BrokeOff:
                breaks += 1
                if breaks > MOST_BREAKS:
                    return "provider_unavailable", "the reply broke off"
                continue
            if end is not None or stop_reason != "max_tokens":
                return end
            if was_cut:
                return "failed", "the model's reply was cut off twice"
            was_cut = True
            self._add_user(GO_ON)

    async def _turns_of_one_runner(self, client: AsyncAnthropic) -> tuple[End | None, str | None]:
        runner = self._runner(client)
        items = runner.__aiter__()
        try:
            while True:
                end = self._spent()
                if end is not None:
                    return end, None
                try:
                    item = await asyncio.wait_for(anext(items), REPLY_SECS)
                except StopAsyncIteration:
                    return None, "end_turn"
                message: BetaMessage = await self._read(item)
                end, results = await self._answer(runner, message)
                if end is not None or results is None:
                    return end, message.stop_reason
        finally:
            await runner.close()

    def _runner(self, client: AsyncAnthropic) -> Any:
        is_anthropic = _is_anthropic(self._spec)
        cache: Any = {"type": "ephemeral"}
        return client.beta.messages.tool_runner(
            model=self._model,
            max_tokens=int(self._spec.limits["maxTokens"]),
            system=[{"type": "text", "text": self._spec.system, "cache_control": cache}],
            messages=list(self._messages),
            tools=self._tools,
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            cache_control=cache if is_anthropic else anthropic.omit,
            thread=False,  # else only deltas are sent, which no other server than Anthropic's understands
            stream=bool(self._spec.provider.get("stream", is_anthropic)),
        )

    def _spent(self) -> End | None:
        """Checked before every request: nothing is asked once a limit is reached."""
        limits = self._spec.limits
        if self._turns >= int(limits["turns"]):
            return "budget", f"{limits['turns']} turns were not enough"
        if self.usage["costUsd"] >= float(limits["budgetUsd"]):
            return "budget", f"${limits['budgetUsd']} were not enough"
        return None

    async def _read(self, item: Any) -> BetaMessage:
        """The whole reply; of a streamed one its text is passed on as it comes."""
        message = await self._read_stream(item) if hasattr(item, "get_final_message") else item
        self._turns += 1
        uses_tool = any(block.type == "tool_use" for block in message.content)
        if uses_tool and message.stop_reason in ("end_turn", "stop_sequence", None):
            message.stop_reason = "tool_use"  # gateways mislabel it, and the runner would drop the call
        content = _whole_blocks(message)
        if content:
            self._messages.append({"role": "assistant", "content": content})
        self._count(message)
        self._emit("assistant", content, message)
        return message

    async def _read_stream(self, stream: Any) -> BetaMessage:
        told, unsent = time.monotonic(), ""
        try:
            async for event in stream:
                if event.type == "text":
                    unsent += event.text
                    if time.monotonic() - told >= DELTA_SECS:
                        self._wire.emit({"type": "delta", "text": redact(unsent, self._secrets)})
                        told, unsent = time.monotonic(), ""
            message: BetaMessage = await stream.get_final_message()
        except anthropic.APIError:
            raise
        except Exception:  # noqa: BLE001 - errors of the HTTP library, which is the SDK's own affair
            raise _BrokeOff from None
        return message

    async def _answer(self, runner: Any, message: BetaMessage) -> tuple[End | None, Any]:
        """Runs the tools of a reply, where it is one whose tools may run."""
        if message.stop_reason == "refusal":
            return ("model_refused", getattr(message.stop_details, "category", None) or ""), None
        if message.stop_reason == "model_context_window_exceeded":
            return ("budget", "the conversation is longer than the model can hold"), None
        if message.stop_reason != "tool_use":
            return None, None
        results = await runner.generate_tool_call_response()
        return (None, None) if results is None else (self._after_tools(list(results["content"])), results)

    def _after_tools(self, results: list[dict[str, Any]]) -> End | None:
        calls = [block for block in self._messages[-1]["content"] if block["type"] == "tool_use"]
        self._messages.append({"role": "user", "content": results})
        self._emit("user", results)
        if self._progress.is_done:
            return "done", ""
        if self._progress.gave_up is not None:
            return "gave_up", self._progress.gave_up
        return ("no_progress", "the same step again and again") if self._loops.is_stuck(calls, results) else None

    def _count(self, message: BetaMessage) -> None:
        # Servers that are not Anthropic's may leave it out.
        told = message.usage.to_dict() if message.usage else {}
        usage = {key: value for key, value in told.items() if isinstance(value, int)}
        cached = usage.get("cache_creation_input_tokens", 0) + usage.get("cache_read_input_tokens", 0)
        self.usage["inputTokens"] += usage.get("input_tokens", 0) + cached
        self.usage["outputTokens"] += usage.get("output_tokens", 0)
        self.usage["costUsd"] += cost_usd(self._model, usage) or 0.0

    def _emit(self, role: str, content: Sequence[Any], message: BetaMessage | None = None) -> None:
        kept = _masked(list(content), self._secrets)
        line: dict[str, Any] = {"type": "message", "role": role, "provider": "claude", "content": kept}
        usage = message.usage.to_dict() if message is not None and message.usage else None
        model, stop_reason = (message.model, message.stop_reason) if message is not None else (None, None)
        self._wire.emit({**line, "usage": usage, "model": model, "stopReason": stop_reason})


class _LoopDetector:
    """Notices a model that does the same thing, or runs into the same wall, again and again."""

    def __init__(self) -> None:
        self._steps: deque[str] = deque(maxlen=SAME_STEPS)
        self._errors: deque[str | None] = deque(maxlen=SAME_ERRORS)

    def is_stuck(self, calls: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> bool:
        """Whether the last steps were all the same with the same result, or the last errors all the same."""
        done = [(call["name"], call["input"]) for call in calls]
        self._steps.append(json.dumps([done, [result.get("content") for result in results]]))
        errors = [json.dumps(result.get("content")) for result in results if result.get("is_error")]
        self._errors.append(errors[0] if errors else None)
        same_step = len(self._steps) == SAME_STEPS and len(set(self._steps)) == 1
        same_error = len(self._errors) == SAME_ERRORS and len(set(self._errors)) == 1 and self._errors[0] is not None
        return same_step or same_error


def _whole_blocks(message: BetaMessage) -> list[dict[str, Any]]:
    """The blocks that may be sent back: of a reply that was cut off only its text, its last call is half a call."""
    blocks: list[dict[str, Any]] = [block.to_dict(mode="json") for block in message.content]
    is_cut = message.stop_reason == "max_tokens"
    kept = [block for block in blocks if not is_cut or block["type"] == "text"]
    return [block for block in kept if block["type"] != "text" or block["text"].strip()]


def _client(spec: Spec, secrets: Sequence[str]) -> AsyncAnthropic:
    """Key or token, exactly one, given explicitly: the SDK must not look for others by itself."""
    provider = spec.provider
    base_url = provider["baseUrl"]
    # A proxy of the environment would be asked for loopback addresses too.
    http_client = DefaultAsyncHttpxClient(trust_env=False) if _is_loopback(base_url) else None
    key: dict[str, Any] = (
        {"api_key": provider["apiKey"]} if provider["apiKey"] else {"auth_token": provider["authToken"]}
    )
    return AsyncAnthropic(
        **key,
        base_url=base_url,
        max_retries=2,
        timeout=REPLY_SECS,
        http_client=http_client,
        middleware=[_masking(secrets)],
    )


def _masking(secrets: Sequence[str]) -> Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]:
    """The one gate that every request passes: no secret's exact value is in a body, whatever put it there."""

    async def mask_request(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        return await call_next(request.copy(body=_masked(request.json, secrets)))

    return mask_request


def _masked(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MARK)
    return value


def _secrets_of(spec: Spec) -> tuple[str, ...]:
    known = {*spec.secrets, spec.provider["apiKey"], spec.provider["authToken"], spec.session_token}
    return tuple(sorted((value for value in known if value and len(value) >= SHORTEST_SECRET), key=len, reverse=True))


def _reason(error: anthropic.APIError) -> str:
    """The kind of the error, its status, and the server's own words where it gave some."""
    status = getattr(error, "status_code", None)
    body = error.body if isinstance(error.body, dict) else {}
    told = body.get("error") if isinstance(body.get("error"), dict) else body
    words = str(told.get("message") or "")[:MOST_REASON_CHARS] if isinstance(told, dict) else ""
    return f"{type(error).__name__}{f' {status}' if status else ''}{f': {words}' if words else ''}"


def _is_loopback(base_url: str | None) -> bool:
    return base_url is not None and urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def _is_anthropic(spec: Spec) -> bool:
    """Others end streamed tool calls with the wrong word, and may not know every field."""
    base_url = spec.provider["baseUrl"]
    host = urlsplit(base_url).hostname or "" if base_url else ANTHROPIC_HOST
    return host == ANTHROPIC_HOST or host.endswith(f".{ANTHROPIC_HOST}")
