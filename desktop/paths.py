"""Where everything of one person's Cronmend lives."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from store.errors import Refusal

INSTANCE = re.compile(r"[A-Za-z0-9-]{0,40}")


@dataclass(frozen=True)
class Paths:
    """The data directory and what is in it (docs/architecture.md)."""

    home: Path
    instance: str = ""
    """The name of a secondary instance, which keeps a log and a window's storage of its own."""

    @property
    def database(self) -> Path:
        return self.home / "cronmend.db"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def undo(self) -> Path:
        return self.home / "undo"

    @property
    def backups(self) -> Path:
        return self.home / "backups"

    @property
    def keeper(self) -> Path:
        return self.home / "keeper"

    @property
    def workspace(self) -> Path:
        """The folder in which jobs without a project heal."""
        return self.home / "workspace"

    @property
    def app_log(self) -> Path:
        return self.home / (f"app-{self.instance}.log" if self.instance else "app.log")

    @property
    def window(self) -> Path:
        """What the window's engine keeps."""
        return self.home / (f"window-{self.instance}" if self.instance else "window")

    @property
    def address(self) -> Path:
        """cli.json: how the command line finds the running app."""
        return self.home / "cli.json"

    @property
    def lock(self) -> Path:
        return self.home / "cronmend.lock"


def data_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """The data directory: CRONMEND_HOME, else where the system keeps a person's application data.  Makes nothing.

    Raises Refusal when CRONMEND_INSTANCE_ID is no name.
    """
    named = environment.get("CRONMEND_HOME")
    home = Path(named).expanduser() if named else Path(platformdirs.user_data_dir("cronmend", appauthor=False))
    instance = environment.get("CRONMEND_INSTANCE_ID", "")
    if not INSTANCE.fullmatch(instance):
        raise Refusal("CRONMEND_INSTANCE_ID: use at most 40 letters, digits and dashes.", code="instance_id")
    return Paths(home.absolute(), instance)


def make_home(paths: Paths) -> None:
    """Makes the data directory, readable by the person alone."""
    paths.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths.home.chmod(0o700)
