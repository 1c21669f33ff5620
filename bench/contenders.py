"""What is measured: the app, and the floor beside it.  Each has commands due at one instant, and a durable record."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from desktop.loops import Threads  # noqa: E402
from scheduler import jobs  # noqa: E402
from store.clock import iso, parse_iso  # noqa: E402
from store.database import Database  # noqa: E402
from store.upgrade import upgrade  # noqa: E402

READY_SECS = 60
IDLE_SCHEDULE = "0 0 1 1 *"
TICKS = os.sysconf("SC_CLK_TCK")


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


def count(path, condition, table="cron_runs"):
    """Rows of a database that another process writes."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]


FINISHED = "completed_at IS NOT NULL AND status != 'skipped'"


def end_keeper(home):
    """The keeper outlives the app on purpose; a measurement ends it."""
    lock = home / "keeper" / "keeper.lock"
    if lock.exists() and lock.read_text().strip():
        with suppress(ProcessLookupError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


class Floor:
    """`floor.py`: the physical least, in the same language."""

    name = "floor"

    def __init__(self, folder):
        self.folder = folder
        self.process = None

    def prepare(self, commands, due_at):
        (self.folder / "logs").mkdir()
        order = {
            "commands": commands,
            "due": due_at,
            "database": str(self.folder / "runs.db"),
            "logs": str(self.folder / "logs"),
            "ready": str(self.folder / "ready"),
        }
        (self.folder / "order.json").write_text(json.dumps(order))

    def start(self):
        program = [sys.executable, str(Path(__file__).with_name("floor.py")), str(self.folder / "order.json")]
        self.process = subprocess.Popen(program)
        await_file(self.folder / "ready")

    def finished(self):
        return count(self.folder / "runs.db", "ended IS NOT NULL", "runs")

    def cpu_secs(self):
        return 0.0

    def stop(self):
        self.process.kill()
        self.process.wait()


class Cronmend:
    """The app as `cronmend serve` runs it: claims, keeper, log files, evidence."""

    name = "cronmend"

    def __init__(self, folder):
        self.home = folder / "data"
        self.process = None

    def prepare(self, commands, due_at):
        self.home.mkdir(mode=0o700)
        upgrade(self.home / "cronmend.db", self.home / "backups")
        write_jobs(self.home / "cronmend.db", commands, due_at)

    def start(self):
        environment = {**os.environ, "CRONMEND_HOME": str(self.home)}
        program = [sys.executable, "-P", "-m", "desktop", "serve"]
        self.process = subprocess.Popen(program, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        await_file(self.home / "cli.json")

    def finished(self):
        return count(self.home / "cronmend.db", FINISHED)

    def cpu_secs(self):
        """Of the app and its keeper, without the jobs."""
        pids = (self.process.pid, int((self.home / "keeper" / "keeper.lock").read_text()))
        return sum(_own_cpu_secs(pid) for pid in pids)

    def stop(self):
        self.process.kill()
        self.process.wait()
        end_keeper(self.home)


def _own_cpu_secs(pid):
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def await_file(path):
    until = time.monotonic() + READY_SECS
    while not path.exists():
        if time.monotonic() > until:
            raise RuntimeError(f"{path.name} did not come: it was not ready in time")
        time.sleep(0.02)
