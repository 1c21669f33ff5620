"""Cronmend as a system of the yardstick: one-off jobs due at one instant, through a real `serve`."""

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from systems.base import System, poll  # noqa: E402 - the yardstick puts its folder on the path

from desktop.loops import Threads  # noqa: E402
from scheduler import jobs  # noqa: E402
from store.clock import iso, parse_iso  # noqa: E402
from store.database import Database  # noqa: E402
from store.upgrade import upgrade  # noqa: E402

READY_SECS = 60
IDLE_SCHEDULE = "0 0 1 1 *"


class Cronmend(System):
    """The app as `cronmend serve` runs it: durable claims, keeper, log files, evidence."""

    name = "cronmend"
    minute_aligned = False
    lead = 6.0
    lead_per_job = 0.006
    records = True

    def setup(self, n_jobs, command_template, due_at):
        self.n = n_jobs
        self.home = Path(self.dir) / "home"
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.database = self.home / "cronmend.db"
        for old in self.home.glob("cronmend.db*"):
            old.unlink()
        upgrade(self.database, self.home / "backups")
        commands = [command_template.replace("{id}", str(number)) for number in range(n_jobs)]
        write_jobs(self.database, commands, due_at)

    def start(self):
        address = self.home / "cli.json"
        address.unlink(missing_ok=True)
        environment = {**os.environ, "CRONMEND_HOME": str(self.home)}
        self.spawn([sys.executable, "-P", "-m", "desktop", "serve"], log="cronmend.log", env=environment, cwd=str(ROOT))
        if not poll(address.exists, True, READY_SECS):
            raise RuntimeError("cronmend was not ready in time")

    def stop(self):
        keeper = self.home / "keeper" / "keeper.lock" if hasattr(self, "home") else None
        super().stop()
        if keeper is not None and keeper.exists() and keeper.read_text().strip():
            with suppress(ProcessLookupError):
                os.kill(int(keeper.read_text()), signal.SIGTERM)

    def wait(self, timeout):
        return poll(self._finished, self.n, timeout)

    def results(self):
        return {"recorded": self._finished(), "not_ok": self._count("status NOT IN ('completed')")}

    def fate(self, number):
        rows = self._ask("SELECT status, exit_code, error FROM cron_runs WHERE job_id = ?", (number + 1,))
        return json.dumps(rows)

    def _finished(self):
        return self._count("completed_at IS NOT NULL AND status != 'skipped'")

    def _count(self, condition):
        return self._ask(f"SELECT count(*) FROM cron_runs WHERE {condition}")[0][0]

    def _ask(self, query, values=()):
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(query, values).fetchall()


def write_jobs(path, commands, due_at):
    """Makes the jobs with the app's own code, in one write; `due_at` None: yearly ones, for the idle test."""
    database = Database(path)
    database.start(Threads().spawn)
    when = {"schedule": IDLE_SCHEDULE}
    if due_at is not None:
        when = {"runAt": iso(parse_iso(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due_at))))}

    def change(session):
        for number, command in enumerate(commands):
            jobs.create(session, {"name": f"job {number}", "command": command, "healingEnabled": False, **when})

    database.write(change)
    database.close()


SYSTEMS = [Cronmend]
