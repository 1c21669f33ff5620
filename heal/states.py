"""The state of a file as one short text, so that 'still as the heal left it' is a comparison."""

import hashlib
import os
import stat
from pathlib import Path

ABSENT = "absent"


def state_of(path: Path) -> str:
    """`absent`, `dir`, `link:<target>`, `other`, or `file:<mode>:<sha256>`."""
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    if stat.S_ISLNK(facts.st_mode):
        return f"link:{os.readlink(path)}"  # noqa: PTH115 - the text as it stands
    if stat.S_ISDIR(facts.st_mode):
        return "dir"
    if not stat.S_ISREG(facts.st_mode):
        return "other"
    with path.open("rb") as file:
        return f"file:{stat.S_IMODE(facts.st_mode):o}:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def is_outside_undo(relative: str) -> bool:
    """Whether the path lies in a `.git`: shown in the diff, never put back."""
    return ".git" in Path(relative).parts


def inside(project: Path, relative: str) -> Path | None:
    """The absolute path when `relative` lies in the project, also through its real parent folder."""
    path = Path(relative)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        return None
    target = project / path
    real_parent = Path(os.path.realpath(target.parent))
    return target if real_parent.is_relative_to(os.path.realpath(project)) else None
