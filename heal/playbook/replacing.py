"""Putting new content in a file in one step, only if the file still is what was looked at."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """A file as a rule saw it."""

    path: Path
    data: bytes
    mode: int
    inode: int

    def check(self) -> None:
        """Raises ValueError when the file is another one now."""
        if see(self.path) != self:
            raise ValueError(f"{self.path.name} has changed since it was looked at")


def see(path: Path) -> Seen | None:
    """The file, None when there is no such regular file."""
    try:
        facts = path.lstat()
        if path.is_symlink() or not path.is_file():
            return None
        return Seen(path, path.read_bytes(), facts.st_mode, facts.st_ino)
    except OSError:
        return None


def replace(seen: Seen, data: bytes) -> None:
    """Raises ValueError when the file has changed, OSError when it cannot be written."""
    seen.check()
    file, name = tempfile.mkstemp(dir=seen.path.parent, prefix=".cronmend-")
    try:
        with os.fdopen(file, "wb") as new:
            new.write(data)
        Path(name).chmod(seen.mode & 0o7777)
        Path(name).replace(seen.path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
