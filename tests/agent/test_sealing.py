"""The sandbox: what a command may not change, how it ends, and where there is none."""

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from support.confined import SANDBOX, run, said

from agent.capture import MOST_OUTPUT
from agent.sandbox import refusal
from agent.tools import Workspace

CANARY = "canary-7c1f"

pytestmark = [
    pytest.mark.mission("B9"),
    pytest.mark.skipif(SANDBOX is None, reason="this machine has no sandbox"),
]


def is_gone(sign: str) -> bool:
    """Whether no process of this machine has the sign in its command line."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if sign.encode() in entry.read_bytes():
                return False
    return True


@pytest.fixture
def project(tmp_path: Path) -> Workspace:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return Workspace(folder)


# What may be read and not changed


@pytest.mark.mission("B8")
@pytest.mark.parametrize("place", [".git", "sub/.git", "node_modules", "deep/er/node_modules/x"])
def test_repositories_and_packages_are_read_only_also_deep_down(project: Workspace, place: str) -> None:
    folder = project.project / place
    folder.mkdir(parents=True)
    (folder / "config").write_text("as it was")

    text = said(
        project, f"cat {place}/config; echo x > {place}/config; rm -rf {place}; mv {place} gone; echo ok > fine"
    )

    assert text.startswith("as it was")
    assert (folder / "config").read_text() == "as it was"
    assert (project.project / "fine").exists()


@pytest.mark.mission("B8")
def test_virtual_environments_are_read_only(project: Workspace) -> None:
    folder = project.project / "env"
    folder.mkdir()
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")

    done = run(project, "echo x >> env/pyvenv.cfg || rm env/pyvenv.cfg || touch env/new")

    assert done.exit_code != 0
    assert (folder / "pyvenv.cfg").read_text() == "home = /usr/bin\n"


@pytest.mark.mission("B8")
def test_the_pointer_file_of_a_worktree_is_read_only(project: Workspace) -> None:
    pointer = project.project / ".git"
    pointer.write_text("gitdir: elsewhere\n")

    done = run(project, "echo gitdir: mine > .git || rm -f .git || mv .git x")

    assert done.exit_code != 0
    assert pointer.read_text() == "gitdir: elsewhere\n"


@pytest.mark.mission("B8")
def test_a_project_whose_repository_is_a_link_is_read_only_as_a_whole(project: Workspace) -> None:
    (project.project / "real").mkdir()
    (project.project / ".git").symlink_to("real")

    assert run(project, "rm .git || touch real/x").exit_code != 0


@pytest.mark.mission("B8")
def test_a_project_shown_read_only_stays_as_it_is(project: Workspace) -> None:
    done = run(project, "touch new", writable=False)

    assert done.exit_code != 0
    assert list(project.project.iterdir()) == []


def test_forbidden_places_in_the_project_are_empty(project: Workspace) -> None:
    data, database = project.project / "a" / "data", project.project / "other.db"
    data.mkdir(parents=True)
    (data / "cronmend.db").write_text(CANARY)
    database.write_text(CANARY)
    workspace = Workspace(project.project, (data, database))

    text = said(workspace, "cat a/data/* other.db; ls -A a/data; rm -rf a/data other.db; mv a b; echo ; ls")

    assert CANARY not in text
    assert "a" in text.splitlines()
    assert (data / "cronmend.db").read_text() == CANARY
    assert database.read_text() == CANARY


# How it ends


@pytest.mark.mission("B11")
def test_a_command_that_takes_too_long_is_ended_with_all_its_children(project: Workspace) -> None:
    sign = f"98765.{os.getpid()}"

    done = run(project, f"echo begun; setsid sleep {sign} & sleep {sign}", secs=1)

    assert (done.timed_out, done.output) == (True, b"begun\n")
    assert is_gone(sign)


@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1"])
def test_a_child_in_the_background_neither_holds_the_call_nor_lives_on(project: Workspace, streams: str) -> None:
    sign = f"87654.{os.getpid()}"

    done = run(project, f"(trap '' TERM HUP; setsid sleep {sign} {streams}) & echo done", secs=60)

    assert (done.exit_code, done.output, done.timed_out) == (0, b"done\n", False)
    assert is_gone(sign)


def test_a_command_that_closes_its_streams_is_waited_for(project: Workspace) -> None:
    done = run(project, "exec >&- 2>&-; sleep 1; touch end; exit 3")

    assert done.exit_code == 3
    assert (project.project / "end").exists()


def test_a_flood_of_output_is_cut_in_the_middle(project: Workspace) -> None:
    done = run(project, "echo first; i=0; while [ $i -lt 300000 ]; do echo line $i; i=$((i+1)); done; echo last")

    assert len(done.output) < MOST_OUTPUT + 200
    assert done.output.startswith(b"first\nline 0\n")
    assert done.output.endswith(b"\nlast\n")
    assert b" bytes left out ...]\n" in done.output


@pytest.mark.mission("B11")
def test_a_flood_without_end_is_ended_in_time(project: Workspace) -> None:
    done = run(project, "yes", secs=1)

    assert done.timed_out
    assert len(done.output) < MOST_OUTPUT + 200


def test_many_commands_leave_no_file_open(project: Workspace) -> None:
    run(project, "true")
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(5):
        run(project, "true")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


# Where it is refused


def test_an_ordinary_project_is_not_refused(project: Workspace, tmp_path: Path) -> None:
    assert refusal(project, [tmp_path / "data", tmp_path / "run" / "keeper.sock"]) is None


@pytest.mark.parametrize("inside", ["data", "data/deeper"])
def test_a_project_that_holds_the_data_is_refused(project: Workspace, inside: str) -> None:
    answer = refusal(project, [project.project / inside])

    assert answer is not None
    assert answer.endswith(".")


def test_a_project_inside_the_data_is_refused(project: Workspace) -> None:
    assert refusal(project, [project.project.parent]) is not None


def test_a_project_that_holds_a_socket_is_refused(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="cm-")).resolve()
    try:
        (folder / ".git").mkdir()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / ".git" / "s"))
            answer = refusal(Workspace(folder), [])
    finally:
        shutil.rmtree(folder)

    assert answer is not None
    assert "socket" in answer


@pytest.mark.parametrize("folder", ["/", "/etc", "/tmp", "/usr", str(Path.home()), str(Path.home().parent)])
def test_the_home_folder_and_the_systems_own_are_refused(folder: str) -> None:
    assert refusal(Workspace(Path(folder).resolve()), []) is not None
