"""Which files of the project does a command run?"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heal.playbook.case import Case

SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
INTERPRETERS = frozenset({"python", "python3", "perl", "ruby", "node", "php", "awk", *SHELLS})
_PREFIXES = frozenset({"env", "exec", "nohup", "time", "command", "nice", "ionice", "setsid", "stdbuf", "sudo"})
_ENDS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", "{", "}", "\n", "then", "do", "else", "if", "while", "!"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
MOST_SCRIPT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Script:
    """A file that is run.  `direct`: by its own first line, not by an interpreter that the command names."""

    path: Path
    direct: bool


def scripts_of(case: Case) -> list[Script]:
    """The project's files that the command runs, and those that they run or source in turn, in order."""
    found = list(_in_line(case, case.command, Path(case.cwd)))
    for script in list(found):
        found += _in_script(case, script.path)
    return list(dict.fromkeys(found))


def inside(case: Case, path: Path) -> Path | None:
    """The real path of a regular file of the project that may be looked at, else None."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(case.project) or any(real.is_relative_to(hidden) for hidden in case.forbidden):
        return None
    return real if real.is_file() else None


def _in_script(case: Case, path: Path) -> Iterator[Script]:
    try:
        if path.stat().st_size > MOST_SCRIPT_BYTES:
            return
        text = path.read_bytes().decode(errors="replace").replace("\r", "")
    except OSError:
        return
    if not _is_shell(path, text):
        return
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            yield from _in_line(case, line, Path(case.cwd))


def _is_shell(path: Path, text: str) -> bool:
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        return any(Path(word).name in SHELLS for word in first[2:].split())
    return path.suffix in ("", ".sh", ".bash")


def _in_line(case: Case, line: str, cwd: Path) -> Iterator[Script]:
    for words in _simple_commands(line):
        if words[0] == "cd" and len(words) > 1:
            cwd = cwd / words[1]
            continue
        yield from _of_words(case, words, cwd)


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for token in lexer:
            if token in _ENDS:
                if words:
                    yield words
                words = []
            else:
                words.append(token)
    except ValueError:
        return  # an open quote: what was understood so far is enough
    if words:
        yield words


def _of_words(case: Case, words: list[str], cwd: Path) -> Iterator[Script]:
    words = _without_prefixes(words)
    if not words:
        return
    head, rest = words[0], words[1:]
    name = re.sub(r"[\d.]+\Z", "", Path(head).name) or Path(head).name
    if head in (".", "source") and rest:
        yield from _file(case, cwd / rest[0], direct=False)
    elif name in INTERPRETERS:
        yield from _of_interpreter(case, name, rest, cwd)
        yield from _file(case, cwd / head, direct=True) if "/" in head else ()
    else:
        yield from _file(case, _find(case, head, cwd), direct=True)


def _without_prefixes(words: list[str]) -> list[str]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or words[0] == "timeout"):
        skip = 2 if words[0] == "timeout" and len(words) > 1 else 1
        was_prefix = words[0] in _PREFIXES
        words = words[skip:]
        while was_prefix and words and words[0].startswith("-"):
            words = words[1:]
    return words


def _of_interpreter(case: Case, name: str, rest: list[str], cwd: Path) -> Iterator[Script]:
    for index, word in enumerate(rest):
        if name in SHELLS and re.fullmatch(r"-\w*c", word) and index + 1 < len(rest):
            yield from _in_line(case, rest[index + 1], cwd)
            return
        if word in ("-c", "-m", "-e", "-"):
            return
        if not word.startswith("-"):
            yield from _file(case, cwd / word, direct=False)
            return


def _find(case: Case, head: str, cwd: Path) -> Path:
    if "/" in head:
        return cwd / head
    for folder in case.path.split(":"):
        if (found := Path(folder or ".") / head).is_file():
            return found
    return cwd / head / "nowhere"


def _file(case: Case, path: Path, *, direct: bool) -> Iterator[Script]:
    real = inside(case, path)
    if real is not None:
        yield Script(real, direct)
