"""The sandbox: canaries are planted all over the machine, and a command finds none of them."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.confined import SANDBOX, python, run, said

from agent.tools import Workspace

CANARY = "canary-7c1f"

pytestmark = [
    pytest.mark.mission("B9"),
    pytest.mark.skipif(SANDBOX is None, reason="this machine has no sandbox"),
]


@pytest.fixture
def project(tmp_path: Path) -> Workspace:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return Workspace(folder)


@pytest.fixture
def planted() -> Iterator[Callable[[str], Path]]:
    """Plants a canary in a new folder under the given one."""
    folders: list[Path] = []

    def plant(where: str) -> Path:
        folders.append(Path(tempfile.mkdtemp(dir=where, prefix="cronmend-test-")).resolve())
        (folders[-1] / "secret").write_text(CANARY)
        return folders[-1] / "secret"

    yield plant
    for folder in folders:
        shutil.rmtree(folder)


# What must work


def test_a_project_under_the_folder_for_temporary_files_is_writable(planted: Callable[[str], Path]) -> None:
    folder = planted(tempfile.gettempdir()).parent

    done = run(Workspace(folder), "cat secret && echo new > made && cat made")

    assert (done.exit_code, done.output) == (0, f"{CANARY}new\n".encode())
    assert (folder / "made").read_text() == "new\n"


def test_a_project_in_the_home_folder_is_reached_and_its_neighbours_are_not(planted: Callable[[str], Path]) -> None:
    mine, other = planted(str(Path.home())).parent, planted(str(Path.home()))

    done = run(Workspace(mine), f"cat secret; cat {other}; ls {other.parent.parent}")

    assert done.output.decode().count(CANARY) == 1
    assert mine.name in done.output.decode()
    assert other.parent.name not in done.output.decode().splitlines()


def test_python_of_the_path_works_with_its_library(project: Workspace) -> None:
    assert python(project, "import json, ssl, sqlite3, sys; print(json.dumps(sys.version_info[0]))") == "3\n"


def test_an_environment_in_the_project_finds_its_interpreter(project: Workspace) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.project / ".venv"], check=True)

    done = run(project, ".venv/bin/python -c 'import sys, json; print(sys.prefix)'", path="/usr/bin:/bin")

    assert (done.exit_code, done.output.decode().strip()) == (0, str(project.project / ".venv"))


def test_the_order_of_the_jobs_path_is_kept(project: Workspace) -> None:
    own = project.project / "bin"

    done = run(project, "echo $PATH", path=f"{own}:/nowhere:/usr/bin:/bin")

    assert done.output.decode().startswith(f"{own}:/usr/bin:/bin:")


def test_both_streams_come_in_order_with_the_exit_code(project: Workspace) -> None:
    done = run(project, "echo one; echo two >&2; echo three; exit 7")

    assert (done.exit_code, done.output, done.timed_out) == (7, b"one\ntwo\nthree\n", False)


def test_a_server_on_localhost_inside_can_be_reached_from_inside(project: Workspace) -> None:
    answer = python(
        project,
        "import socket\n"
        "server = socket.create_server(('localhost', 0))\n"
        "socket.create_connection(server.getsockname()).close()\n"
        "print('reached')\n",
    )

    assert answer == "reached\n"


# What must be out of reach


@pytest.mark.parametrize("where", [tempfile.gettempdir(), str(Path.home()), "/var/tmp", "/opt"])
def test_a_file_elsewhere_on_the_machine_cannot_be_read(
    project: Workspace, planted: Callable[[str], Path], where: str
) -> None:
    secret = planted(where)

    assert CANARY not in said(project, f"cat {secret}; ls -R {secret.parent}; cat /proc/self/root{secret}")


def test_a_link_to_a_file_outside_leads_nowhere(project: Workspace, planted: Callable[[str], Path]) -> None:
    (project.project / "link").symlink_to(planted(tempfile.gettempdir()))

    assert CANARY not in said(project, "cat link")


@pytest.mark.parametrize("name", ["node_modules", ".git", ".venv"])
def test_a_link_with_a_sealed_name_opens_no_door(project: Workspace, planted: Callable[[str], Path], name: str) -> None:
    secret = planted(tempfile.gettempdir())
    said(project, f"ln -s {secret.parent} {name}")

    assert CANARY not in said(project, f"cat {name}/secret {secret}")


def test_no_secret_file_of_the_system_is_there(project: Workspace) -> None:
    homes = Path("/proc/1/root") / "home"
    done = run(project, f"ls /etc/shadow /etc/ssh /etc/ssl/private /etc/sudoers /sys {homes} /boot")

    assert done.exit_code != 0
    assert [
        line for line in done.output.decode().splitlines() if "cannot access" not in line and "/home" not in line
    ] == []


def test_the_environment_of_the_app_is_not_seen_by_any_way(project: Workspace) -> None:
    sleeper = subprocess.Popen(["sleep", "60"], env={"MARKER": CANARY})
    try:
        text = said(project, f"env; cat /proc/*/environ /proc/{sleeper.pid}/environ | tr '\\0' '\\n'; ls /proc")
    finally:
        sleeper.kill()
        sleeper.wait()

    assert CANARY not in text
    assert "HOME=/tmp" in text
    assert str(sleeper.pid) not in text.splitlines()


def test_an_environment_variable_of_this_process_is_not_passed_on(
    project: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)

    assert CANARY not in said(project, "env; cat /proc/1/environ /proc/self/environ")


def test_a_server_of_the_machine_cannot_be_reached(project: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = python(project, f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)\nprint('reached')\n")

    assert "Connection refused" in text
    assert "reached" not in text.splitlines()


def test_a_unix_socket_elsewhere_cannot_be_reached(project: Workspace, planted: Callable[[str], Path]) -> None:
    place = planted(tempfile.gettempdir()).with_name("socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        text = python(
            project, f"import socket\nsocket.socket(socket.AF_UNIX).connect({str(place)!r})\nprint('reached')\n"
        )

    assert "FileNotFoundError" in text


def test_a_unix_socket_that_appears_in_the_project_is_covered(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="cm-")).resolve()
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / "s"))
            server.listen()
            text = python(
                Workspace(folder), "import socket\nsocket.socket(socket.AF_UNIX).connect('s')\nprint('reached')\n"
            )
    finally:
        shutil.rmtree(folder)

    assert "Error" in text
    assert "reached" not in text.splitlines()


def test_an_abstract_socket_cannot_be_reached(project: Workspace) -> None:
    name = f"\0cronmend-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        text = python(project, f"import socket\nsocket.socket(socket.AF_UNIX).connect({name!r})\nprint('reached')\n")

    assert "ConnectionRefusedError" in text


def test_a_socket_to_the_machine_under_a_virtual_one_cannot_be_made(project: Workspace) -> None:
    assert "Error" in python(project, "import socket\nsocket.socket(40, socket.SOCK_STREAM)\n")


@pytest.mark.parametrize(
    "command",
    [
        "mount -o remount,rw /usr",
        "mount -o remount,rw /",
        "mount -t tmpfs none .git",
        "umount .git",
        "touch /usr/canary",
        "touch /etc/canary",
        "touch /canary",
        "echo 1 > /proc/sys/vm/drop_caches",
        "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
        "echo x > /proc/sysrq-trigger",
        "unshare --user true",
        "unshare --net true",
        "mknod disk b 254 0",
        "bwrap --ro-bind / / true",
        "echo x > /dev/tty",
        "chroot . true",
    ],
)
def test_a_way_out_is_closed(project: Workspace, command: str) -> None:
    (project.project / ".git").mkdir()

    done = run(project, command)

    assert done.exit_code != 0, done.output


def test_the_key_ring_of_the_session_is_closed(project: Workspace) -> None:
    program = (
        "import ctypes, platform\n"
        "number = {'x86_64': 250, 'aarch64': 219}[platform.machine()]\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall(number, 0, -3, 0), ctypes.get_errno())\n"
    )

    assert python(project, program) == "-1 1\n"


def test_a_process_of_the_machine_can_be_neither_traced_nor_signalled(project: Workspace) -> None:
    program = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.ptrace(16, {os.getpid()}, 0, 0), ctypes.get_errno())\n"
        f"os.kill({os.getpid()}, 0)\n"
    )

    text = python(project, program)

    assert text.startswith("-1 3\n")
    assert "ProcessLookupError" in text


def test_it_holds_no_capability(project: Workspace) -> None:
    lines = [line.split() for line in said(project, "grep Cap /proc/self/status").splitlines()]

    assert [value for name, value in lines if value.strip("0")] == []
    assert len(lines) == 5


def test_it_inherits_no_open_file(project: Workspace, planted: Callable[[str], Path]) -> None:
    with planted(tempfile.gettempdir()).open() as secret:
        os.set_inheritable(secret.fileno(), True)
        text = said(project, "cat <&%d; ls -l /proc/self/fd /proc/1/fd" % secret.fileno())  # noqa: UP031

    assert CANARY not in text
    assert "/secret" not in text


def test_nothing_of_the_project_is_run_outside_the_sandbox(project: Workspace, tmp_path: Path) -> None:
    own = project.project / "bin"
    own.mkdir()
    for name in ("python3", "node", "bash", "env"):
        (own / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/escaped\n")
        (own / name).chmod(0o755)

    run(project, "python3 --version", path=f"{own}:{os.environ['PATH']}")

    assert not (tmp_path / "escaped").exists()


def test_an_environment_that_lies_about_its_base_shows_nothing(
    project: Workspace, planted: Callable[[str], Path]
) -> None:
    secret = planted(tempfile.gettempdir())
    (secret.parent / "bin").mkdir()
    (secret.parent / "bin" / "key").write_text(CANARY)
    (project.project / "env").mkdir()
    (project.project / "env" / "pyvenv.cfg").write_text(f"home = {secret.parent}/bin\n")

    assert CANARY not in said(project, f"cat {secret.parent}/bin/key")
