"""Which files of the project does a command run, and in which folders?"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heal.playbook.case import Case
from heal.playbook.replacing import is_file, see
from heal.playbook.shell_text import SHELLS, UNKNOWN, Command, Shell, read_shell

MOST_SCRIPT_BYTES = 256 * 1024
MOST_SCRIPTS = 50
MOST_DEPTH = 3

# Options that take a value of their own, by interpreter.
_VALUED = {
    **dict.fromkeys(SHELLS, frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})),
    "python": frozenset({"-W", "-X", "--check-hash-based-pycs"}),
    "perl": frozenset(),
    "ruby": frozenset({"-r", "-I", "-C"}),
    "node": frozenset({"-r", "--require", "--import", "-C"}),
    "php": frozenset({"-d", "-c"}),
}
# Options after which no file follows.
_NO_SCRIPT = {
    **dict.fromkeys(SHELLS, frozenset({"-s"})),
    "python": frozenset({"-c", "-m", "-"}),
    "perl": frozenset({"-e", "-E", "-"}),
    "ruby": frozenset({"-e", "-"}),
    "node": frozenset({"-e", "-p", "--eval", "--print", "-"}),
    "php": frozenset({"-r"}),
}
# Programs that start the rest of their words: options that take a value, and words of their own before it.
_PREFIXES = {
    "env": (frozenset({"-u", "--unset"}), 0),
    "exec": (frozenset({"-a"}), 0),
    "nohup": (frozenset(), 0),
    "time": (frozenset({"-f", "-o"}), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "nice": (frozenset({"-n"}), 0),
    "ionice": (frozenset({"-c", "-n"}), 0),
    "setsid": (frozenset(), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "xargs": (frozenset({"-n", "-P", "-I", "-L", "-d", "-a", "-s"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "flock": (frozenset({"-w", "-E", "--timeout"}), 1),
    "chronic": (frozenset(), 0),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Script:
    """A file that is run.  `by`: the program that reads it; `direct`: it is started by its own name."""

    path: Path
    direct: bool
    by: str

    @property
    def is_shell(self) -> bool:
        return self.by in SHELLS


@dataclass(frozen=True)
class Step:
    """A simple command, the folder in which it runs (None where that is not known), and the scripts it starts."""

    command: Command
    cwd: Path | None
    scripts: tuple[Script, ...]


@dataclass(frozen=True)
class _Start:
    """What the words of a command start: a file, a text for a shell, or neither."""

    file: str | None = None
    by: str = ""
    text: str | None = None


def scripts_of(case: Case) -> list[Script]:
    """The project's files that the command runs, and those that they run or source in turn, in order."""
    return list(dict.fromkeys(script for step in steps_of(case) for script in step.scripts))


def steps_of(case: Case) -> list[Step]:
    """The simple commands of the command line and of the shell scripts that it runs."""
    return list(_Walk(case).follow(read_shell(case.command[:MOST_SCRIPT_BYTES]), Path(case.cwd), 0))


def inside(case: Case, path: Path) -> Path | None:
    """The real path of a regular file of the project that may be looked at, else None."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(case.project) or any(real.is_relative_to(hidden) for hidden in case.forbidden):
        return None
    return real if is_file(real) else None


def program_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the program on: without assignments and without programs that only start others."""
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES):
        valued, own = _PREFIXES.get(words[0], (frozenset(), 0))
        is_prefix = words[0] in _PREFIXES
        words = words[1:]
        while is_prefix and words and words[0].startswith("-") and words[0] != "-c":
            words = words[2:] if words[0] in valued else words[1:]
        while own and words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        words = words[own:]
    return words


def named(word: str) -> str:
    """The plain name of a program: python for /usr/bin/python3.11."""
    name = Path(word).name
    return re.sub(r"[\d.]+\Z", "", name) or name


