"""Installations of Python and Node outside the system's folders that a command in the sandbox needs to see."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.terrain import ENVIRONMENT_MARK

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
ASK_SECS = 10
# Never the whole prefix: ~/.local is one, and holds far more than programs.
PARTS = ("bin", "lib", "lib64", "libexec", "include", "ssl", ENVIRONMENT_MARK)
_PYTHON = ("-I", "-S", "-c", "import sys; print(sys.base_prefix)")
_NODE = ("-p", "require('path').dirname(require('path').dirname(process.execPath))")


@dataclass(frozen=True)
class Interpreters:
    """`places` are paths to show read-only, `search` is the PATH with which they are found."""

    places: tuple[str, ...]
    search: str


@functools.lru_cache(maxsize=64)
def find_interpreters(path: str, project: Path, environments: tuple[Path, ...] = ()) -> Interpreters:
    """This app's own, those that `path` leads to, and the bases of the project's virtual environments."""
    # Nothing of the project is ever run here: a session may have written it, and this is outside the sandbox.
    entries = [entry for entry in path.split(":") if entry.startswith("/")]
    trusted = [entry for entry in entries if not Path(os.path.realpath(entry)).is_relative_to(project)]
    by_entry: dict[str, list[Path]] = {}
    for name, question in (("python3", _PYTHON), ("python", _PYTHON), ("node", _NODE)):
        program = shutil.which(name, path=":".join(trusted)) if trusted else None
        if program is not None and not Path(program).resolve().is_relative_to(project):
            by_entry.setdefault(str(Path(program).parent), []).extend(_prefixes(program, question, trusted))
    named = [prefix for prefixes in by_entry.values() for prefix in prefixes]
    bases = [base for environment in environments for base in _bases(environment)]
    prefixes = [p for p in (*named, *bases, Path(sys.base_prefix)) if not p.is_relative_to(project) and _is_bounded(p)]
    places = tuple(dict.fromkeys(place for prefix in prefixes for place in _places(prefix)))
    return Interpreters(places, ":".join(_search(entries, by_entry, (project, places, prefixes))))


def _prefixes(program: str, question: tuple[str, ...], trusted: list[str]) -> Iterator[Path]:
    environment = Path(program).parent.parent
    if (environment / ENVIRONMENT_MARK).is_file():
        yield environment
    if not _is_system(Path(program).resolve()):
        yield from _ask([program, *question], trusted)


def _ask(command: list[str], trusted: list[str]) -> list[Path]:
    # A version manager's shim is a script: only the interpreter it leads to knows where it lives.
    surroundings = {"PATH": ":".join((*trusted, *SYSTEM_PATH)), "HOME": str(Path.home())}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECS,
            check=True,
            env=surroundings,
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return [Path(line) for line in done.stdout.splitlines() if line.startswith("/")]


def _bases(environment: Path) -> Iterator[Path]:
    """Where the environment says its interpreter lives, believed only when a Python really is there."""
    try:
        text = (environment / ENVIRONMENT_MARK).read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip().startswith("/"):
            prefix = Path(os.path.normpath(value.strip())).parent
            if any(prefix.glob("bin/python3*")) and any(prefix.glob("lib/python3.*/os.py")):
                yield prefix


def _is_bounded(prefix: Path) -> bool:
    real = prefix.resolve()
    return not _is_system(real) and not Path.home().resolve().is_relative_to(real) and real.is_dir()


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)


def _places(prefix: Path) -> Iterator[str]:
    # A virtual environment remembers the name it was made with, programs the real one.
    for base in dict.fromkeys((prefix, prefix.resolve())):
        for part in PARTS:
            if (base / part).exists():
                yield str(base / part)


def _search(
    entries: list[str], by_entry: dict[str, list[Path]], seen: tuple[Path, tuple[str, ...], Iterable[Path]]
) -> Iterable[str]:
    """The job's own order, with shims replaced by what they lead to and what cannot be seen left out."""
    project, places, prefixes = seen
    visible = (*SYSTEM, *places, str(project))
    found: list[str] = []
    for entry in entries:
        if any(Path(entry).is_relative_to(folder) for folder in visible):
            found.append(entry)
        else:
            found += [f"{prefix}/bin" for prefix in by_entry.get(entry, [])]
    return dict.fromkeys((*found, *SYSTEM_PATH, *(f"{prefix}/bin" for prefix in prefixes)))
