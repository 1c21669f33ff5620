"""The worker's side of its two pipes to the app: one JSON object a line."""

import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TextIO

from agent.tools import ToolError


@dataclass(frozen=True)
class Spec:
    """Everything a session is given, in one line on stdin.  Nothing of it is ever in an environment or a file.

    `provider`: mode, apiKey, authToken, baseUrl, model.  `limits`: turns, wallSecs, maxTokens, budgetUsd.
    `tools`: which kinds of tools there are.  `case`: the playbook's case as JSON.  `secrets`: values no text may
    contain.  `history`: the messages so far; with an empty `prompt` the last of them is what is to be answered.
    """

    session_id: int
    heal_id: int
    job_id: int
    project: str
    cwd: str
    path: str
    api_url: str
    session_token: str
    tools: Mapping[str, Any]
    forbidden: tuple[str, ...]
    provider: Mapping[str, Any]
    limits: Mapping[str, Any]
    system: str
    prompt: str
    secrets: tuple[str, ...]
    case: Mapping[str, Any]
    history: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {_camel(field.name): getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Spec":
        values = {field.name: data[_camel(field.name)] for field in fields(cls)}
        return cls(**{**values, **{name: tuple(values[name]) for name in ("forbidden", "secrets", "history")}})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Wire:
    """Speaks to the app.  When the app goes away, this process ends at once."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._asked = 0
        self._may_go = threading.Event()
        self.stopped = threading.Event()

    def parked(self) -> Spec:
        """Reads the spec, says ready, and waits for `go`."""
        line = self._source.readline()
        if not line:
            os._exit(1)
        spec = Spec.from_json(json.loads(line))
        threading.Thread(target=self._listen, name="wire", daemon=True).start()
        self.emit({"type": "ready"})
        self._may_go.wait()
        return spec

    def emit(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            self._target.write(json.dumps(line) + "\n")
            self._target.flush()

    def ask(self, what: str, **facts: Any) -> dict[str, Any]:
        """Asks the app and waits for its answer.  Raises ToolError with the app's words when it refuses."""
        with self._changed:
            self._asked += 1
            number = self._asked
        self.emit({"type": "ask", "id": number, "what": what, **facts})
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers)
            answer = self._answers.pop(number)
        if not answer.get("ok"):
            raise ToolError(str(answer.get("error") or "the app refused"))
        return answer

    def _listen(self) -> None:
        try:
            for line in self._source:
                self._take(json.loads(line))
        finally:
            # The app is gone: whatever this session still did, nobody would record.
            os._exit(1)

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "go":
            self._may_go.set()
        elif message["type"] == "stop":
            self.stopped.set()
        elif message["type"] == "reply":
            with self._changed:
                self._answers[message["id"]] = dict(message)
                self._changed.notify_all()


def open_wire() -> Wire:
    """The wire of this process; whatever else prints goes to stderr."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return Wire(sys.stdin, target)
