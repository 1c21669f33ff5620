"""A script whose lines end with CR LF: the kernel looks for "/bin/sh\\r", the shell for a command "\\r"."""

import re

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.command_line import Script, scripts_of
from heal.playbook.replacing import MOST_BYTES, Seen, see
from heal.playbook.shell_text import read_shell

NAME = "crlf"
ORDER = 10

ALMOST_ALL = 0.9
NOT_FOUND = 127
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Only a carriage return makes a program say this.
_SURE = re.compile(r"\^M|\\r\b|\\015|required file not found|bad interpreter|\r")
# A shell says this of such a script, and of others: it counts where the line names the script.
_LIKELY = re.compile(
    r"not found|[Nn]o such file|unexpected (?:end of file|token|EOF)|[Ss]yntax error|unexpected|[Ii]nvalid|"
    r"[Ii]llegal|numeric argument|not a valid identifier|ambiguous redirect|bad variable name|bad number|can't cd|"
    r"command not found|[Cc]annot open|[Uu]nknown"
)
# Of a script that it reads from its input the shell has no name.
_FROM_INPUT = re.compile(r"\w{0,4}sh: (?:line )?\d+: [Ss]yntax error")


def look(case: Case) -> Verdict | None:
    """Shell scripts, or one started by its first line, with CRLF throughout and a failure that fits."""
    if case.exit_code == 0:
        return None
    broken = [
        (script, seen)
        for script in scripts_of(case)
        if (seen := see(script.path)) is not None and _is_broken(script, seen)
    ]
    if not any(_fits(case, script, seen) for script, seen in broken):
        return None
    # The one that failed may hide the next one: what the command runs is mended together.
    return _verdict(case, list(dict.fromkeys(seen for _, seen in broken)))


def _is_broken(script: Script, seen: Seen) -> bool:
    data = seen.data
    is_text = seen.size <= MOST_BYTES and b"\0" not in data and not data.startswith(_BYTE_ORDER_MARK)
    if not is_text or not seen.is_ours or b"\r\n" not in data:
        return False
    lines = data.split(b"\n")
    if script.direct and lines[0].startswith(b"#!") and not script.is_shell:
        # Python and others read CRLF well, the kernel does not.
        return _is_throughout(lines, set(range(len(lines))))
    return script.is_shell and _is_throughout(lines, read_shell(data.decode(errors="replace")).code_lines)


def _is_throughout(lines: list[bytes], code_lines: set[int]) -> bool:
    """Carriage returns only in here-documents and quotes are data, and stay."""
    ended = [lines[number].endswith(b"\r") for number in sorted(code_lines) if number < len(lines) - 1]
    # A first line that somebody has mended by hand does not count.
    rest = ended[1:] or ended
    return sum(rest) > 0 and sum(rest) >= ALMOST_ALL * len(rest)


def _fits(case: Case, script: Script, seen: Seen) -> bool:
    said = f"{case.stderr_tail}\n{case.stdout_tail}\n{case.spawn_error or ''}"
    if not said.strip():
        # The output went elsewhere, as with ">log 2>&1": the exit code is left, and the line that no kernel can read.
        first = seen.data.partition(b"\n")[0]
        return script.direct and case.exit_code == NOT_FOUND and first.startswith(b"#!") and first.endswith(b"\r")
    if _SURE.search(said):
        return True
    name = re.compile(rf"(?:^|[\s/'\"‘]){re.escape(script.path.name)}(?=[\s:'\"’]|$)")
    return any(
        (name.search(line) and _LIKELY.search(line)) or (not script.direct and _FROM_INPUT.match(line))
        for line in said.splitlines()
    )


def _verdict(case: Case, broken: list[Seen]) -> Verdict:
    names = tuple(seen.path.relative_to(case.project).as_posix() for seen in broken)
    listed = ", ".join(names)
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"CRLF line endings: {listed}",
        explanation=(
            f"The lines of {listed} end with CR LF, as on Windows; the system takes the CR for a part of names."
        ),
        repair=Repair(names, f"Changed the line endings of {listed} from CRLF to LF", lambda: _mend(broken)),
    )


def _mend(broken: list[Seen]) -> None:
    for seen in broken:
        seen.check()
    for seen in broken:
        seen.replace(seen.data.replace(b"\r\n", b"\n"))
