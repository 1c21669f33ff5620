"""A transcript as a page shows it: what was said, what was called, what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.sessions import Message

MOST_TEXT_CHARS = 20_000
_WHO = {"playbook": "Playbook", "claude": "Claude"}


@dataclass(frozen=True)
class Step:
    """One block of the transcript: `kind` is text, you (the model's other side), call, result or error."""

    kind: str
    who: str
    title: str
    text: str


@dataclass(frozen=True)
class TranscriptView:
    """The steps; `source` is where the fragment is fetched again, `wakes` the feed's names that make it so."""

    source: str
    wakes: Sequence[str]
    steps: Sequence[Step]
    waiting: str
    """What stands there when there are no steps yet."""


def steps_of(messages: Sequence[Message], you: str) -> list[Step]:
    """`you`: who speaks on the model's other side, as in `Cronmend` for a heal."""
    steps: list[Step] = []
    for message in messages:
        who = _WHO.get(message.provider or "", "Session")
        steps += [_step(block, you if message.role == "user" else who, message.role) for block in message.content]
    return steps


def _step(block: Any, who: str, role: str) -> Step:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool_use":
        return Step("call", who, str(block.get("name")), _given(block.get("input") or {}))
    if kind == "tool_result":
        is_refused = bool(block.get("is_error"))
        kind, word = ("error", "Refused") if is_refused else ("result", "Result")
        return Step(kind, "", word, _text(block.get("content")))
    text = block.get("text", "") if isinstance(block, dict) else str(block)
    return Step("you" if role == "user" else "text", who, "", text[:MOST_TEXT_CHARS])


def _given(values: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in values.items())[:MOST_TEXT_CHARS]


def _text(content: Any) -> str:
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")[:MOST_TEXT_CHARS]
