"""What a name in the output really is on this disk: texts alone mislead about missing files and interpreters."""

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

_USUAL = (
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/opt/homebrew/bin",
    "/snap/bin",
)
_OWN = (".venv/bin", "venv/bin", "node_modules/.bin", "bin")
_FOREIGN = frozenset({".venv", "venv", "site-packages", "dist-packages", "node_modules"})
_MOST_HEAD_BYTES = 4_096


@dataclass(frozen=True)
class Places:
    """The folders of a run.  Nothing here raises: what cannot be looked at is not there."""

    cwd: str
    project: str | None
    path: str

    def file(self, name: str) -> Path | None:
        """The file or folder of that name, seen from the run's folder or else from the project."""
        for base in (self.cwd, self.project or self.cwd):
            candidate = Path(base, name)
            if _exists(candidate):
                return candidate
        return None

    def shown(self, name: str) -> str:
        """The name as a person in the project would write it."""
        root = self.project or self.cwd
        return os.path.relpath(name, root) if name.startswith("/") and _is_inside(name, root) else name

    def own(self, name: str) -> str | None:
        """The name of a file of the project itself, relative to it; None for any other file."""
        root = self.project or self.cwd
        found = self.file(name)
        if found is None or not _is_inside(found, root) or not _is_file(found):
            return None
        relative = os.path.relpath(os.path.realpath(found), os.path.realpath(root))
        return None if _FOREIGN & set(Path(relative).parts) else relative

    def interpreter_fault(self, name: str) -> tuple[str, str] | None:
        """Why a file that is there cannot be started by its first line: category and cause."""
        found = self.file(name)
        first = _head(found).partition(b"\n")[0].decode(errors="replace") if found else ""
        if not first.startswith("#!"):
            return None
        if first.endswith("\r"):
            return "script-error", f"bad interpreter (CRLF line endings): {name}"
        words = first[2:].split()
        if words and not _exists(Path(self.cwd, words[0])):
            return "missing-file", f"missing interpreter {words[0]}: {name}"
        if len(words) == 2 and Path(words[0]).name == "env" and not shutil.which(words[1], path=self.path):
            return "missing-file", f"command not found: {words[1]} (the interpreter of {name})"
        return None

    def has_crlf(self, name: str) -> bool:
        """Whether the first line of the file ends with CR LF."""
        found = self.file(name)
        return found is not None and _head(found).partition(b"\n")[0].endswith(b"\r")

    def lacks_exec_bit(self, name: str) -> bool:
        """Whether it is a file that no one may start."""
        found = self.file(name)
        return found is not None and _is_file(found) and not _mode(found) & 0o111

    def is_program(self, name: str) -> bool:
        """Whether its first bytes are those of a script or a binary."""
        found = self.file(name)
        return found is not None and _head(found).startswith((b"#!", b"\x7fELF"))

    def is_folder(self, name: str) -> bool:
        """Whether there is a folder of that name."""
        found = self.file(name)
        return found is not None and os.path.isdir(found)  # noqa: PTH112 - never raises

    def finds(self, command: str) -> bool:
        """Whether the run's PATH leads to the command."""
        return shutil.which(command, path=self.path) is not None

    def is_binary(self, name: str) -> bool:
        """Whether it is a compiled program."""
        return _head(self.file(name)).startswith(b"\x7fELF")

    def lacks_folder(self, name: str) -> str | None:
        """The folder of that file, when it is what is missing."""
        folder = Path(name).parent
        return None if str(folder) in (".", "/") or self.file(str(folder)) else self.shown(str(folder))

    def elsewhere(self, command: str) -> str | None:
        """A usual folder that holds the command and is not on the run's PATH."""
        own = [str(Path(self.project, folder)) for folder in _OWN] if self.project else []
        folders = [folder for folder in (*own, *_USUAL) if folder not in self.path.split(":")]
        found = None if "/" in command else shutil.which(command, path=":".join(folders) or "/nowhere")
        return str(Path(found).parent) if found else None

    def environment_with(self, module: str) -> str | None:
        """The project's own Python environment, when it has the module."""
        top = module.strip(".").partition(".")[0] or "-"
        for folder in (".venv", "venv"):
            for packages in _libraries(Path(self.project or self.cwd, folder)):
                if _exists(packages / top) or _exists(packages / f"{top}.py"):
                    return folder
        return None


def first_word(command: str) -> str:
    """The program that the command starts, as far as can be told without a shell."""
    try:
        words = shlex.split(command.partition("\n")[0], comments=True)
    except ValueError:
        words = command.split()
    return next((word for word in words if "=" not in word.partition("/")[0]), "").rstrip(";") or "the command"


def script_in(command: str, places: Places) -> str | None:
    """The first word of the command that is a file of the project."""
    words = command.replace(";", " ").replace("&", " ").replace("|", " ").split()
    return next((word for word in (word.strip("'\"") for word in words) if word and places.own(word)), None)


def _libraries(environment: Path) -> list[Path]:
    try:
        return sorted(environment.glob("lib/python3*/site-packages"))
    except (OSError, ValueError):
        return []


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - never raises


def _is_inside(path: str | Path, root: str) -> bool:
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):
        return False


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0o777


def _head(path: Path | None) -> bytes:
    # Only a regular file: opening a pipe would wait for its writer.
    if path is None or not _is_file(path):
        return b""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_HEAD_BYTES)
    except (OSError, ValueError):
        return b""
