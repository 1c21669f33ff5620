"""The sandbox of commands that a model writes: bubblewrap with an allow-list, never the whole system."""

import contextlib
import functools
import os
import selectors
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.tools import Workspace

MOST_OUTPUT = 65_536
PROBE_SECS = 10
MOST_ENTRIES = 200_000

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "alternatives",
    "passwd",
    "group",
    "nsswitch.conf",
    "mime.types",
    "magic",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki/tls/certs",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "perl",
    "fonts",
)
COVERED = ("/tmp", "/var", "/run", "/root", "/home")  # noqa: S108 - what is hidden, not what is used
WITHOUT_WRITES = (".git", "node_modules")

# User namespaces are forbidden on some systems, nested ones must be where they can be.
_VARIANTS = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())


@dataclass(frozen=True)
class Completed:
    """How a command ended.  `output` is both streams in order, head and tail when there was too much."""

    exit_code: int
    output: bytes
    timed_out: bool


class Sandbox:
    """One way to isolate that was seen to work on this machine."""

    def __init__(self, program: str, variant: Sequence[str]) -> None:
        self._program = program
        self._variant = tuple(variant)

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
        """Runs the command with nothing in view but programs, libraries and the project; leaves no process behind."""
        argv = [*self._frame(workspace.project, path), *_project(workspace, writable=writable)]
        process = subprocess.Popen(
            [self._program, *argv, "--chdir", str(cwd), "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={},
            start_new_session=True,
        )
        return _collect(process, timeout_secs)

    def _frame(self, project: Path, path: str) -> list[str]:
        prefixes = interpreter_prefixes(path)
        bins = [f"{prefix}/bin" for prefix in prefixes]
        own = [entry for entry in path.split(":") if entry and Path(entry).is_relative_to(project)]
        search = ":".join([*own, *bins, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
        return [
            *("--unshare-all", *self._variant, "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--clearenv", "--setenv", "PATH", search, "--setenv", "HOME", "/tmp"),  # noqa: S108 - the sandbox's own
            *("--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"),
            *_system(),
            *("--dev", "/dev", "--proc", "/proc"),
            *(part for folder in COVERED for part in ("--tmpfs", folder)),
            *(part for prefix in prefixes for part in ("--ro-bind", prefix, prefix)),
        ]


@functools.cache
def find_sandbox() -> Sandbox | None:
    """A sandbox that really ran a command just now; None where none can be had."""
    program = shutil.which("bwrap")
    if program is None or sys.platform != "linux":
        return None
    for variant in _VARIANTS:
        sandbox = Sandbox(program, variant)
        try:
            probe = Workspace(Path("/usr"))
            done = sandbox.run(probe, ["/bin/true"], writable=False, cwd=Path("/"), timeout_secs=PROBE_SECS)
        except OSError:
            return None
        if done.exit_code == 0:
            return sandbox
    return None


def refusal(workspace: Workspace, private: Sequence[Path]) -> str | None:
    """Why commands may not run in this project, None when they may.  `private`: what no session may see."""
    project = workspace.project
    if project == Path("/") or Path.home().resolve().is_relative_to(project):
        return "The project is the home folder, or holds it."
    for path in private:
        real = path.resolve()
        if real.is_relative_to(project) or project.is_relative_to(real):
            return "The project holds Cronmend's own data."
    for number, entry in enumerate(_walk(project)):
        if number > MOST_ENTRIES:
            return f"The project has more than {MOST_ENTRIES:,} files."
        if _is_socket(entry):
            return f"The project holds a socket ({entry.name}), a door to another process."
    return None


def protected(project: Path) -> list[Path]:
    """Parts of the project that stay as they are: repositories, environments, installed packages."""
    found = []
    for folder, names, files in os.walk(project):
        for name in list(names):
            path = Path(folder, name)
            if name in WITHOUT_WRITES or (path / "pyvenv.cfg").is_file():
                names.remove(name)
                found.append(path)
        if ".git" in files:  # a worktree's pointer to its repository
            found.append(Path(folder, ".git"))
    return found


@functools.lru_cache(maxsize=64)
def interpreter_prefixes(path: str) -> tuple[str, ...]:
    """Installations of Python and Node outside the system's folders: this app's own and those that `path` names."""
    asked = [("python3", "import sys; print(sys.base_prefix)"), ("python", "import sys; print(sys.base_prefix)")]
    found = [str(Path(sys.base_prefix).resolve())]
    for name, question in asked:
        program = shutil.which(name, path=path) if path else None
        if program is not None:
            found += _answer([program, "-I", "-c", question])
    node = shutil.which("node", path=path) if path else None
    if node is not None:
        found.append(str(Path(node).resolve().parent.parent))
    home = Path.home().resolve()
    return tuple(
        prefix
        for prefix in dict.fromkeys(found)
        if not prefix.startswith("/usr") and prefix != "/" and not home.is_relative_to(prefix) and Path(prefix).is_dir()
    )


def _answer(command: list[str]) -> list[str]:
    # A shim of a version manager is a script: only the interpreter it leads to knows where it lives.
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(Path(line).resolve()) for line in done.stdout.split("\n") if line]


def _system() -> Iterator[str]:
    for folder in SYSTEM:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), folder)
        elif path.is_dir():
            yield from ("--ro-bind", folder, folder)
    for name in ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _project(workspace: Workspace, *, writable: bool) -> Iterator[str]:
    """The project last, so that nothing bound before can hide it; then what in it is covered."""
    project = str(workspace.project)
    yield from ("--bind" if writable else "--ro-bind", project, project)
    if writable:
        for path in protected(workspace.project):
            yield from ("--ro-bind", str(path), str(path))
    for path in workspace.forbidden:
        if path.is_dir():
            yield from ("--tmpfs", str(path))
        elif path.exists():
            yield from ("--ro-bind", os.devnull, str(path))


def _collect(process: "subprocess.Popen[bytes]", timeout_secs: float) -> Completed:
    """Reads until the command ends.  Its pid namespace ends with it, so nobody holds the pipe after that."""
    pipe = process.stdout
    if pipe is None:
        raise ValueError("the command has no output")
    deadline = time.monotonic() + timeout_secs
    kept = _Kept()
    timed_out = False
    with pipe, selectors.DefaultSelector() as selector:
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ready = selector.select(min(0.2, max(0.0, deadline - time.monotonic())))
            data = pipe.read(MOST_OUTPUT) if ready else None
            kept.add(data or b"")
            if ready and not data:
                break
            if time.monotonic() > deadline:
                timed_out = True
                break
            if not ready and process.poll() is not None:
                break
    _end(process)
    return Completed(process.returncode, kept.output(), timed_out)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # everything inside dies with it (--die-with-parent, own pid namespace)
            process.wait()


class _Kept:
    """The first and the last half of what may be kept."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = MOST_OUTPUT // 2 - len(self._head)
        self._head += data[:room]
        tail = self._tail + data[room:]
        self._left_out += max(0, len(tail) - MOST_OUTPUT // 2)
        self._tail = tail[-(MOST_OUTPUT // 2) :]

    def output(self) -> bytes:
        mark = f"\n[... {self._left_out:,} bytes left out ...]\n".encode() if self._left_out else b""
        return self._head + mark + self._tail


def _walk(project: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(project):
        for name in (*names, *files):
            yield Path(folder, name)


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False
