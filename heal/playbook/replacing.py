"""Putting new content in a file in one step, only if the file still is what was looked at."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Seen:
    """A file as a rule saw it.  `data` holds its first MOST_BYTES bytes; `mode` is its permission bits."""

    path: Path
    data: bytes
    mode: int
    size: int
    inode: int
    owner: int
    group: int
    links: int
    changed_ns: int

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to this user alone: another name of the same file may be a place of somebody else."""
        return self.owner == os.geteuid() and self.links == 1

    def check(self) -> None:
        """Raises ValueError when the file is another one now."""
        if see(self.path) != self or os.path.realpath(self.path) != str(self.path):
            raise ValueError(f"{self.path.name} has changed since it was looked at")

    def set_mode(self, mode: int) -> None:
        """Raises ValueError when the file has changed or the mode cannot be set."""
        self.check()
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.fstat(file).st_ino == self.inode:
                    os.fchmod(file, mode)
            finally:
                os.close(file)
        except OSError as error:
            raise ValueError(f"the mode of {self.path.name} cannot be changed: {error.strerror}") from error

    def replace(self, data: bytes) -> None:
        """Raises ValueError when the file has changed or cannot be written."""
        self.check()
        fresh = self.path.with_name(f".{self.path.name[:200]}.{os.getpid()}.cronmend")
        try:
            _write(fresh, data, self)
            fresh.replace(self.path)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                fresh.unlink(missing_ok=True)
            raise ValueError(f"{self.path.name} cannot be written: {error.strerror}") from error


def is_file(path: Path) -> bool:
    """Whether the path, which may be any text of a log, leads to a regular file."""
    try:
        return path.is_file()
    except OSError:
        return False


def see(path: Path) -> Seen | None:
    """The file, None when there is no such regular file that may be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            return None
        return Seen(
            path=path,
            data=opened.read(MOST_BYTES),
            mode=stat.S_IMODE(facts.st_mode),
            size=facts.st_size,
            inode=facts.st_ino,
            owner=facts.st_uid,
            group=facts.st_gid,
            links=facts.st_nlink,
            changed_ns=facts.st_mtime_ns,
        )


def _write(fresh: Path, data: bytes, like: Seen) -> None:
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "wb") as opened:
        if like.group != os.fstat(file).st_gid:
            os.fchown(file, -1, like.group)
        os.fchmod(file, like.mode)
        opened.write(data)
        opened.flush()
        os.fsync(file)
