"""What a heal session can do to prove and end its work; each act is one call of the CLI server."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.remote import Remote
from agent.tools import ToolError
from agent.wire import Spec, Wire

REMINDER = (
    "The schedule is still paused. If the fix is proven, call resume_schedule; if it cannot be repaired here, call "
    "give_up with the exact step a person has to take; else go on."
)


@dataclass(frozen=True)
class Act:
    """One healing tool: its inputs are all texts, and all of them are needed."""

    name: str
    description: str
    do: Callable[[dict[str, str]], str]
    texts: dict[str, str] = field(default_factory=dict)


class Healing:
    """The healing tools of one session, and what has come of them."""

    def __init__(self, spec: Spec, remote: Remote, wire: Wire) -> None:
        self._job = f"/cron/jobs/{spec.job_id}"
        self._job_id = spec.job_id
        self._remote = remote
        self._wire = wire
        self.is_done = False
        self.gave_up: str | None = None
        self.reminder: str | None = REMINDER

    def run_job(self) -> str:
        """Runs the job for real; its outcome as compact JSON.  Raises ToolError when that is not allowed, OSError."""
        status, answer = self._remote.run(self._job_id)
        _check(status, answer)
        kept = ("status", "exitCode", "stdout", "stderr", "truncated")
        return json.dumps({key: answer.get(key) for key in kept})

    def verify(self) -> str:
        """Proves the fix without a real run; the outcome as compact JSON.  Raises ToolError, OSError."""
        status, answer = self._remote.post(f"{self._job}/verify")
        _check(status, answer)
        return json.dumps(answer)

    def resume(self, root_cause: str, fix: str) -> str:
        """Resumes the schedule.  Raises ToolError with the server's words when nothing is proven, OSError."""
        body = {"isActive": True, "rootCause": root_cause, "fix": fix}
        status, answer = self._remote.post(f"{self._job}/toggle", body)
        _check(status, answer)
        self.is_done = True
        return "The schedule is active again. The heal is finished."

    def acts(self) -> list[Act]:
        """The tools as a model is told of them."""
        return [
            Act(
                "run_job",
                "Run the job now, for real, and wait for its end. A green run proves the fix.",
                lambda _given: self.run_job(),
            ),
            Act(
                "verify",
                "Prove the fix without a real run: the job's verify command, else a check of syntax and imports.",
                lambda _given: self.verify(),
            ),
            Act(
                "resume_schedule",
                "Resume the paused schedule. Accepted only when run_job or verify proved the present files.",
                lambda given: self.resume(given["root_cause"], given["fix"]),
                {"root_cause": "What broke, in one sentence.", "fix": "What was changed, in one sentence."},
            ),
            Act(
                "propose_change",
                "Propose a change of the job itself (command, schedule, env, ...). A person decides.",
                self._propose,
                {"field": "The field.", "value": "Its new value.", "why": "The reason, in one sentence."},
            ),
            Act(
                "give_up",
                "End the heal without a fix: what only a person can do, with the exact step.",
                self._give_up,
                {"reason": "The cause and the step a person has to take."},
            ),
        ]

    def _propose(self, given: dict[str, str]) -> str:
        self._wire.emit({"type": "propose", **{name: given[name] for name in ("field", "value", "why")}})
        return "The proposal is in the person's inbox."

    def _give_up(self, given: dict[str, str]) -> str:
        self.gave_up = given["reason"]
        return "The heal ends here."


def _check(status: int, answer: dict[str, Any]) -> None:
    if status >= 400:
        error = answer.get("error") or {}
        raise Refused(str(error.get("message") or f"refused with {status}"), str(error.get("code") or ""))


class Refused(ToolError):  # noqa: N818 - the word of store.errors
    """The server said no; `code` is its stable word for why."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
