"""cronmend doctor: what keeps jobs from running and healing on this machine."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from agent.credentials import read_credentials
from agent.sandbox import find_sandbox
from desktop.commands.client import Client
from scheduler.environment import login_environment
from scheduler.zones import local_timezone
from store.clock import now, parse_iso
from store.database import Damaged, backups, check
from store.errors import Refusal
from store.storage_trouble import Unwritable

MOST_CLOCK_SECS = 60.0
LEAST_FREE_BYTES = 200 * 1024 * 1024


@dataclass(frozen=True)
class Finding:
    """One thing looked at.  A serious one that is not ok keeps jobs from running."""

    check: str
    is_ok: bool
    detail: str
    remedy: str | None = None
    is_serious: bool = False

    def shape(self) -> dict[str, Any]:
        return {"check": self.check, "ok": self.is_ok, "detail": self.detail, "remedy": self.remedy}


def examine(client: Client) -> list[Finding]:
    """All findings, the app itself first."""
    looks: tuple[Callable[[Client], Finding], ...] = (
        _app,
        _lock,
        _keeper,
        _database,
        _disk,
        _home,
        _sandbox,
        _model,
        _clock,
        _zone,
        _path,
        _notifications,
        _autostart,
        _logout,
    )
    return [look(client) for look in looks]


def _app(client: Client) -> Finding:
    found = _status(client)
    if found.get("stall"):
        return Finding("app", False, found["stall"], "Restart Cronmend; its log says more: app.log", is_serious=True)
    if found.get("schedulerState") == "running":
        return Finding("app", True, f"running, last tick {found['lastTickAt'] or 'not yet'}")
    return Finding("app", False, "not running: no job starts", "Start it with: cronmend serve", is_serious=True)


def _lock(client: Client) -> Finding:
    """Held without an answer: an app that hangs, and keeps another one from starting."""
    lock = filelock.FileLock(client.paths.lock)
    if not client.paths.lock.exists() or client.is_running():
        return Finding("data lock", True, "held by the app" if client.is_running() else "free")
    try:
        with lock.acquire(timeout=0):
            return Finding("data lock", True, "free")
    except filelock.Timeout:
        return Finding(
            "data lock",
            is_ok=False,
            detail="held by a process that does not answer",
            remedy=f"Wait a moment; else end the process that has {client.paths.lock} open (fuser names it).",
            is_serious=True,
        )
    except OSError as error:
        return Finding(
            "data lock",
            is_ok=False,
            detail=f"{error.filename} cannot be opened ({error.strerror})",
            remedy="Make the data directory writable again: no job starts.",
            is_serious=True,
        )


def _keeper(client: Client) -> Finding:
    found = _status(client)
    if found.get("keeperPid"):
        return Finding("keeper", True, f"runs jobs as process {found['keeperPid']}")
    return Finding("keeper", False, "not connected", "It starts with the app: cronmend serve")


def _database(client: Client) -> Finding:
    paths = client.paths
    if not paths.database.exists():
        return Finding("database", True, "none yet")
    try:
        check(paths.database, thorough=True)
    except Damaged as error:
        return Finding("database", False, error.message, "Stop the app, then: cronmend restore", is_serious=True)
    except Unwritable as error:
        return Finding("database", False, error.message, "Then look again: cronmend doctor", is_serious=True)
    return Finding("database", True, f"whole; {len(backups(paths.backups))} backups")


def _disk(client: Client) -> Finding:
    folder = client.paths.home if client.paths.home.exists() else client.paths.home.parent
    free = shutil.disk_usage(folder if folder.exists() else "/").free
    is_ok = free > LEAST_FREE_BYTES
    return Finding("disk", is_ok, f"{free // (1024 * 1024):,} MiB free", "Make room: runs do not start on a full disk.")


def _home(client: Client) -> Finding:
    home = client.paths.home
    if not home.exists():
        return Finding("data directory", True, f"{home} (not made yet)")
    is_private = home.stat().st_mode & 0o077 == 0
    return Finding("data directory", is_private, str(home), f"Others can read it: chmod 700 {home}")


def _sandbox(_client: Client) -> Finding:
    if find_sandbox() is not None:
        return Finding("sandbox", True, "bubblewrap works: heals may use a shell")
    return Finding("sandbox", False, "none: heals use file tools only", "Install bubblewrap (apt install bubblewrap).")


def _model(client: Client) -> Finding:
    origin = _status(client).get("modelKey") or read_credentials(os.environ).origin
    if origin == "none":
        return Finding(
            "model key", False, "none: only the built-in playbook heals", "Set ANTHROPIC_API_KEY before the start."
        )
    return Finding("model key", True, f"from the {origin}")


def _clock(client: Client) -> Finding:
    """A clock that was ahead has left its mark: no event may lie in the future."""
    try:
        newest = client.call("GET", "/cron/audit", query={"limit": 1})
    except Refusal:
        newest = []
    ahead = (parse_iso(newest[0]["at"]) - now()).total_seconds() if newest else 0.0
    if ahead > MOST_CLOCK_SECS:
        return Finding(
            "clock",
            is_ok=False,
            detail=f"it was set back: the newest event lies {round(ahead / 60)} min ahead",
            remedy="Check date and time of the machine, and whether they are set from the network.",
        )
    return Finding("clock", True, f"{now().astimezone():%Y-%m-%d %H:%M:%S %Z}")


def _zone(client: Client) -> Finding:
    try:
        blocked = [job for job in client.call("GET", "/cron/jobs", query={"limit": 10_000}) if job.get("blockedReason")]
    except Refusal:
        blocked = []
    if blocked:
        said = f"job {blocked[0]['id']} is blocked: {blocked[0]['blockedReason']}"
        return Finding("time zones", is_ok=False, detail=said, remedy="Edit the job: choose a zone that there is.")
    return Finding("time zones", True, f"{local_timezone()}; every job's zone is known")


def _notifications(client: Client) -> Finding:
    state = _status(client).get("toasts", "not tried yet")
    is_ok = not state.startswith("no ")
    return Finding("notifications", is_ok, state, "Install a notification service, or look into the inbox.")


def _autostart(_client: Client) -> Finding:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = (*config.glob("autostart/*cronmend*.desktop"), *config.glob("systemd/user/*cronmend*.service"))
    if places:
        return Finding("start at login", True, str(places[0]))
    return Finding(
        "start at login",
        is_ok=False,
        detail="nothing starts Cronmend when you log in: until then no job runs",
        remedy="Add 'cronmend serve' to the programs that your session starts.",
    )


def _path(client: Client) -> Finding:
    path = _status(client).get("path") or login_environment().get("PATH", "")
    return Finding("PATH of jobs", True, path)


def _logout(_client: Client) -> Finding:
    return Finding("limits", True, "jobs end with a logout, a restart of the machine, or 'systemctl stop' of the app")


def _status(client: Client) -> dict[str, Any]:
    try:
        found: dict[str, Any] = client.call("GET", "/cron/status")
    except Refusal:
        return {}
    return found
