"""Cronmend as a system of the yardstick: one-off jobs due at one instant, through a real `serve`."""

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from systems.base import System, poll  # the yardstick puts its folder on the path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contenders import FINISHED, READY_SECS, ROOT, count, end_keeper, write_jobs

from store.upgrade import upgrade


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
        super().stop()
        if hasattr(self, "home"):
            end_keeper(self.home)

    def wait(self, timeout):
        return poll(self._finished, self.n, timeout)

    def results(self):
        return {"recorded": self._finished(), "not_ok": count(self.database, "status NOT IN ('completed')")}

    def fate(self, number):
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            query = "SELECT status, exit_code, error FROM cron_runs WHERE job_id = ?"
            return json.dumps(connection.execute(query, (number + 1,)).fetchall())

    def _finished(self):
        return count(self.database, FINISHED)


SYSTEMS = [Cronmend]
