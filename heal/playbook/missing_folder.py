"""An output folder inside the project that is not there (any more)."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.code_frames import failed_writes
from heal.playbook.command_line import Step, named, program_of, steps_of
from heal.playbook.mounts import awaits_disk
from heal.playbook.replacing import see
from heal.playbook.shell_text import UNKNOWN, Command

NAME = "missing_folder"
ORDER = 30
MOST_PATHS = 50

LEAST_WORD = 4

_PATH = r"(?:'(?P<q1>[^'\n]{1,500})'|\"(?P<q2>[^\"\n]{1,500})\"|(?P<q3>[^'\":\n]{1,500}))"
_ABSENT = r"(?:No such file or directory|Directory nonexistent|Not a directory)"
# Patterns are text here and in the rules that follow: compiling them all would take longer than most looks.
# Each of these is said of a path that was to be written, and of no other.
_WRITES = tuple(
    (text.replace("PATH", _PATH).replace("ABSENT", _ABSENT))
    for text in (
        r"cannot create (?:regular file |directory |special file )?PATH: ABSENT",
        r"mv: cannot move [^\n]{1,500} to PATH: ABSENT",
        r"ln: failed to create (?:symbolic|hard) link PATH(?: =>? [^\n]{1,500})?: ABSENT",
        r"tee: PATH: No such file",
        r"touch: cannot touch PATH: No such file",
        r"sort: open failed: PATH: No such file",
        r"cannot open output file PATH: No such file",
        r"awk: [^\n]{0,200}?cannot open PATH for output",
        r"Failed to open the file PATH: No such file",
        r"zip error: Could not create output file \(PATH\)",
        r"mktemp: failed to create [^\n]{1,60} via template PATH: No such file",
    )
)
_PANDAS = r"OSError: Cannot save file into a non-existent directory: '(?P<path>[^'\n]{1,500})'"
_TAR = r"tar(?: \(child\))?: (?P<path>[^:\n]{1,500}): Cannot open: No such file"
_DD = r"dd: failed to open '(?P<path>[^'\n]{1,500})': No such file"
# bash says the same of a redirection and of a program: the shell's text tells which it was.
_BASH = r"(?m)(?:^|: )(?:line )?\d{1,9}: (?P<path>[^\n]{1,500}?): No such file or directory$"
_ZSH = r"(?m)no such file or directory: (?P<path>[^\n]{1,500})$"
_MISSED = (
    r"(?m)(?:^|[:\s'(])(?P<before>[^:'\s\n][^:'\n]{0,500})'?: (?:Cannot open: )?No such file or directory$"
    r"|[Nn]o such file or directory: '?(?P<after>[^'\n]{1,500})"
)
_CAUSES = "[Nn]o such file|nonexistent|non-existent|Not a directory|for output|Could not create"
_QUOTES = str.maketrans("‘’`", "'''")
_MOUNTS = frozenset({"mount", "umount", "mountpoint", "findmnt", "sshfs", "rclone", "cryptsetup", "gocryptfs", "encfs"})
_CHANGES_FOLDER = rb"\bchdir\("


@dataclass(frozen=True)
class _Output:
    """A path that could not be written; `step`: the command that was to write it, where that is known."""

    name: str
    step: Step | None = None
    is_folder: bool = False


def look(case: Case) -> Verdict | None:
    """A write failed because the folder of its path, inside the project, does not exist."""
    if not re.search(_CAUSES, f"{case.stderr_tail}\n{case.stdout_tail}"):
        return None
    steps = steps_of(case)
    if any(named(word) in _MOUNTS for step in steps for word in step.command.words[:3]):
        return None  # it works on a disk that is mounted at times: an empty folder would take its place
    outputs = list(_outputs(case, steps))
    for output in outputs:
        folder = _folder(case, steps, output)
        missing = _missing_folders(case, folder) if folder is not None else []
        if missing:
            is_read = _is_read_from(case, missing[0], {each.name for each in outputs})
            return None if is_read else _verdict(case, missing)
    return None


def _is_read_from(case: Case, folder: Path, outputs: set[str]) -> bool:
    """Whether the job misses something else in the folder: then it is not an output folder alone."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}".translate(_QUOTES)
    names = {match["before"] or match["after"] for match in re.finditer(_MISSED, said)} - outputs
    return any(Path(os.path.normpath(Path(case.cwd, name))).is_relative_to(folder) for name in names)


def _outputs(case: Case, steps: list[Step]) -> Iterator[_Output]:
    said = f"{case.stderr_tail}\n{case.stdout_tail}".translate(_QUOTES)
    for pattern in _WRITES:
        for name in _paths(said, pattern):
            yield _Output(name, _writer(steps, name), is_folder=name.endswith("/"))
    for name in _paths(said, _PANDAS):
        yield _Output(name, is_folder=True)
    for failed in failed_writes(said, case.command):
        if failed.origin is None or os.path.lexists(Path(case.cwd, failed.origin)):
            yield _Output(failed.path)
    yield from _by_text(steps, said)


def _by_text(steps: list[Step], said: str) -> Iterator[_Output]:
    """What only the shell's text shows to be outputs."""
    for name in _paths(said, _BASH) + _paths(said, _ZSH):
        step = _redirecting(steps, name)
        if step is not None:
            yield _Output(name, step)
    for name in _paths(said, _TAR):
        yield from _of_tar(steps, name)
    for name in _paths(said, _DD):
        step = _with_word(steps, "dd", f"of={name}")
        if step is not None:
            yield _Output(name, step)


def _paths(said: str, pattern: str) -> list[str]:
    """What the pattern's one group holds, each once: a log may repeat a line, and every path is looked for."""
    found = dict.fromkeys(match[match.lastindex or 0] for match in re.finditer(pattern, said))
    return list(found)[:MOST_PATHS]


