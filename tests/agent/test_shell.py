"""The bash tool: its result as the model reads it, and the changes as the app hears of them."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox import find_sandbox
from agent.shell import shell_tool
from agent.tools import Tool, ToolError, Workspace

SECRET = "hunter2-hunter2"
SANDBOX = find_sandbox()

pytestmark = pytest.mark.skipif(SANDBOX is None, reason="this machine has no sandbox")


class Bench:
    """One session's bash."""

    def __init__(self, project: Path, *, writable: bool = True) -> None:
        assert SANDBOX is not None
        self.project = project
        self.prepared = 0
        self.changes: list[list[str]] = []
        self._writable = writable
        workspace = Workspace(project, (project / "data",), (SECRET,))
        self.tool: Tool = shell_tool(
            SANDBOX, workspace, prepare=self._prepare, changed=self.changes.append, path=os.environ["PATH"]
        )

    def use(self, command: Any) -> str:
        async def call() -> str:
            return await self.tool.call({"command": command})

        return asyncio.run(call())

    def _prepare(self) -> bool:
        self.prepared += 1
        return self._writable


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    return Bench(project)


@pytest.mark.mission("O5")
def test_a_command_runs_in_the_project(bench: Bench) -> None:
    (bench.project / "f").write_text("here\n")

    assert bench.use("cat f; [[ 1 == 1 ]] && echo bash") == "here\nbash"


@pytest.mark.mission("O5")
def test_a_failure_is_a_result_with_its_code(bench: Bench) -> None:
    assert bench.use("echo out; echo err >&2; exit 3") == "out\nerr\nexit code 3"


def test_silence_is_said(bench: Bench) -> None:
    assert bench.use("true") == "(no output)"


@pytest.mark.parametrize("command", [None, "", "  ", 3, "a\0b"])
def test_a_command_that_is_none_is_refused(bench: Bench, command: Any) -> None:
    with pytest.raises(ToolError, match="command"):
        bench.use(command)

    assert bench.prepared == 0


@pytest.mark.mission("B9")
def test_a_live_secret_is_redacted(bench: Bench) -> None:
    (bench.project / "f").write_text(f"key {SECRET}\n")

    assert bench.use("cat f") == "key [redacted]"


def test_a_flood_is_cut_for_the_model(bench: Bench) -> None:
    text = bench.use("for i in {1..40000}; do echo line $i; done")

    assert len(text) < 51_000
    assert "cut after" in text


@pytest.mark.mission("B8")
def test_the_project_is_prepared_once_before_the_first_command(bench: Bench) -> None:
    assert bench.prepared == 0

    bench.use("true")
    bench.use("true")

    assert bench.prepared == 1


@pytest.mark.mission("B8")
def test_a_project_that_could_not_be_copied_aside_is_read_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), writable=False)

    said = bench.use("touch new")

    assert "Read-only file system" in said
    assert bench.changes == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mission("B8")
def test_every_kind_of_change_is_told_with_relative_paths(bench: Bench) -> None:
    for name in ("changed", "deleted", "mode", "moved", "same"):
        (bench.project / name).write_text("x")
    (bench.project / "sub").mkdir()

    bench.use("echo y > changed; rm deleted; chmod 700 mode; mv moved sub/new; mkdir empty; ln -s same link; cat same")

    assert bench.changes == [["changed", "deleted", "empty", "link", "mode", "moved", "sub/new"]]


@pytest.mark.mission("B8")
def test_a_change_that_hides_its_time_and_size_is_told(bench: Bench) -> None:
    (bench.project / "f").write_text("aaaa")

    bench.use("cp -p f /tmp/old; printf bbbb > f; touch -r /tmp/old f")

    assert bench.changes == [["f"]]


@pytest.mark.mission("B8")
def test_a_command_that_changes_nothing_tells_nothing(bench: Bench) -> None:
    (bench.project / "f").write_text("x")

    bench.use("cat f; ls -R")

    assert bench.changes == []


@pytest.mark.mission("B8")
def test_what_a_failed_command_changed_is_told(bench: Bench) -> None:
    bench.use("echo x > made; exit 9")

    assert bench.changes == [["made"]]


@pytest.mark.mission("B8")
def test_a_folder_made_to_look_like_an_environment_hides_no_change(bench: Bench) -> None:
    (bench.project / "src").mkdir()
    (bench.project / "src" / "main.py").write_text("good")

    bench.use("echo bad > src/main.py; touch src/pyvenv.cfg")

    assert bench.changes == [["src/main.py", "src/pyvenv.cfg"]]


@pytest.mark.mission("B8")
def test_a_repository_that_a_command_makes_is_told(bench: Bench) -> None:
    bench.use("mkdir .git; echo x > .git/config")

    assert bench.changes == [[".git", ".git/config"]]


@pytest.mark.mission("B8")
def test_forbidden_and_sealed_places_are_not_looked_at(bench: Bench) -> None:
    for name in ("data", ".git", "node_modules"):
        (bench.project / name).mkdir()

    bench.use("touch data/x; touch .git/x; touch node_modules/x")

    assert bench.changes == []


@pytest.mark.mission("O5")
def test_a_broken_script_can_be_repaired_and_tried(bench: Bench) -> None:
    (bench.project / "job.py").write_text("print(undefined)\n")

    said = [bench.use("python3 job.py"), bench.use("sed -i 's/undefined/42/' job.py && python3 job.py")]

    assert "NameError" in said[0]
    assert said[1] == "42"
    assert bench.changes == [["job.py"]]