class _Walk:
    """One reading of a case: each script once."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._seen: set[Path] = set()

    def follow(self, shell: Shell, cwd: Path | None, depth: int) -> Iterator[Step]:
        folders: dict[tuple[int, ...], Path | None] = {(): cwd}
        for command in shell.commands:
            here = _folder_of(folders, command.scope)
            words = program_of(command.words)
            start = _start_of(words)
            scripts = tuple(self._scripts(command, start, here))
            yield Step(command, here, scripts)
            if start.text is not None:
                yield from self.follow(read_shell(start.text), here, depth)
            for script in scripts:
                yield from self._read(script, here, depth + 1)
            folders[command.scope] = _moved(here, words, scripts)

    def _read(self, script: Script, cwd: Path | None, depth: int) -> Iterator[Step]:
        is_new = script.path not in self._seen and len(self._seen) < MOST_SCRIPTS
        if not (script.is_shell and is_new and depth <= MOST_DEPTH):
            return
        self._seen.add(script.path)
        seen = see(script.path)
        if seen is not None and seen.size <= MOST_SCRIPT_BYTES:
            text = seen.data.decode(errors="replace")
            yield from self.follow(read_shell(text, str(script.path.parent)), cwd, depth)

    def _scripts(self, command: Command, start: _Start, cwd: Path | None) -> Iterator[Script]:
        if start.file is None and named(start.by) in SHELLS and not start.text:
            for name in command.inputs:  # sh < script
                yield from self._file(name, cwd, start.by)
        if start.file is not None:
            yield from self._file(start.file, cwd, start.by)
        if start.by and "/" in start.by:
            yield from self._file(start.by, cwd, "")

    def _file(self, name: str, cwd: Path | None, by: str) -> Iterator[Script]:
        path = self._find(name, cwd, by)
        real = inside(self._case, path) if path is not None else None
        if real is not None:
            yield Script(real, direct=not by, by=named(by) if by else _interpreter(real))

    def _find(self, name: str, cwd: Path | None, by: str) -> Path | None:
        if UNKNOWN in name or (cwd is None and not name.startswith("/")):
            return None
        folder = cwd or Path("/")
        if by or "/" in name:
            return folder / name
        places = (folder / place / name for place in self._case.path.split(":"))
        return next((place for place in places if is_file(place)), None)


def _start_of(words: tuple[str, ...]) -> _Start:
    if not words:
        return _Start()
    head, rest = words[0], words[1:]
    if head in (".", "source"):
        return _Start(rest[0], "sh") if rest else _Start()
    if head == "-c" and rest:  # flock LOCK -c TEXT
        return _Start(text=rest[0])
    name = named(head)
    return _of_interpreter(head, name, rest) if name in _VALUED else _Start(head)


def _of_interpreter(head: str, name: str, rest: tuple[str, ...]) -> _Start:
    takes_text = False
    while rest and rest[0].startswith(("-", "+")):
        option, rest = rest[0], rest[1:]
        if name in SHELLS and re.match(r"-[a-z]*c", option):
            takes_text = True
        elif option in _NO_SCRIPT[name]:
            return _Start(by=head)
        # A group of letters such as -euo may end with one that takes a value.
        if option in _VALUED[name] or (name in SHELLS and re.fullmatch(r"[-+][a-z]+o", option)):
            rest = rest[1:]
    if not rest:
        return _Start(by=head)
    return _Start(by=head, text=rest[0]) if takes_text else _Start(rest[0], head)


def _folder_of(folders: dict[tuple[int, ...], Path | None], scope: tuple[int, ...]) -> Path | None:
    while scope not in folders:
        scope = scope[:-1]
    return folders[scope]


def _moved(cwd: Path | None, words: tuple[str, ...], scripts: tuple[Script, ...]) -> Path | None:
    """The folder after the command."""
    if words and words[0] in ("cd", "pushd", "popd"):
        place = next((word for word in words[1:] if word not in ("-P", "-L", "--", "-e")), UNKNOWN)
        is_known = UNKNOWN not in place and not place.startswith(("-", "~", "+")) and words[0] != "popd"
        return cwd / place if cwd is not None and is_known else None
    if words and words[0] in (".", "source") and any(_changes_folder(script.path) for script in scripts):
        return None
    return cwd


def _changes_folder(path: Path) -> bool:
    seen = see(path)
    return seen is None or re.search(rb"(?m)(?:^|[;&|\s])(?:cd|pushd|popd)\s", seen.data) is not None


def _interpreter(path: Path) -> str:
    """The plain name of the program that a file's first line asks for; sh without such a line, "" for a binary."""
    seen = see(path)
    if seen is None or b"\0" in seen.data[:MOST_SCRIPT_BYTES]:
        return ""
    first = seen.data.partition(b"\n")[0].decode(errors="replace")
    if not first.startswith("#!"):
        return "sh"
    names = [named(word) for word in first[2:].split() if not word.startswith("-") and "=" not in word]
    return next((name for name in names if name != "env"), "")
