"""A git index.lock that a killed git has left behind."""

import os
import re
import time
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict

NAME = "git_lock"
ORDER = 40

LEAST_AGE_SECS = 60.0
_LOCK = re.compile(r"Unable to create '(?P<path>[^'\n]{1,500}\.lock)': File exists")


def look(case: Case) -> Verdict | None:
    """An aged `.git/index.lock` of a repository in the project that no process holds: removed.  Others: told."""
    match = _LOCK.search(f"{case.stderr_tail}\n{case.stdout_tail}")
    if match is None:
        return None
    lock = Path(case.cwd, match["path"])
    real = Path(os.path.realpath(lock))
    if not real.is_relative_to(case.project) or not real.is_file():
        return None
    name = real.relative_to(case.project).as_posix()
    if real.name != "index.lock" or real.parent.name != ".git":
        return _tell(name, "it is not the index's lock, and another git may have been at work on what it guards")
    if (reason := _why_not(case, real)) is not None:
        return _tell(name, reason)
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"git lock left behind: {name}",
        explanation=f"{name} was left by a git that was killed; no process holds it, and it is older than this run.",
        repair=Repair((name,), f"Removed the stale {name}", lambda: _remove(case, real)),
    )


def _tell(name: str, reason: str) -> Verdict:
    return Verdict(
        kind="tell",
        rule=NAME,
        cause=f"git lock: {name}",
        explanation=f"Git refuses to work because of {name}, and it was left alone: {reason}.",
        step=f"See that no git is at work in that repository, then remove {name}",
    )


def _why_not(case: Case, lock: Path) -> str | None:
    """Why the lock may still be somebody's."""
    made = lock.stat().st_mtime
    if made > case.run_started_at or time.time() - made < LEAST_AGE_SECS:
        return "it is fresh"
    if _is_held(lock):
        return "a process has it open"
    return "a git process is at work in that repository" if _has_git_at_work(lock.parent.parent) else None


def _remove(case: Case, lock: Path) -> None:
    if (reason := _why_not(case, lock)) is not None:
        raise ValueError(f"the lock was left alone: {reason}")
    lock.unlink()


def _is_held(lock: Path) -> bool:
    wanted = lock.stat()
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            facts = handle.stat()
        except OSError:
            continue
        if (facts.st_dev, facts.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


def _has_git_at_work(repository: Path) -> bool:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            folder = Path(os.readlink(process / "cwd"))  # noqa: PTH115 - the text
        except OSError:
            continue
        is_git = Path(os.fsdecode(words[0])).name.startswith("git")
        if is_git and (folder.is_relative_to(repository) or os.fsencode(repository) in b"\0".join(words)):
            return True
    return False
