"""The process of one heal session: parked until `go`, then the playbook, then, if need be, Claude.

    python -P -m heal.worker

Until the playbook has declined nothing heavy is imported: a heal that a rule can do takes milliseconds.
"""

import asyncio
import ctypes
import importlib
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
    spec = wire.parked()
    healing = Healing(spec, Remote(spec.api_url, spec.session_token), wire)
    end = _treat(spec, wire, healing)
    wire.emit({"type": "end", "usage": {}, **end})


def _treat(spec: Spec, wire: Wire, healing: Healing) -> dict[str, Any]:
    note = ""
    has_model = bool(spec.provider["apiKey"] or spec.provider["authToken"]) and spec.provider["mode"] != "playbook"
    if spec.provider["mode"] != "claude":
        verdict = book.look(Case.from_json(spec.case))
        if verdict is not None:
            end = _follow(verdict, wire, healing)
            if end is not None and (end["outcome"] != "unproven" or not has_model):
                return {**end, "outcome": "needs_you" if end["outcome"] == "unproven" else end["outcome"]}
            note = end["detail"] if end else ""
    if not has_model:
        cause = spec.case.get("cause") or "unknown cause"
        detail = f"{cause}: {NO_RULE}"
        _say(wire, f"{detail}. Set ANTHROPIC_API_KEY, or repair it by hand and resume the job.")
        return {"outcome": "needs_you", "detail": detail}
    # Importing the SDK costs seconds of CPU, so it waits until the playbook has declined.
    claude = importlib.import_module("agent.claude")
    tools = importlib.import_module("heal.toolbox").toolbox(spec, wire, healing)
    end = asyncio.run(claude.converse(spec, tools, wire, healing, note))
    return dict(end)


def _follow(verdict: Verdict, wire: Wire, healing: Healing) -> dict[str, Any] | None:
    """Does what the playbook says; `unproven` when its repair did not hold."""
    _say(wire, f"{verdict.explanation}\n\nCause: {verdict.cause}")
    if verdict.kind == "wait":
        return {"outcome": "waiting", "detail": verdict.cause}
    if verdict.repair is None:
        step = f": {verdict.step}" if verdict.step else ""
        return {"outcome": "needs_you", "detail": f"{verdict.cause}{step}"}
    try:
        said = _repair(verdict.repair, verdict, wire, healing)
    except (ToolError, OSError, ValueError) as error:
        _say(wire, f"The repair did not hold: {error}")
        return {"outcome": "unproven", "detail": f"{verdict.cause}: the built-in repair did not hold ({error})"}
    _say(wire, said)
    return {"outcome": "done", "detail": verdict.repair.summary}


def _repair(repair: Repair, verdict: Verdict, wire: Wire, healing: Healing) -> str:
    wire.ask("edit", paths=list(repair.paths), by="playbook")
    repair.apply()
    _act(wire, "edit", {"paths": list(repair.paths)}, repair.summary)
    _prove(wire, healing)
    given = {"root_cause": verdict.cause, "fix": repair.summary}
    result = healing.resume(verdict.cause, repair.summary)
    _act(wire, "resume_schedule", given, result)
    return f"{repair.summary}. Proven; the schedule is active again."


def _prove(wire: Wire, healing: Healing) -> None:
    """A green run, or where that is not allowed the job's own check.  Raises ToolError when it is not green."""
    try:
        outcome = healing.run_job()
        name, is_green = "run_job", '"status": "completed"' in outcome
    except Refused as refused:
        if refused.code != "side_effects":
            raise
        outcome = healing.verify()
        name, is_green = "verify", '"status": "passed"' in outcome
    _act(wire, name, {}, outcome)
    if not is_green:
        raise ToolError("it is not green with it either")


_calls = iter(range(1, 1_000_000))


def _act(wire: Wire, name: str, given: dict[str, Any], result: str) -> None:
    """One step in the transcript, in the form in which a model's steps are kept."""
    call_id = f"playbook_{next(_calls)}"
    call = {"type": "tool_use", "id": call_id, "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    wire.emit({"type": "message", "role": "assistant", "provider": "playbook", "content": [call]})
    wire.emit({"type": "message", "role": "user", "provider": "playbook", "content": [answer]})


def _say(wire: Wire, text: str) -> None:
    block = {"type": "text", "text": text}
    wire.emit({"type": "message", "role": "assistant", "provider": "playbook", "content": [block]})


if __name__ == "__main__":
    main()
