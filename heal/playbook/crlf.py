"""A script whose lines end with CR LF: the kernel looks for "/bin/sh\\r", the shell for a command "\\r"."""

import re
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.command_line import SHELLS, Script, scripts_of
from heal.playbook.replacing import Seen, replace, see

NAME = "crlf"
ORDER = 10

MOST_BYTES = 1024 * 1024
ALMOST_ALL = 0.9

_SIGNS = re.compile(
    r"bad interpreter|\^M|\\r|\r|not found|no such file|unexpected (?:end of file|token|EOF)|syntax error|"
    r"invalid option|illegal option|numeric argument|not a valid identifier|ambiguous redirect|Illegal number",
    re.IGNORECASE,
)


def look(case: Case) -> Verdict | None:
    """A shell script, or one started by its first line, with CRLF throughout and a failure that fits."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}\n{case.spawn_error or ''}\n{case.cause}"
    if case.exit_code in (0, None) or not _SIGNS.search(said):
        return None
    for script in scripts_of(case):
        seen = see(script.path)
        if seen is not None and _is_broken(script, seen.data):
            return _verdict(case, seen)
    return None


def _is_broken(script: Script, data: bytes) -> bool:
    if len(data) > MOST_BYTES or b"\0" in data:
        return False
    lines = data.split(b"\n")[:-1] or [data]
    ended = sum(line.endswith(b"\r") for line in lines)
    # Few lines with \r among others are data (a here-document, a quoted text), and stay.
    return ended > 0 and ended >= ALMOST_ALL * len(lines) and _minds(script, lines[0])


def _minds(script: Script, first: bytes) -> bool:
    """Python and others read CRLF well; shells do not, and neither does the kernel."""
    if not first.startswith(b"#!"):
        return True
    names = {Path(word.decode(errors="replace")).name for word in first[2:].split()}
    return bool(names & SHELLS) or script.direct


def _verdict(case: Case, seen: Seen) -> Verdict:
    name = seen.path.relative_to(case.project).as_posix()
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"CRLF line endings: {name}",
        explanation=f"{name} ends its lines with CR LF, as Windows does; the system reads the CR as part of a name.",
        repair=Repair(
            (name,),
            f"Changed the line endings of {name} from CRLF to LF",
            lambda: replace(seen, seen.data.replace(b"\r\n", b"\n")),
        ),
    )
