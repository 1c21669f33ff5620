"""Where everything of one person's Cronmend lives."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class Paths:
    """The data directory and what is in it (docs/architecture.md)."""

    home: Path

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
        return self.home / "app.log"

    @property
    def address(self) -> Path:
        """cli.json: how the command line finds the running app."""
        return self.home / "cli.json"

    @property
    def lock(self) -> Path:
        return self.home / "cronmend.lock"


def data_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """The data directory: CRONMEND_HOME, else where the system keeps a person's application data.  Makes nothing."""
    named = environment.get("CRONMEND_HOME")
    home = Path(named).expanduser() if named else Path(platformdirs.user_data_dir("cronmend", appauthor=False))
    return Paths(home.absolute())


def make_home(paths: Paths) -> None:
    """Makes the data directory, readable by the person alone."""
    paths.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths.home.chmod(0o700)
