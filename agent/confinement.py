"""Opening files of a workspace and no others: every path is resolved, then walked without following a link."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.terrain import ENVIRONMENT_MARK, ENVIRONMENT_PARTS, is_sealed
from agent.tools import ToolError, Workspace

MOST_BYTES = 5 * 1024 * 1024
NEW_FILE_MODE = 0o644


@dataclass(frozen=True)
class Content:
    """A regular file as it was read: bytes, permission bits, owner and group."""

    data: bytes
    mode: int
    owner: tuple[int, int]


def relative_to_project(workspace: Workspace, text: str) -> PurePosixPath:
    """The path, relative to the project, that `text` leads to.  Raises ToolError for one that leads elsewhere."""
    if "\0" in text or not text:
        raise ToolError("That is not a path.")
    real = Path(os.path.realpath(workspace.project / text))
    if not real.is_relative_to(workspace.project):
        raise ToolError(f"{text} is outside the project; only the project folder can be reached.")
    if any(real.is_relative_to(path) for path in workspace.forbidden):
        raise ToolError(f"{text} cannot be reached from here.")
    return PurePosixPath(real.relative_to(workspace.project))


def refuse_sealed(workspace: Workspace, path: PurePosixPath) -> None:
    """Raises ToolError for a path in a repository's, environment's or package folder's own files."""
    folder = workspace.project
    if (folder / ENVIRONMENT_MARK).is_file() and path.parts[:1] and path.parts[0] in ENVIRONMENT_PARTS:
        raise ToolError(f"{path} is part of a virtual environment, which is read-only here.")
    for part in path.parts:
        folder /= part
        if is_sealed(folder):
            raise ToolError(f"{path} is in {part}, which is read-only here.")
    if path.name == ENVIRONMENT_MARK:
        raise ToolError(f"{path} would make its folder a virtual environment; that is not for this tool.")


def read_file(workspace: Workspace, path: PurePosixPath) -> Content:
    """The content of a regular file.  Raises ToolError, FileNotFoundError when there is none."""
    with _parent(workspace, path) as parent:
        return _read(parent, path)


def write_file(workspace: Workspace, path: PurePosixPath, data: bytes, old: Content | None) -> None:
    """Puts a whole new file in place of the old one, so that another name of the old one keeps its content.

    Raises ToolError, also when the file is no longer the `old` one: a person may have changed it meanwhile.
    """
    with _parent(workspace, path, make=True) as parent:
        temporary = f".cronmend-{secrets.token_hex(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, NEW_FILE_MODE, dir_fd=parent), "wb") as file:
                file.write(data)
                if old is not None:
                    _keep_facts(file.fileno(), old)
                file.flush()
                os.fsync(file.fileno())
            _refuse_changed(parent, path, old)
            os.rename(temporary, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise


def files_below(workspace: Workspace, start: PurePosixPath) -> Iterator[PurePosixPath]:
    """Regular files under a folder, without links and forbidden parts; sealed folders only when `start` is in one."""
    base = workspace.project / start
    if base.is_file() and not base.is_symlink():
        yield start
        return
    for folder, names, files in os.walk(base):
        here = Path(folder)
        names[:] = sorted(name for name in names if not _is_left_out(workspace, here / name))
        for name in sorted(files):
            path = here / name
            if path not in workspace.forbidden and _is_regular(path):
                yield PurePosixPath(path.relative_to(workspace.project))


def _is_left_out(workspace: Workspace, folder: Path) -> bool:
    return is_sealed(folder) or folder in workspace.forbidden


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _read(parent: int, path: PurePosixPath) -> Content:
    # Looked at before it is opened: opening alone makes some devices act.
    _refuse_irregular(os.stat(path.name, dir_fd=parent, follow_symlinks=False), path)
    # Without O_NONBLOCK the opening of a named pipe, put there meanwhile, waits for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path.name, flags, dir_fd=parent), "rb") as file:
        facts = os.fstat(file.fileno())
        _refuse_irregular(facts, path)
        if facts.st_size > MOST_BYTES:
            raise ToolError(f"{path} is too large ({facts.st_size:,} bytes; at most {MOST_BYTES:,}).")
        return Content(file.read(MOST_BYTES + 1), facts.st_mode & 0o777, (facts.st_uid, facts.st_gid))


def _refuse_irregular(facts: os.stat_result, path: PurePosixPath) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise ToolError(f"{path} is a folder.")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolError(f"{path} is not a regular file.")


def _refuse_changed(parent: int, path: PurePosixPath, old: Content | None) -> None:
    try:
        present = _read(parent, path)
    except FileNotFoundError:
        present = None
    if present != old:
        raise ToolError(f"{path} was changed by someone else meanwhile; read it again.")


def _keep_facts(file: int, old: Content) -> None:
    # Only an administrator can give a file away, and only a member its group.
    with contextlib.suppress(OSError):
        os.fchown(file, *old.owner)
    os.fchmod(file, old.mode)


@contextlib.contextmanager
def _parent(workspace: Workspace, path: PurePosixPath, *, make: bool = False) -> Iterator[int]:
    """The opened folder of the path, reached from the project step by step."""
    if not path.name:
        raise ToolError("The project itself is a folder.")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(workspace.project, flags)
    try:
        for part in path.parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)
