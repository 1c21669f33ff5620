"""The process of one heal session: parked until `go`, then the playbook, then, if need be, Claude.

    python -P -m heal.worker

Until the playbook has declined nothing heavy is imported: a heal that a rule can do takes milliseconds.
"""

import ctypes
import importlib
import itertools
import json
import os
import sys
import threading
from typing import Any

from agent.remote import Remote
from agent.tools import ToolError
from agent.wire import Spec, Wire, open_wire
from heal.playbook import book
from heal.playbook.case import Case, Repair, Verdict
from heal.tools import Healing, Refused

_PR_SET_DUMPABLE = 4
NO_RULE = "no built-in rule fits and no model key is set"


def main() -> None:
    """One session, from the spec on stdin to the `end` line on stdout."""
    # The key and the token are in this memory: no other process of the person may read it.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    wire = open_wire()
    session = _Session(wire.parked(), wire)
    threading.Thread(target=session.watch, name="stop", daemon=True).start()
    session.leave(session.treat())


class _Session:
    """One heal, as far as this process goes."""

    def __init__(self, spec: Spec, wire: Wire) -> None:
        self._spec = spec
        self._wire = wire
        self._healing = Healing(spec, Remote(spec.api_url, spec.session_token), wire)
        self._leaving = threading.Lock()
        self._speaks = False
        self._numbers = itertools.count(1)

    def leave(self, end: dict[str, Any]) -> None:
        """Says how it ended, once, and ends this process: a thread that waits for a run must not keep it."""
        self._leaving.acquire()
        self._wire.emit({"type": "end", "usage": {}, **end})
        sys.stderr.flush()
        os._exit(0)

    def watch(self) -> None:
        """Ends the session when the app says stop; a conversation does that by itself, with what it has cost."""
        self._wire.stopped.wait()
        if not self._speaks:
            self.leave({"outcome": "stopped", "detail": ""})

    def treat(self) -> dict[str, Any]:
        """Playbook, then Claude; outcome, detail and usage."""
        provider = self._spec.provider
        has_model = bool(provider["apiKey"] or provider["authToken"]) and provider["mode"] != "playbook"
        note = ""
        if provider["mode"] != "claude":
            verdict = book.look(Case.from_json(self._spec.case))
            end = self._follow(verdict) if verdict is not None else None
            if end is not None and end["outcome"] != "unproven":
                return end
            note = end["detail"] if end is not None else ""
            if end is not None and not has_model:
                return {"outcome": "needs_you", "detail": note}
        return self._speak(note) if has_model else self._ask_for_a_key()

    def _ask_for_a_key(self) -> dict[str, Any]:
        detail = f"{self._spec.case.get('cause') or 'unknown cause'}: {NO_RULE}"
        self._say(f"{detail}. Set ANTHROPIC_API_KEY, or repair it by hand and resume the job.")
        return {"outcome": "needs_you", "detail": detail}

    def _speak(self, note: str) -> dict[str, Any]:
        # Importing the SDK costs seconds of CPU, so it waits until the playbook has declined.
        claude = importlib.import_module("agent.claude")
        tools = importlib.import_module("heal.toolbox").toolbox(self._spec, self._wire, self._healing)
        self._speaks = True
        return dict(claude.speak(self._spec, tools, self._wire, self._healing, note))

    def _follow(self, verdict: Verdict) -> dict[str, Any]:
        """Does what the playbook says; `unproven` when its repair did not hold."""
        self._say(f"{verdict.explanation}\n\nCause: {verdict.cause}")
        if verdict.kind == "wait":
            return {"outcome": "waiting", "detail": verdict.cause}
        if verdict.repair is None:
            step = f": {verdict.step}" if verdict.step else ""
            return {"outcome": "needs_you", "detail": f"{verdict.cause}{step}"}
        try:
            self._repair(verdict.repair, verdict.cause)
        except (ToolError, OSError, ValueError) as error:
            self._say(f"The repair did not hold: {error}")
            return {"outcome": "unproven", "detail": f"{verdict.cause}: the built-in repair did not hold ({error})"}
        self._say(f"{verdict.repair.summary}. Proven; the schedule is active again.")
        return {"outcome": "done", "detail": verdict.repair.summary}

    def _repair(self, repair: Repair, cause: str) -> None:
        self._wire.ask("edit", paths=list(repair.paths), by="playbook")
        repair.apply()
        self._act("edit", {"paths": list(repair.paths)}, repair.summary)
        self._prove()
        result = self._healing.resume(cause, repair.summary)
        self._act("resume_schedule", {"root_cause": cause, "fix": repair.summary}, result)

    def _prove(self) -> None:
        """A green run, or where that is not allowed the job's own check.  Raises ToolError when it is not green."""
        name, green = "run_job", "completed"
        try:
            outcome = self._healing.run_job()
        except Refused as refused:
            if refused.code != "side_effects":
                raise
            name, green = "verify", "passed"
            outcome = self._healing.verify()
        self._act(name, {}, outcome)
        if json.loads(outcome)["status"] != green:
            raise ToolError("it is not green with it either")

    def _act(self, name: str, given: dict[str, Any], result: str) -> None:
        """One step in the transcript, in the form in which a model's steps are kept."""
        call_id = f"playbook_{next(self._numbers)}"
        self._tell("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": given})
        self._tell("user", {"type": "tool_result", "tool_use_id": call_id, "content": result})

    def _say(self, text: str) -> None:
        self._tell("assistant", {"type": "text", "text": text})

    def _tell(self, role: str, block: dict[str, Any]) -> None:
        line = {"type": "message", "role": role, "provider": "playbook", "content": [block]}
        self._wire.emit({**line, "usage": None, "model": None, "stopReason": None})


if __name__ == "__main__":
    main()
