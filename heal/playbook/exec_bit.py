"""A script that the command starts directly and that has lost its exec bit."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.command_line import inside, scripts_of
from heal.playbook.replacing import Seen, see

NAME = "exec_bit"
ORDER = 20

NOT_EXECUTABLE = 126
_STARTS = (b"#!", b"\x7fELF")
_SPECIAL = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX

# As shells, env and xargs say it; as Python and zsh say it; as Node says it.
_REFUSED = (
    re.compile(r"(?:^|: |[a-z] )'?(?P<name>[^:'\n]{1,500})'?: Permission denied$", re.MULTILINE),
    re.compile(r"[Pp]ermission denied: '?(?P<name>[^:'\n]{1,500}?)'?$", re.MULTILINE),
    re.compile(r"spawn (?P<name>[^\n]{1,500}) EACCES"),
)
# The program that was to be started is what these two speak of, and not a file that was to be read.
_STARTED = re.compile(r"in _execute_child\b|spawn [^\n]{1,500} EACCES")
_QUOTES = str.maketrans("‘’`", "'''")


def look(case: Case) -> Verdict | None:
    """A refusal that names a directly started file of the project, our own, that is a program without its x bit."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}\n{case.spawn_error or ''}".translate(_QUOTES)
    names = [match["name"] for pattern in _REFUSED for match in pattern.finditer(said)]
    for path in _started(case, said, names):
        seen = see(path)
        if seen is not None and _has_lost_it(seen):
            return _verdict(case, seen)
    return None


def _started(case: Case, said: str, names: list[str]) -> Iterator[Path]:
    direct = [script.path for script in scripts_of(case) if script.direct]
    yield from (path for path in direct if any(_is_named(case, path, name) for name in names))
    if _STARTED.search(said):
        started = (inside(case, Path(case.cwd, name)) for name in names)
        yield from (path for path in started if path is not None)
    if case.exit_code == NOT_EXECUTABLE and not names and len(direct) == 1:
        yield direct[0]  # it failed without a word


def _is_named(case: Case, path: Path, name: str) -> bool:
    """Whether the name means the path, in the job's folder or in one that a script has gone to."""
    if os.path.realpath(Path(case.cwd, name)) == str(path):
        return True
    parts = tuple(part for part in Path(name).parts if part not in (".", ".."))
    return bool(parts) and path.parts[-len(parts) :] == parts


def _has_lost_it(seen: Seen) -> bool:
    may_run = not os.statvfs(seen.path).f_flag & os.ST_NOEXEC
    is_plain = seen.mode & (_SPECIAL | 0o111) == 0 and bool(seen.mode & stat.S_IRUSR)
    return seen.is_ours and may_run and is_plain and seen.data.startswith(_STARTS)


def _verdict(case: Case, seen: Seen) -> Verdict:
    name = seen.path.relative_to(case.project).as_posix()
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"not executable: {name}",
        explanation=f"{name} is a program, but its exec bit is gone, so it cannot be started by its name.",
        repair=Repair(
            (name,),
            f"Made {name} executable for its owner",
            lambda: seen.set_mode(seen.mode | stat.S_IXUSR),
        ),
    )
