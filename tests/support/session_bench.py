"""One real session process for a test: its asks are answered as the app would, what it says is kept."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from support.cli_stand_in import TOKEN

from agent.wire import Spec
from agent.worker_process import WorkerProcess
from heal.playbook.case import Case

KEY = "sk-ant-canary-0123456789abcdef"
WAIT_SECS = 60.0

_PROVIDER = {"mode": "auto", "apiKey": None, "authToken": None, "baseUrl": None, "model": "claude-sonnet-5-5"}
_LIMITS = {"turns": 30, "wallSecs": 60, "maxTokens": 8192, "budgetUsd": 1.0}


def make_spec(
    project: Path,
    *,
    api_url: str = "http://127.0.0.1:9",
    case: Case | None = None,
    provider: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    prompt: str = "The job 'shop report' failed for good.",
) -> Spec:
    """A spec as the app writes it; `provider` and `limits` name what differs."""
    path = "/usr/local/bin:/usr/bin:/bin"
    known = case or Case(str(project), str(project), "python3 report.py", path, exit_code=1, cause="KeyError 'amount'")
    return Spec(
        session_id=3,
        heal_id=5,
        job_id=7,
        project=str(project),
        cwd=str(project),
        path=path,
        api_url=api_url,
        session_token=TOKEN,
        tools={"bash": False},
        forbidden=(),
        provider={**_PROVIDER, **(provider or {})},
        limits={**_LIMITS, **(limits or {})},
        system="You repair one scheduled job.",
        prompt=prompt,
        secrets=(KEY, TOKEN),
        case=known.to_json(),
    )


class SessionBench:
    """A worker that was started.  `lines` are those it wrote, `refusal` what every ask is refused with.

    `on_ask` is called before an ask is answered.  Use it as a context: the process ends with it.
    """

    def __init__(self, command: Sequence[str], spec: Spec) -> None:
        self.lines: list[dict[str, Any]] = []
        self.exit_code: int | None = None
        self.refusal: str | None = None
        self.on_ask: Callable[[dict[str, Any]], None] = lambda _line: None
        self._threads: list[threading.Thread] = []
        self._is_made = threading.Event()
        self.process = WorkerProcess(command, spec, self._hear, self._see_exit, self._spawn)
        self._is_made.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        for thread in self._threads:
            thread.join(WAIT_SECS)

    def treat(self) -> dict[str, Any]:
        """Lets it go; the line it ends with."""
        self.process.go()
        return self.until_line("end")

    def until_line(self, kind: str) -> dict[str, Any]:
        """The first line of this type."""
        found: dict[str, Any] = wait_until(lambda: next((line for line in self.lines if line["type"] == kind), None))
        return found

    def until_exit(self) -> int:
        wait_until(lambda: self.exit_code is not None)
        assert self.exit_code is not None
        return self.exit_code

    def said(self, provider: str) -> list[dict[str, Any]]:
        """The blocks of the transcript, in order, each with its role."""
        messages = [line for line in self.lines if line["type"] == "message" and line["provider"] == provider]
        return [{"role": line["role"], **block} for line in messages for block in line["content"]]

    def _hear(self, line: dict[str, Any]) -> None:
        self._is_made.wait()
        self.lines.append(line)
        if line["type"] != "ask":
            return
        self.on_ask(line)
        if self.refusal is None:
            self.process.reply(line["id"], ok=True, writable=True)
        else:
            self.process.reply(line["id"], ok=False, error=self.refusal)

    def _see_exit(self, code: int) -> None:
        self.exit_code = code

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name)
        thread.start()
        self._threads.append(thread)


def wait_until(look: Callable[[], Any], secs: float = WAIT_SECS) -> Any:
    """The first true value of `look`."""
    deadline = time.monotonic() + secs
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.01)
    return found
