"""cronmend doctor: what keeps jobs from running and healing on this machine."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.credentials import read_credentials
from agent.sandbox import find_sandbox
from desktop.commands.client import Client
from scheduler.environment import login_environment
from scheduler.zones import local_timezone
from store.database import Damaged, backups, check
from store.errors import Refusal

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
        _keeper,
        _database,
        _disk,
        _home,
        _sandbox,
        _model,
        _zone,
        _path,
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


def _zone(_client: Client) -> Finding:
    return Finding("time zone", True, local_timezone())


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