def _redirecting(steps: list[Step], name: str) -> Step | None:
    """The only command that can mean the name, if it writes to it."""
    writers = [step for step in steps if any(_may_be(word, name) for word in step.command.outputs)]
    others = [step for step in steps if any(_may_be(word, name) for word in _others(step.command))]
    return writers[0] if writers and not others else None


def _others(command: Command) -> tuple[str, ...]:
    """Where else bash would look for a file: inputs, programs, sourced files."""
    words = program_of(command.words)
    return (*command.inputs, *words[: 2 if words[:1] in ((".",), ("source",)) else 1])


def _of_tar(steps: list[Step], name: str) -> Iterator[_Output]:
    for step in steps:
        words = program_of(step.command.words)
        if not words or named(words[0]) != "tar" or len(words) < 2:
            continue
        if any(a == "-C" and _may_be(b, name) for a, b in pairwise(words)):
            # Also the folder to read from is named with -C.
            if _tar_mode(words) == "x":
                yield _Output(name, step, is_folder=True)
        elif _tar_mode(words) == "c" and any(_may_be(word, name) for word in words[2:]):
            yield _Output(name, step)


def _tar_mode(words: tuple[str, ...]) -> str:
    for word in words[1:]:
        if word in ("--create", "--extract", "--get"):
            return "c" if word == "--create" else "x"
    letters = words[1].lstrip("-").partition("f")[0] if not words[1].startswith("--") else ""
    return next((letter for letter in letters if letter in "cxtruA"), "")


def _writer(steps: list[Step], name: str) -> Step | None:
    """The command that names the path."""
    return next(
        (step for step in steps if any(_may_be(word, name) for word in (*step.command.outputs, *step.command.words))),
        None,
    )


def _with_word(steps: list[Step], program: str, word: str) -> Step | None:
    found = (step for step in steps if any(_may_be(each, word) for each in step.command.words))
    return next((step for step in found if program_of(step.command.words)[:1] == (program,)), None)


def _may_be(word: str, name: str) -> bool:
    """Whether the word, of which a part may be unknown, can have become the name."""
    if UNKNOWN not in word:
        return os.path.normpath(word) == os.path.normpath(name)
    known = [part for part in word.split(UNKNOWN) if part]
    if not any(len(part.strip("/.")) > 1 for part in known):
        return False  # nothing of it is known
    return re.fullmatch(".*".join(re.escape(part) for part in word.split(UNKNOWN)), name) is not None


def _folder(case: Case, steps: list[Step], output: _Output) -> Path | None:
    """The folder that the path is in, None where it is not known."""
    path = Path(output.name)
    folder = path if output.is_folder else path.parent
    if folder.is_absolute():
        return folder
    if output.step is not None:
        return output.step.cwd / folder if output.step.cwd is not None else None
    # Every command runs in the same folder, and no program goes elsewhere by itself.
    is_settled = {step.cwd for step in steps} <= {Path(case.cwd)} and not any(
        (seen := see(script.path)) is None or re.search(_CHANGES_FOLDER, seen.data)
        for step in steps
        for script in step.scripts
    )
    return Path(case.cwd, folder) if is_settled else None


def _missing_folders(case: Case, folder: Path) -> list[Path]:
    """The folders to make, outermost first; none where making them would be wrong."""
    place, missing = Path("/"), list[Path]()
    for part in folder.parts[1:]:
        if part == "..":
            if missing:
                return []
            place = place.parent
            continue
        place /= part
        if os.path.lexists(place):
            place = Path(os.path.realpath(place))
        else:
            missing.append(place)
    if not missing or not _may_make(case, missing[0].parent) or any(awaits_disk(path) for path in missing):
        return []
    return [] if _is_mistyped(missing[0]) else missing


def _is_mistyped(folder: Path) -> bool:
    """Whether a folder beside it has almost its name: renamed or mistyped, and which of the two is not for a rule."""
    beside = (each.name for each in folder.parent.iterdir() if each.is_dir())
    return any(_are_alike(folder.name.casefold(), name.casefold()) for name in beside)


def _are_alike(one: str, other: str) -> bool:
    """Whether the words differ by the case, or by one letter added, lost or changed.  Digits are dates and numbers."""
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 1 or (len(longer) < LEAST_WORD and one != other):
        return False
    same = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    rest = longer[same + 1 :]
    is_one_edit = rest == (shorter[same + 1 :] if len(shorter) == len(longer) else shorter[same:])
    return is_one_edit and not longer[same : same + 1].isdigit()


def _may_make(case: Case, parent: Path) -> bool:
    # A link that leads nowhere is a disk that is not mounted: a folder of our own would fill up unseen.
    is_ours = parent.is_relative_to(case.project) and not any(parent.is_relative_to(name) for name in case.forbidden)
    return is_ours and ".git" not in parent.parts and parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)


def _verdict(case: Case, missing: list[Path]) -> Verdict:
    names = tuple(folder.relative_to(case.project).as_posix() for folder in missing)
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"missing output folder: {names[-1]}",
        explanation=f"The job writes into {names[-1]}, and that folder does not exist.",
        repair=Repair(names, f"Made the folder {names[-1]}", lambda: _make(missing)),
    )


def _make(missing: list[Path]) -> None:
    parent = missing[0].parent
    if os.path.realpath(parent) != str(parent) or os.path.lexists(missing[0]):
        raise ValueError(f"{missing[0].name} exists by now, or the folder that it belongs to is another one")
    try:
        for folder in missing:
            folder.mkdir()
    except OSError as error:
        raise ValueError(f"the folder {missing[-1].name} cannot be made: {error.strerror}") from error
