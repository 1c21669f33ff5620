"""A git index.lock that a killed git has left behind."""

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.mounts import is_shared

NAME = "git_lock"
ORDER = 40

LEAST_AGE_SECS = 60.0
_LOCK = r"(?:Unable to create|cannot lock ref[^\n]{0,300}?) '(?P<path>[^'\n]{1,500}\.lock)': File exists"
_CONFIG = r"error: could not lock config file (?P<path>[^\n]{1,500}?): File exists"
_PROCESSES = Path("/proc")


@dataclass(frozen=True)
class _Lock:
    """A lock file as it was looked at."""

    path: Path
    device: int
    inode: int
    made: float


def look(case: Case) -> Verdict | None:
    """An aged `.git/index.lock` of a repository in the project that no process holds: removed.  Others: told."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}"
    match = re.search(_LOCK, said)
    config = re.search(_CONFIG, said) if match is None else None
    if match is None and config is None:
        return None
    lock = _see(_place(case, match["path"] if match else f"{config['path']}.lock" if config else ""))
    if lock is None or not _is_ours(case, lock.path):
        return None
    name = lock.path.relative_to(case.project).as_posix()
    if lock.path.name != "index.lock" or lock.path.parent.name != ".git":
        return _tell(name, "it is not the lock of the index, and another git may have been at work on what it guards")
    if (reason := _why_not(case, lock)) is not None:
        return _tell(name, reason)
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"git lock left behind: {name}",
        explanation=f"{name} was left by a git that was killed; no process holds it, and it is older than this run.",
        repair=Repair((name,), f"Removed the stale {name}", lambda: _remove(case, lock)),
    )


def _place(case: Case, name: str) -> Path:
    """The lock's own path: its folder is followed through links, the lock is not."""
    path = Path(case.cwd, name)
    return Path(os.path.realpath(path.parent), path.name)


def _see(path: Path) -> _Lock | None:
    try:
        facts = path.lstat()
    except OSError:
        return None
    is_file = stat.S_ISREG(facts.st_mode)
    return _Lock(path, facts.st_dev, facts.st_ino, facts.st_mtime) if is_file else None


def _is_ours(case: Case, path: Path) -> bool:
    is_hidden = any(path.is_relative_to(name) for name in case.forbidden)
    return path.is_relative_to(case.project) and not is_hidden


def _tell(name: str, reason: str) -> Verdict:
    return Verdict(
        kind="tell",
        rule=NAME,
        cause=f"git lock: {name}",
        explanation=f"Git refuses to work because of {name}, and it was left alone: {reason}.",
        step=f"See that no git is at work in that repository, then remove {name}",
    )


def _why_not(case: Case, lock: _Lock) -> str | None:
    """Why the lock may still be somebody's."""
    if lock.made > case.run_started_at or time.time() - lock.made < LEAST_AGE_SECS:
        return "it is fresh"
    if not _PROCESSES.joinpath("self", "fd").is_dir() or is_shared(lock.path):
        return "whether a process holds it cannot be known here"
    if _is_held(lock):
        return "a process has it open"
    return "a git process is at work in that repository" if _has_git_at_work(lock.path.parent.parent) else None


def _remove(case: Case, lock: _Lock) -> None:
    if _see(lock.path) != lock or not _is_ours(case, _place(case, str(lock.path))):
        raise ValueError(f"{lock.path.name} is not there any more, or is another one")
    if (reason := _why_not(case, lock)) is not None:
        raise ValueError(f"{lock.path.name} was left alone: {reason}")
    try:
        lock.path.unlink()
    except OSError as error:
        raise ValueError(f"{lock.path.name} cannot be removed: {error.strerror}") from error


def _is_held(lock: _Lock) -> bool:
    for handle in _PROCESSES.glob("[0-9]*/fd/*"):
        try:
            facts = handle.stat()
        except OSError:
            continue
        if (facts.st_dev, facts.st_ino) == (lock.device, lock.inode):
            return True
    return False


def _has_git_at_work(repository: Path) -> bool:
    return any(_is_at_work_in(process, words, repository) for process, words in _gits())


def _gits() -> Iterator[tuple[Path, list[str]]]:
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            words = os.fsdecode((process / "cmdline").read_bytes()).split("\0")
        except OSError:
            continue
        if Path(words[0]).name.startswith("git"):
            yield process, words


def _is_at_work_in(process: Path, words: list[str], repository: Path) -> bool:
    try:
        folder = Path(os.path.realpath(process / "cwd", strict=True))
    except FileNotFoundError:
        return False  # it has ended, or its folder is gone
    except OSError:
        return True  # another person's git may be at work anywhere
    return folder.is_relative_to(repository) or any(str(repository) in word for word in words)
