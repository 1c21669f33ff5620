"""A script that the command starts directly and that has lost its exec bit."""

import os
import stat
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.command_line import scripts_of
from heal.playbook.replacing import Seen, see

NAME = "exec_bit"
ORDER = 20

NOT_EXECUTABLE = 126
_STARTS = (b"#!", b"\x7fELF")


def look(case: Case) -> Verdict | None:
    """Exit code 126 and a directly started file of the project, our own, that is a program without its x bit."""
    said = f"{case.stderr_tail}\n{case.spawn_error or ''}\n{case.cause}"
    if case.exit_code != NOT_EXECUTABLE and "ermission denied" not in said and "not executable" not in said:
        return None
    for script in scripts_of(case):
        seen = see(script.path)
        # The failure must name it: another file may be meant to stay as it is.
        if script.direct and seen is not None and script.path.name in said and _has_lost_it(seen):
            return _verdict(case, seen)
    return None


def _has_lost_it(seen: Seen) -> bool:
    facts = seen.path.stat()
    mode = stat.S_IMODE(facts.st_mode)
    may_run = not os.statvfs(seen.path).f_flag & os.ST_NOEXEC
    is_ours = facts.st_uid == os.geteuid()
    return is_ours and may_run and mode & 0o111 == 0 and bool(mode & stat.S_IRUSR) and seen.data.startswith(_STARTS)


def _verdict(case: Case, seen: Seen) -> Verdict:
    name = seen.path.relative_to(case.project).as_posix()
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"not executable: {name}",
        explanation=f"{name} is a program, but its exec bit is gone, so it cannot be started by its name.",
        repair=Repair((name,), f"Made {name} executable for its owner", lambda: _allow(seen, seen.path)),
    )


def _allow(seen: Seen, path: Path) -> None:
    seen.check()
    path.chmod(stat.S_IMODE(seen.mode) | stat.S_IXUSR)
