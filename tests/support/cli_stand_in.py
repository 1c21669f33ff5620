"""A small CLI server for one job: it really runs the command and keeps the contracts of /run, /verify and /toggle."""

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

TOKEN = "cms_canary-session-token-0123456789"

Answer = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """The one job.  `run_secs`: how long a run is made to last; `follows`: how often a run is still at work."""

    folder: Path
    command: str
    effects: str = "none"
    run_secs: float = 0.0
    follows: int = 0
    id: int = 7


class CliStandIn:
    """`calls` holds the paths that were asked for, `toggles` the accepted bodies."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._follows = job.follows
        self._is_proven = False
        self._leaving = threading.Event()
        self.calls: list[str] = []
        self.toggles: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                status, answer = server._answer(self.path, self.headers.get("Authorization", ""), body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, path: str, authorization: str, body: dict[str, Any]) -> Answer:
        self.calls.append(path)
        if authorization != f"Bearer {TOKEN}":
            return _refused(401, "unauthorized", "A valid token is needed.")
        acts = {"run": self._run, "verify": self._verify, "toggle": self._toggle}
        start, _, name = path.partition("?")[0].rpartition("/")
        if start != f"/cron/jobs/{self._job.id}" or name not in acts:
            return _refused(403, "forbidden", "session not authorized for this job")
        return acts[name](body)

    def _run(self, _body: dict[str, Any]) -> Answer:
        if self._job.effects not in ("none", "idempotent"):
            return _refused(409, "side_effects", "A heal may not run this job for real.")
        self._leaving.wait(self._job.run_secs)
        if self._follows:
            self._follows -= 1
            return 202, {"runId": 12, "status": "running"}
        started = time.monotonic()
        done = subprocess.run(
            ["/bin/sh", "-c", self._job.command], cwd=self._job.folder, capture_output=True, text=True, check=False
        )
        self._is_proven = done.returncode == 0
        return 200, {
            "runId": 12,
            "status": "completed" if self._is_proven else "failed",
            "exitCode": done.returncode,
            "durationMs": int((time.monotonic() - started) * 1_000),
            "stdout": done.stdout,
            "stderr": done.stderr,
            "truncated": False,
        }

    def _verify(self, _body: dict[str, Any]) -> Answer:
        self._is_proven = True
        return 200, {"status": "passed", "kind": "unverified", "recorded": True, "output": "syntax checked, not run"}

    def _toggle(self, body: dict[str, Any]) -> Answer:
        if body.get("isActive") is not True:
            return _refused(403, "forbidden", "session not authorized for this job")
        if not self._is_proven:
            return _refused(409, "no_verification", "There is no proof that the fix works.")
        self.toggles.append(body)
        return 200, {"id": self._job.id, "isActive": True}


def _refused(status: int, code: str, message: str) -> Answer:
    return status, {"error": {"code": code, "message": message}}
