"""Opening files of a workspace and no others: every path is resolved, then walked without following a link."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agent.sandbox import WITHOUT_WRITES
from agent.tools import ToolError, Workspace

MOST_BYTES = 5 * 1024 * 1024
NEW_FILE_MODE = 0o666


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


def refuse_protected(workspace: Workspace, path: PurePosixPath) -> None:
    """Raises ToolError for a path in a repository's, environment's or package folder's own files."""
    folder = workspace.project
    for part in path.parts:
        folder /= part
        if part in WITHOUT_WRITES or (folder / "pyvenv.cfg").is_file():
            raise ToolError(f"{path} is in {part}, which is read-only here.")


def read_file(workspace: Workspace, path: PurePosixPath) -> tuple[bytes, int]:
    """Content and mode of a regular file.  Raises ToolError."""
    with _parent(workspace, path) as parent:
        try:
            # Without O_NONBLOCK the opening of a named pipe waits for ever.
            file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}.") from None
        with os.fdopen(file, "rb") as opened:
            facts = os.fstat(opened.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise ToolError(f"{path} is not a regular file.")
            if facts.st_size > MOST_BYTES:
                raise ToolError(f"{path} is too large ({facts.st_size:,} bytes; at most {MOST_BYTES:,}).")
            return opened.read(), stat.S_IMODE(facts.st_mode)


def write_file(workspace: Workspace, path: PurePosixPath, data: bytes, mode: int | None) -> None:
    """Puts a whole new file in place of the old one, so that another name of the old one keeps its content."""
    with _parent(workspace, path, make=True) as parent:
        temporary = f".cronmend-{secrets.token_hex(6)}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, NEW_FILE_MODE, dir_fd=parent), "wb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
            os.rename(temporary, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise ToolError(f"{path}: {error.strerror}.") from None


@contextlib.contextmanager
def _parent(workspace: Workspace, path: PurePosixPath, *, make: bool = False) -> Iterator[int]:
    """The opened folder of the path, reached from the project step by step."""
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
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror}.") from None
    finally:
        os.close(folder)


def files_below(workspace: Workspace, start: PurePosixPath) -> Iterator[Path]:
    """Regular files under a folder, without links, forbidden parts, repositories and packages."""
    base = workspace.project / start
    if base.is_file() and not base.is_symlink():
        yield base
        return
    for folder, names, files in os.walk(base):
        kept = [name for name in names if name not in WITHOUT_WRITES and Path(folder, name) not in workspace.forbidden]
        names[:] = sorted(kept)
        for name in sorted(files):
            path = Path(folder, name)
            if path not in workspace.forbidden and stat.S_ISREG(path.lstat().st_mode):
                yield path
