"""What the payload of a card must hold, by its kind: checked when it is posted, and again when it is shown."""

from collections.abc import Mapping
from typing import Any

_Keys = Mapping[str, type | tuple[type, ...]]

INVALID = "invalid"
_MAYBE_TEXT = (str, type(None))

_SHAPES: tuple[tuple[str, str, _Keys], ...] = (
    ("cron.failure_heal", "escalation", {"escalation": bool, "jobId": int}),
    ("cron.failure_heal", "legacy", {"healAttemptId": int}),
    (
        "cron.failure_alert",
        "alert",
        {"jobId": int, "runId": int, "attempts": int, "lastLines": str, "decision": _MAYBE_TEXT},
    ),
    ("heal.needs_you", "needs_you", {"jobId": int, "healId": int, "step": str}),
    ("heal.proposal", "proposal", {"jobId": int, "healId": int, "field": str, "value": str, "why": str}),
    (
        "cron.run_approval",
        "approval",
        {
            "jobId": int,
            "runId": int,
            "command": _MAYBE_TEXT,
            "slotAt": _MAYBE_TEXT,
            "expiresAt": str,
            "jobUpdatedAt": str,
        },
    ),
    ("cron.create", "create", {"draft": dict, "sessionId": int}),
    (
        "project.delete",
        "removal",
        {"projectId": int, "name": str, "folder": str, "jobs": int, "sessions": int, "why": str, "sessionId": int},
    ),
    ("scheduler.notice", "journey", {"zoneFrom": str, "zoneTo": str}),
    ("scheduler.notice", "notice", {}),
)


def shape_of(kind: str, payload: Any) -> str:
    """The name of the payload's shape, which is also the name of its view; `invalid` when it has none."""
    if isinstance(payload, dict):
        for wanted, name, keys in _SHAPES:
            if kind == wanted and all(isinstance(payload.get(key), types) for key, types in keys.items()):
                return name
    return INVALID
