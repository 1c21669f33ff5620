"""The sandbox of commands that a model writes: bubblewrap with an allow-list, never the whole system."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.capture import Completed, collect
from agent.interpreters import SYSTEM, find_interpreters
from agent.seccomp import seccomp_program
from agent.terrain import Limits, Terrain, survey
from agent.tools import Workspace

PROBE_SECS = 10
REFUSE_AT = Limits(entries=300_000, secs=2.0)
RUN_AT = Limits(entries=1_000_000, secs=10.0)
COULD_NOT_START = 125

ETC = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
HOSTS = b"127.0.0.1 localhost\n::1 localhost\n"
COVERED = ("/tmp", "/var", "/run", "/root", "/home")  # noqa: S108 - what is hidden, not what is used
HOME = "/tmp"  # noqa: S108 - the sandbox's own, empty at each start
MOST_TEMPORARY_BYTES = 512 * 1024 * 1024
# No project: the whole of such a folder is the system's, and holds doors to other processes.
SYSTEM_FOLDERS = frozenset({*SYSTEM, *COVERED, "/", "/boot", "/dev", "/etc", "/opt", "/proc", "/srv", "/sys"})

# bubblewrap is itself outside the sandbox: it is looked for where only an administrator can put it.
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin"
# User namespaces are forbidden on some systems; nested ones can be closed on others only.
_VARIANTS = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())


class Sandbox:
    """One way to isolate that was seen to work on this machine."""

    def __init__(self, program: str, variant: Sequence[str], *, may_limit: bool = False) -> None:
        self._program = program
        self._variant = tuple(variant)
        self._limit = ("--size", str(MOST_TEMPORARY_BYTES)) if may_limit else ()

    def run(
        self,
        workspace: Workspace,
        command: Sequence[str],
        *,
        writable: bool,
        cwd: Path,
        path: str = "",
        timeout_secs: float,
    ) -> Completed:
        """Runs the command with nothing in view but programs, libraries and the project; leaves no process behind.

        `path` is the PATH of the job.  A command that could not be started ends with 125 and says why.
        """
        terrain = survey(workspace.project, RUN_AT)
        if not terrain.is_complete:
            return Completed(COULD_NOT_START, b"The project is too large to be looked through.\n", timed_out=False)
        interpreters = find_interpreters(path, workspace.project, terrain.environments)
        may_write = writable and not terrain.has_linked_repository
        view = [
            *self._frame(interpreters.search),
            *(part for place in interpreters.places for part in ("--ro-bind", place, place)),
            *_project(workspace, terrain, may_write=may_write),
            *("--remount-ro", "/", "--chdir", str(cwd)),
        ]
        return self._start(view, command, timeout_secs)

    def works(self) -> bool:
        """Whether a command really runs."""
        try:
            done = self._start(self._frame(""), ["/bin/true"], PROBE_SECS)
        except OSError:
            return False
        return done.exit_code == 0

    def _frame(self, search: str) -> list[str]:
        variables = {"PATH": search, "HOME": HOME, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return [
            *("--unshare-all", *self._variant, "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--clearenv", *(part for name, value in variables.items() for part in ("--setenv", name, value))),
            *_system(),
            # Run by an administrator, a command without any capability still owns the kernel's settings there.
            *("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"),
            *(part for folder in COVERED for part in (*self._limit, "--tmpfs", folder)),
        ]

    def _start(self, view: list[str], command: Sequence[str], timeout_secs: float) -> Completed:
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                output, output_end = _pipe(ours, theirs)
                info, info_end = _pipe(ours, theirs)
                hosts = _memory(theirs, HOSTS)
                passed = [info_end, hosts]
                extra = ["--info-fd", str(info_end), "--ro-bind-data", str(hosts), "/etc/hosts"]
                program = seccomp_program()
                if program is not None:
                    passed.append(_memory(theirs, program))
                    extra += ["--seccomp", str(passed[-1])]
                process = subprocess.Popen(
                    [self._program, *extra, *view, "--", *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output_end,
                    stderr=output_end,
                    env={},
                    pass_fds=passed,
                    start_new_session=True,
                )
            return collect(process, output, info, timeout_secs)


@functools.cache
def find_sandbox() -> Sandbox | None:
    """A sandbox that really ran a command just now; None where none can be had."""
    program = shutil.which("bwrap", path=_PROGRAM_PATH)
    if program is None or sys.platform != "linux":
        return None
    may_limit = _knows(program, "--size")
    found = (Sandbox(program, variant, may_limit=may_limit) for variant in _VARIANTS)
    return next((sandbox for sandbox in found if sandbox.works()), None)


def refusal(workspace: Workspace, private: Sequence[Path]) -> str | None:
    """Why commands may not run in this project, None when they may.  `private`: what no session may see."""
    project = workspace.project
    if str(project) in SYSTEM_FOLDERS:
        return f"The project is {project}, a folder of the system."
    if Path.home().resolve().is_relative_to(project):
        return "The project is the home folder, or holds it."
    for path in private:
        real = path.resolve()
        if real.is_relative_to(project) or project.is_relative_to(real):
            return "The project and Cronmend's own data lie in one another."
    terrain = survey(project, REFUSE_AT)
    if terrain.sockets:
        return f"The project holds a socket ({terrain.sockets[0].name}), a door to another process."
    if not terrain.is_complete:
        return "The project is too large to be looked through for doors to other processes."
    return None


def _system() -> Iterator[str]:
    for folder in SYSTEM:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), folder)
        elif path.is_dir():
            yield from ("--ro-bind", folder, folder)
    etc = Path("/etc")
    for place in (*(etc / name for name in ETC), *sorted(etc.glob("python3*"))):
        yield from ("--ro-bind-try", str(place), str(place))


def _project(workspace: Workspace, terrain: Terrain, *, may_write: bool) -> Iterator[str]:
    """The project last, so that nothing bound before can hide it; then what in it is covered."""
    project = str(workspace.project)
    yield from ("--bind" if may_write else "--ro-bind", project, project)
    if may_write:
        # A folder that something is mounted on cannot be renamed, so what is covered cannot be moved into the open.
        for parent in _parents(workspace):
            yield from ("--bind", parent, parent)
        for sealed in terrain.sealed:
            yield from ("--ro-bind", str(sealed), str(sealed))
    for socket in terrain.sockets:
        yield from ("--ro-bind", os.devnull, str(socket))
    for path in workspace.forbidden:
        if not path.is_relative_to(project) or path.is_symlink() or not path.exists():
            continue
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", os.devnull, str(path))


def _parents(workspace: Workspace) -> list[str]:
    """The folders between the project and what is forbidden in it, outermost first."""
    found = {
        str(parent)
        for path in workspace.forbidden
        for parent in path.parents
        if parent != workspace.project and parent.is_relative_to(workspace.project) and parent.is_dir()
    }
    return sorted(found)


def _knows(program: str, option: str) -> bool:
    try:
        done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=PROBE_SECS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return option in done.stdout


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write


def _memory(theirs: contextlib.ExitStack, data: bytes) -> int:
    file = os.memfd_create("cronmend", os.MFD_CLOEXEC)
    theirs.callback(os.close, file)
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def private_within(private: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """What of the app's own lies in a project: it may not even be read there."""
    return tuple(path for path in private if path.is_relative_to(folder.resolve()))
