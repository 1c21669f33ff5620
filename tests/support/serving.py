"""A real `cronmend serve` process on a data directory of its own, driven by the real command and over HTTP."""

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scheduler import process_tree
from scheduler.keeper_link import runtime_dir

PYTHON = (sys.executable, "-P", "-m", "desktop")
START_SECS = 60.0
WAIT_SECS = 60.0


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Served:
    """One data directory; `start` and `kill` may alternate."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.home = folder / "data"
        self.person = folder / "home"
        self.person.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {**kept, "HOME": str(self.person), "CRONMEND_HOME": str(self.home), **(environment or {})}
        self._process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> str:
        """Starts the app and waits until it answers; its URL."""
        self._process = subprocess.Popen(
            [*PYTHON, "serve", *arguments], env=self.environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert "running at" in line, f"it did not start: {line!r}"
        return line.split()[-1]

    def kill(self) -> None:
        """kill -9, as a crash would."""
        assert self._process
        self._process.kill()
        self._finish()

    def stop(self) -> int:
        """SIGTERM, as an end of the day would; the exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._finish()

    def start_and_expect_kill(self, drive: Callable[[], object] = lambda: None) -> None:
        """Starts the app, which is to be killed by something on its way; `drive` is what a person does meanwhile."""
        self._process = subprocess.Popen(
            [*PYTHON, "serve"], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        deadline = time.monotonic() + WAIT_SECS
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "the point was never reached"
            drive()
            time.sleep(0.02)
        assert self._finish() == -signal.SIGKILL, "the point was never reached"

    def _finish(self) -> int:
        assert self._process
        assert self._process.stdout
        with self._process.stdout:
            code = self._process.wait(WAIT_SECS)
        self._process = None
        return code

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def close(self) -> None:
        """Ends the app, the keeper and what they run."""
        if self._process is not None:
            self.kill()
        lock = self.home / "keeper" / "keeper.lock"
        if lock.exists() and lock.read_text().strip():
            _end_keeper(int(lock.read_text()))
        if (self.home / "keeper").exists():
            folder = runtime_dir(self.home / "keeper")
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def run(self, *arguments: str, stdin: str | None = None) -> Said:
        """The real command, to its end."""
        done = subprocess.run(
            [*PYTHON, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=WAIT_SECS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        """The JSON of a command that must succeed."""
        said = self.run(*arguments, "--json")
        assert said.code == 0, said
        return said.json

    @property
    def address(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "cli.json").read_text())
        return found

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """One HTTP call of the CLI server, with the control token unless another is given."""
        facts = self.address
        connection = http.client.HTTPConnection(urlsplit(facts["url"]).netloc, timeout=WAIT_SECS)
        sent = {
            "Authorization": f"Bearer {facts['controlToken'] if token is None else token}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        is_json = (answer.headers.get("Content-Type") or "").startswith("application/json")
        return answer.status, json.loads(data) if is_json else data

    def until(self, look: Callable[[], Any], secs: float = WAIT_SECS) -> Any:
        """The first true value of `look`."""
        deadline = time.monotonic() + secs
        while not (found := look()):
            assert time.monotonic() < deadline, f"it never came to hold; app.log:\n{self.log()[-3_000:]}"
            time.sleep(0.05)
        return found

    def ask(self, query: str, *values: Any) -> list[Any]:
        """What the database itself says."""
        with closing(sqlite3.connect(f"file:{self.home / 'cronmend.db'}?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(query, values).fetchall()

    def alter(self, statement: str, *values: Any) -> None:
        """A change to the database behind the app's back, as of another version or of a fault."""
        with closing(sqlite3.connect(self.home / "cronmend.db", timeout=30)) as database:
            database.execute(statement, values)
            database.commit()

    def heal(self, heal_id: int = 1) -> dict[str, Any]:
        status, heal = self.call("GET", f"/cron/heals/{heal_id}")
        return heal if status == 200 else {"status": None}

    def until_heal(self, *states: str, heal_id: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = self.until(lambda: heal if (heal := self.heal(heal_id))["status"] in states else None)
        return found

    def log(self) -> str:
        return (self.home / "app.log").read_text()


def _end_keeper(pid: int) -> None:
    keeper = process_tree.look_up(pid)
    if keeper is None:
        return
    for process in process_tree.members(pid, keeper.start_time, []):
        if process.pid != pid:
            process_tree.send([process], signal.SIGKILL)
    os.kill(pid, signal.SIGTERM)
