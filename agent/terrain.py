"""What lies in a project that a command may not change, or may not even reach."""

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

READ_ONLY_NAMES = frozenset({".git", "node_modules"})
ENVIRONMENT_MARK = "pyvenv.cfg"
# When a virtual environment was made in the project folder itself, these are its parts.
ENVIRONMENT_PARTS = (ENVIRONMENT_MARK, "bin", "include", "lib", "lib64", "Scripts")


@dataclass(frozen=True)
class Limits:
    """How long a look may take."""

    entries: int
    secs: float


@dataclass(frozen=True)
class Terrain:
    """What a look found.  Not complete: a limit was reached, so nothing can be said about the rest.

    `environments` are virtual environments, `sealed` everything that stays as it is (environments among it),
    `has_linked_repository` says that a `.git` is a symbolic link, which cannot be sealed.
    """

    environments: tuple[Path, ...]
    sealed: tuple[Path, ...]
    sockets: tuple[Path, ...]
    has_linked_repository: bool
    is_complete: bool


def is_sealed(folder: Path) -> bool:
    """Whether the folder is a repository's, an environment's or a package folder."""
    return folder.name.lower() in READ_ONLY_NAMES or (folder / ENVIRONMENT_MARK).is_file()


def survey(project: Path, limits: Limits) -> Terrain:
    """Looks through the whole project, without following links."""
    look = _Look(project)
    deadline = time.monotonic() + limits.secs
    left = limits.entries
    while look.waiting and left >= 0 and time.monotonic() < deadline:
        left -= look.enter(*look.waiting.pop())
    return Terrain(
        tuple(look.environments),
        tuple(sorted(look.sealed)),
        tuple(look.sockets),
        look.has_linked_repository,
        not look.waiting and left >= 0,
    )


class _Look:
    def __init__(self, project: Path) -> None:
        self._project = project
        self.waiting = [(str(project), False)]
        self.environments: list[Path] = []
        self.sealed: list[Path] = []
        self.sockets: list[Path] = []
        self.has_linked_repository = False

    def enter(self, folder: str, is_in_sealed: bool) -> int:
        """Looks at one folder; the number of its entries."""
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError:
            return 1  # what we cannot list, a command of the same person cannot either
        if not is_in_sealed and any(entry.name == ENVIRONMENT_MARK for entry in entries):
            is_in_sealed = self._note_environment(Path(folder))
        for entry in entries:
            self._note(entry, is_in_sealed)
        return len(entries) + 1

    def _note_environment(self, folder: Path) -> bool:
        self.environments.append(folder)
        if folder == self._project:
            parts = (folder / part for part in ENVIRONMENT_PARTS)
            self.sealed += [part for part in parts if part.exists() and not part.is_symlink()]
            return False
        self.sealed.append(folder)
        return True

    def _note(self, entry: os.DirEntry[str], is_in_sealed: bool) -> None:
        is_named = entry.name.lower() in READ_ONLY_NAMES
        if entry.is_symlink():
            self.has_linked_repository |= entry.name.lower() == ".git"
        elif entry.is_dir(follow_symlinks=False):
            if is_named and not is_in_sealed:
                self.sealed.append(Path(entry.path))
            self.waiting.append((entry.path, is_in_sealed or is_named))
        elif entry.is_file(follow_symlinks=False):
            if entry.name == ".git" and not is_in_sealed:  # a worktree's pointer to its repository
                self.sealed.append(Path(entry.path))
        elif _is_socket(entry):
            self.sockets.append(Path(entry.path))


def _is_socket(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False
