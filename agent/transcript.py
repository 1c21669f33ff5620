"""What was said in a session: as it is kept, and as it is sent to the model again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from store import events, sessions
from store.redaction import redact
from store.sessions import Conversation, Message

KINDS = ("text", "tool_use", "tool_result")
BEGINNING = "(What was done here so far:)"

Turn = dict[str, Any]
"""A message of the model's API: role and content."""


def keep(session: Session, session_id: int, line: Mapping[str, Any], secrets: tuple[str, ...]) -> None:
    """Stores a message as its worker told it, without secrets."""
    message = Message(
        session_id=session_id,
        role=str(line.get("role")),
        provider=line.get("provider"),
        content=clean(line.get("content", []), secrets),
        usage=line.get("usage"),
        stop_reason=line.get("stopReason"),
    )
    sessions.append(session, message)
    conversation = session.get_one(Conversation, session_id)
    conversation.provider = line.get("provider") or conversation.provider
    conversation.model = line.get("model") or conversation.model
    events.record(session, "session.message", "session", job_id=conversation.job_id, session_id=session_id)


def say(session: Session, session_id: int, text: str) -> None:
    """Stores what the person, or the app for the person, says to the model."""
    message = Message(session_id=session_id, role="user", content=[{"type": "text", "text": text}])
    sessions.append(session, message)
    events.record(session, "session.message", "person", session_id=session_id)


def add_usage(conversation: Conversation, usage: Mapping[str, Any]) -> None:
    """Adds what one turn has cost."""
    conversation.tokens_in += int(usage.get("inputTokens") or 0)
    conversation.tokens_out += int(usage.get("outputTokens") or 0)
    conversation.cost_usd += float(usage.get("costUsd") or 0.0)


def clean(value: Any, secrets: tuple[str, ...]) -> Any:
    """The value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, list):
        return [clean(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: clean(item, secrets) for key, item in value.items()}
    return value


def history_of(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """The messages as the API takes them: the person first, sides alternating, each call with its result.

    A turn that was cut off (a kill, a stop) leaves calls without results; those were never answered and are left out.
    """
    turns: list[Turn] = [{"role": message.role, "content": _sendable(message.content)} for message in messages]
    paired = _paired(turns)
    for turn in turns:
        turn["content"] = [block for block in turn["content"] if _belongs(block, paired)]
    joined = list(_joined(turns))
    if joined and joined[0]["role"] != "user":
        joined.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
    return tuple(joined)


def answer_of(messages: Sequence[Message]) -> str:
    """What the model said at the end: all its words after its last use of a tool."""
    said: list[str] = []
    for message in messages:
        blocks = [block for block in message.content if isinstance(block, dict)]
        if any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
            said = []
        elif message.role == "assistant":
            said += [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    return "\n\n".join(said)


def _sendable(content: Sequence[Any]) -> list[Turn]:
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") in KINDS]
    return [block for block in blocks if block["type"] != "text" or str(block.get("text", "")).strip()]


def _paired(turns: Sequence[Turn]) -> set[str]:
    """Ids of the calls whose result stands in the other side's next words."""
    paired, waiting = set(), set()
    for turn in turns:
        if turn["role"] == "assistant":
            waiting |= {block["id"] for block in turn["content"] if block["type"] == "tool_use"}
        else:
            found = {block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"}
            paired |= waiting & found
            waiting = set()
    return paired


def _belongs(block: Turn, paired: set[str]) -> bool:
    identity = block.get("id") if block["type"] == "tool_use" else block.get("tool_use_id")
    return identity is None or identity in paired


def _joined(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Neighbours of one side as one turn; empty ones left out."""
    held: Turn | None = None
    for turn in turns:
        if not turn["content"]:
            continue
        if held is not None and held["role"] == turn["role"]:
            held = {**held, "content": [*held["content"], *turn["content"]]}
            continue
        if held is not None:
            yield held
        held = turn
    if held is not None:
        yield held
