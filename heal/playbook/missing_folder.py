"""An output folder inside the project that is not there (any more)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from heal.playbook.case import Case, Repair, Verdict
from heal.playbook.command_line import scripts_of

NAME = "missing_folder"
ORDER = 30

# A text that names the path of a failed write, and how sure it is that it was one.
_WRITES = (
    re.compile(
        r"cannot create (?:regular file |directory )?'?(?P<path>[^':\n]{1,500})'?: (?:No such file|Directory non)"
    ),
    re.compile(
        r"(?:cp|mv|install|ln): cannot (?:create|move|stat)[^\n]{0,300}? to '(?P<path>[^'\n]{1,500})': No such file"
    ),
    re.compile(r"tee: '?(?P<path>[^':\n]{1,500})'?: No such file or directory"),
    re.compile(r"tar(?: \(child\))?: (?P<path>[^:\n]{1,500}): Cannot open: No such file"),
    re.compile(r"OSError: Cannot save file into a non-existent directory: '(?P<path>[^'\n]{1,500})'"),
    re.compile(r"touch: cannot touch '(?P<path>[^'\n]{1,500})': No such file or directory"),
)
_FOLDER_ITSELF = "non-existent directory"
_PYTHON = re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^'\n]{1,500})'")
_NODE = re.compile(r"ENOENT: no such file or directory, (?:open|copyfile|rename) '(?P<path>[^'\n]{1,500})'")
_PYTHON_WRITES = re.compile(
    r"open\([^\n]{0,300}?,\s*(?:mode\s*=\s*)?['\"][rbt]{0,2}[wax]|\.open\(\s*(?:mode\s*=\s*)?['\"][bt]?[wax]|"
    r"write_text|write_bytes|to_csv|to_json|to_excel|to_parquet|savefig|\.touch\(|"
    r"json\.dump\(|shutil\.(?:copy|move)|FileHandler\(|sqlite3\.connect|ZipFile\([^\n]{0,200}?['\"][wax]"
)
_NODE_WRITES = re.compile(r"writeFile|createWriteStream|appendFile|copyFile")
_BASH = re.compile(r"(?:line \d+|\d+): (?P<path>[^:\n]{1,500}): No such file or directory")


def look(case: Case) -> Verdict | None:
    """A write failed because the folder of its path, inside the project, does not exist."""
    for path in _failed_writes(case):
        missing = _missing_folders(case, path)
        if missing:
            return _verdict(case, missing)
    return None


def _failed_writes(case: Case) -> Iterator[Path]:
    said = f"{case.stderr_tail}\n{case.stdout_tail}"
    for pattern in _WRITES:
        for match in pattern.finditer(said):
            name = match["path"]
            yield Path(case.cwd, name, "x") if _FOLDER_ITSELF in match[0] else Path(case.cwd, name)
    # Of a program on the command line the traceback shows no source.
    if _PYTHON_WRITES.search(f"{said}\n{case.command}"):
        yield from (Path(case.cwd, match["path"]) for match in _PYTHON.finditer(said))
    if _NODE_WRITES.search(said):
        yield from (Path(case.cwd, match["path"]) for match in _NODE.finditer(said))
    for match in _BASH.finditer(said):
        if _is_redirected_to(case, match["path"]):
            yield Path(case.cwd, match["path"])


def _is_redirected_to(case: Case, name: str) -> bool:
    """bash says the same for `< missing` and `> missing/x`: the script's text tells which it was."""
    texts = [case.command]
    for script in scripts_of(case):
        try:
            texts.append(script.path.read_text(errors="replace"))
        except OSError:
            continue
    last = re.escape(Path(name).name)
    written = re.compile(rf">>?\|?\s*[\"']?[^\s\"'<>|&;]{{0,300}}{last}")
    read = re.compile(rf"<\s*[\"']?[^\s\"'<>|&;]{{0,300}}{last}")
    joined = "\n".join(texts)
    return bool(written.search(joined)) and not read.search(joined)


def _missing_folders(case: Case, path: Path) -> list[Path]:
    """The folders to make, outermost first; none where making them would be wrong."""
    folder = Path(os.path.normpath(path.parent))
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    real = Path(os.path.realpath(folder))
    is_ours = real.is_relative_to(case.project) and not any(real.is_relative_to(hidden) for hidden in case.forbidden)
    # A link that leads nowhere is a disk that is not mounted: a folder of our own would fill up unseen.
    if not is_ours or not folder.is_dir() or not os.access(folder, os.W_OK):
        return []
    if ".git" in folder.parts or any(part == ".." for part in path.parts[len(Path(case.cwd).parts) :]):
        return []
    return list(reversed(missing))


def _verdict(case: Case, missing: list[Path]) -> Verdict:
    names = tuple(Path(os.path.realpath(folder)).relative_to(case.project).as_posix() for folder in missing)
    return Verdict(
        kind="repair",
        rule=NAME,
        cause=f"missing output folder: {names[-1]}",
        explanation=f"The job writes into {names[-1]}, and that folder does not exist.",
        repair=Repair(names, f"Made the folder {names[-1]}", lambda: _make(missing)),
    )


def _make(missing: list[Path]) -> None:
    if os.path.lexists(missing[0]):
        raise ValueError(f"{missing[0].name} exists by now")
    for folder in missing:
        folder.mkdir()
