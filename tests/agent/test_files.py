"""The file tools: they work on the project, and on nothing else whatever the path says."""

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from support.file_bench import FileBench as Bench

from agent.tools import ToolError, Workspace

CANARY = "canary-51ab"
SECRET = "hunter2-hunter2"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return Bench(Workspace(folder, (folder / "data",), (SECRET,)))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "outside.txt"
    path.write_text(CANARY)
    return path


# Reading


@pytest.mark.mission("O5")
def test_a_file_is_read_as_it_is(bench: Bench) -> None:
    bench.put("übung/naïve.txt", "eins\r\nzwei\n")

    assert bench.use("read", file_path="übung/naïve.txt") == "eins\r\nzwei\n"


@pytest.mark.parametrize(
    ("view", "expected"), [([2, 3], "b\nc"), ([3, -1], "c\nd"), ([0, 1], "a"), ([4, 0], "d"), ([9, 12], "")]
)
def test_a_range_of_lines_is_counted_from_one_and_inclusive(bench: Bench, view: list[int], expected: str) -> None:
    bench.put("f", "a\nb\nc\nd")

    assert bench.use("read", file_path="f", view_range=view) == expected


@pytest.mark.parametrize("view", [[1], [1, 2, 3], ["a", "b"], "12"])
def test_a_range_that_is_none_is_refused(bench: Bench, view: Any) -> None:
    bench.put("f", "a")

    assert "view_range" in bench.refused("read", file_path="f", view_range=view)


def test_a_long_file_is_cut_and_says_so(bench: Bench) -> None:
    bench.put("long", "x\n" * 30_000)

    text = bench.use("read", file_path="long")

    assert len(text) < 51_000
    assert "cut after 50,000 of 60,000 characters" in text


def test_a_binary_file_is_named_as_one(bench: Bench) -> None:
    bench.put("f.bin", b"\x00\xff\x01")

    assert "binary" in bench.refused("read", file_path="f.bin")


@pytest.mark.mission("B9")
def test_a_live_secret_is_redacted_wherever_it_stands(bench: Bench) -> None:
    bench.put("conf", f"url=x\nvalue {SECRET}\n")

    texts = [
        bench.use("read", file_path="conf"),
        bench.use("grep", pattern="value"),
        bench.refused("read", file_path=f"{SECRET}/x"),
    ]

    assert [text for text in texts if SECRET in text] == []
    assert "value [redacted]" in texts[0]


@pytest.mark.mission("B9")
@pytest.mark.parametrize("view", [[2, 2], [1, 2], [2, 3]])
def test_a_part_of_a_private_key_is_not_shown_by_a_range_of_lines(bench: Bench, view: list[int]) -> None:
    bench.put("key.pem", f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n")

    assert CANARY not in bench.use("read", file_path="key.pem", view_range=view)


# Staying inside


@pytest.mark.mission("O6", "B9")
@pytest.mark.parametrize(
    "path", ["../outside.txt", "a/../../outside.txt", "link", "folder/outside.txt", "twice", "./link"]
)
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_a_path_that_leads_out_is_refused(bench: Bench, outside: Path, path: str, tool: str) -> None:
    bench.put("a/b", "")
    (bench.project / "link").symlink_to(outside)
    (bench.project / "folder").symlink_to(outside.parent)
    (bench.project / "twice").symlink_to("link")
    given = {"read": {}, "write": {"content": "x"}, "edit": {"old_string": CANARY, "new_string": "x"}}[tool]

    said = bench.refused(tool, file_path=path, **given)

    assert "outside the project" in said
    assert outside.read_text() == CANARY
    assert bench.told == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/proc/self/cwd/x", "/dev/zero", "/nowhere"])
def test_an_absolute_path_elsewhere_is_refused_whether_it_exists_or_not(bench: Bench, path: str) -> None:
    assert "outside the project" in bench.refused("read", file_path=path)


def test_an_absolute_path_in_the_project_is_fine(bench: Bench) -> None:
    path = bench.put("f", "text")

    assert bench.use("read", file_path=str(path)) == "text"


def test_a_link_within_the_project_is_followed_and_stays_a_link(bench: Bench) -> None:
    target = bench.put("real", "old")
    (bench.project / "link").symlink_to("real")

    bench.use("edit", file_path="link", old_string="old", new_string="new")

    assert target.read_text() == "new"
    assert (bench.project / "link").is_symlink()
    assert bench.told == ["real"]


@pytest.mark.parametrize("name", ["sub/f", "sub/new"])
def test_a_folder_swapped_for_a_link_while_the_app_is_asked_leads_nowhere(tmp_path: Path, name: str) -> None:
    project = tmp_path.resolve() / "project"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def swap(_path: str) -> None:
        (project / "sub").rename(tmp_path / "moved")
        (project / "sub").symlink_to(elsewhere)

    project.mkdir()
    bench = Bench(Workspace(project), swap)
    bench.put("sub/f", "old")

    bench.refused("write", file_path=name, content="new")

    assert list(elsewhere.iterdir()) == []


@pytest.mark.mission("B9")
def test_forbidden_places_are_neither_read_nor_listed_nor_searched(bench: Bench) -> None:
    bench.put("data/cronmend.db", CANARY)
    (bench.project / "link").symlink_to("data")

    texts = [
        bench.refused("read", file_path="data/cronmend.db"),
        bench.refused("read", file_path="link/cronmend.db"),
        bench.refused("write", file_path="data/new", content="x"),
        bench.refused("grep", pattern="canary", path="data"),
        bench.refused("glob", pattern="*", path="link"),
        bench.use("glob", pattern="**/*"),
        bench.use("grep", pattern="canary"),
    ]

    assert [text for text in texts if CANARY in text or "cronmend.db\n" in text] == []
    assert texts[-2:] == ["no matches", "no matches"]


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device"])
def test_what_is_no_regular_file_is_refused_without_waiting(bench: Bench, kind: str, tool: str) -> None:
    path = bench.project / "odd"
    server = socket.socket(socket.AF_UNIX)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.open(bench.project, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/odd")
        os.close(here)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    given = {"read": {}, "write": {"content": "x"}, "edit": {"old_string": "a", "new_string": "x"}}[tool]

    said = bench.refused(tool, file_path="odd", **given)
    server.close()

    assert "regular file" in said or "is a folder" in said or "outside the project" in said
    assert bench.told == []


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000, "a/" * 3_000, "\ud800"])
def test_a_path_that_is_none_is_refused_politely(bench: Bench, path: str) -> None:
    said = bench.refused("read", file_path=path)

    assert str(bench.project) not in said


@pytest.mark.parametrize("given", [{}, {"file_path": 3}, {"file_path": None}, {"file_path": ["f"]}])
def test_input_of_the_wrong_shape_is_refused(bench: Bench, given: dict[str, Any]) -> None:
    assert "file_path" in bench.refused("read", **given)


# Writing


@pytest.mark.mission("O5")
def test_a_new_file_gets_its_folders_and_the_usual_mode(bench: Bench) -> None:
    bench.use("write", file_path="a/b/c.txt", content="hällo\n")

    path = bench.project / "a" / "b" / "c.txt"
    umask = os.umask(0)
    os.umask(umask)
    assert path.read_text() == "hällo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~umask
    assert bench.told == ["a/b/c.txt"]


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_an_edited_file_keeps_its_mode(bench: Bench, mode: int) -> None:
    path = bench.put("job.sh", "#!/bin/sh\nexit 1\n")
    path.chmod(mode)

    bench.use("edit", file_path="job.sh", old_string="exit 1", new_string="exit 2")

    assert path.read_text() == "#!/bin/sh\nexit 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.mission("B8")
def test_the_app_is_told_before_the_file_is_touched(tmp_path: Path) -> None:
    project = tmp_path.resolve()
    seen: list[str] = []
    bench = Bench(Workspace(project), lambda path: seen.append((project / path).read_text()))
    bench.put("f", "before")

    bench.use("write", file_path="f", content="after")

    assert seen == ["before"]
    assert (project / "f").read_text() == "after"


@pytest.mark.mission("B8")
def test_what_the_app_refuses_is_not_written(tmp_path: Path) -> None:
    def refuse(_path: str) -> None:
        raise ToolError("The heal is closing.")

    bench = Bench(Workspace(tmp_path.resolve()), refuse)
    bench.put("f", "before")

    said = bench.refused("edit", file_path="f", old_string="before", new_string="after")

    assert said == "The heal is closing."
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "before"


@pytest.mark.mission("B8")
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_an_edit_that_a_person_makes_meanwhile_is_not_overwritten(tmp_path: Path, tool: str) -> None:
    project = tmp_path.resolve()

    def interfere(path: str) -> None:
        (project / path).write_text("the person's")

    bench = Bench(Workspace(project), interfere)
    bench.put("f", "before")
    given = {"write": {"content": "after"}, "edit": {"old_string": "before", "new_string": "after"}}[tool]

    said = bench.refused(tool, file_path="f", **given)

    assert "meanwhile" in said
    assert (project / "f").read_text() == "the person's"
    assert [path.name for path in project.iterdir()] == ["f"]


@pytest.mark.mission("B8")
def test_another_name_of_a_file_keeps_its_content(bench: Bench, outside: Path) -> None:
    (bench.project / "f").hardlink_to(outside)

    bench.use("edit", file_path="f", old_string=CANARY, new_string="changed")

    assert (bench.project / "f").read_text() == "changed"
    assert outside.read_text() == CANARY


@pytest.mark.mission("B8")
@pytest.mark.parametrize(
    "path",
    [".git/config", "sub/.git/hooks/x", "node_modules/a/b.js", "env/lib/x.py", "env/pyvenv.cfg", ".git", ".GIT/x"],
)
def test_repositories_environments_and_packages_are_read_only(bench: Bench, path: str) -> None:
    bench.put("env/pyvenv.cfg", "home = /usr/bin\n")

    said = bench.refused("write", file_path=path, content="x")

    assert "read-only" in said
    assert bench.told == []


def test_they_can_be_read(bench: Bench) -> None:
    bench.put(".git/config", "[core]")
    bench.put("node_modules/a.js", "1")

    texts = [bench.use("read", file_path=".git/config"), bench.use("grep", pattern="core", path=".git")]

    assert texts == ["[core]", ".git/config:1:[core]"]


def test_the_parts_of_an_environment_in_the_project_folder_itself_are_read_only(bench: Bench) -> None:
    bench.put("pyvenv.cfg", "home = /usr/bin\n")

    said = bench.refused("write", file_path="lib/x.py", content="x")
    bench.use("write", file_path="job.py", content="x")

    assert "read-only" in said
    assert (bench.project / "job.py").exists()


def test_text_to_replace_that_is_absent_is_refused(bench: Bench) -> None:
    bench.put("f", "a b c")

    assert "does not occur in f" in bench.refused("edit", file_path="f", old_string="x", new_string="y")


def test_text_to_replace_that_occurs_more_than_once_is_refused(bench: Bench) -> None:
    path = bench.put("f", "a a")

    said = bench.refused("edit", file_path="f", old_string="a", new_string="b")

    assert "2 times" in said
    assert path.read_text() == "a a"


def test_all_occurrences_are_replaced_on_request(bench: Bench) -> None:
    path = bench.put("f", "a a")

    bench.use("edit", file_path="f", old_string="a", new_string="b", replace_all=True)

    assert path.read_text() == "b b"


def test_the_line_ends_of_windows_are_named_as_the_reason(bench: Bench) -> None:
    bench.put("f", "a\r\nb\r\n")

    assert "\\r\\n" in bench.refused("edit", file_path="f", old_string="a\nb", new_string="c")


@pytest.mark.mission("B9")
def test_the_mark_of_a_redaction_is_not_written_in_place_of_the_secret(bench: Bench) -> None:
    path = bench.put("conf", f"a = 1\nkey {SECRET}\n")

    texts = [
        bench.refused("write", file_path="conf", content="a = 2\nkey [redacted]\n"),
        bench.refused("edit", file_path="conf", old_string="a = 1", new_string="key [redacted]"),
        bench.refused("edit", file_path="conf", old_string="key [redacted]", new_string="key"),
    ]

    assert [text for text in texts if "secret that you are not shown" not in text] == []
    assert path.read_text() == f"a = 1\nkey {SECRET}\n"


@pytest.mark.mission("B9")
def test_a_line_beside_a_secret_can_be_edited(bench: Bench) -> None:
    path = bench.put("conf", f"a = 1\nkey {SECRET}\n")

    bench.use("edit", file_path="conf", old_string="a = 1", new_string="a = 2")

    assert path.read_text() == f"a = 2\nkey {SECRET}\n"


def test_a_file_that_holds_the_mark_itself_can_be_edited(bench: Bench) -> None:
    path = bench.put("log.py", "MARK = '[redacted]'\n")

    bench.use("edit", file_path="log.py", old_string="'[redacted]'", new_string="'[redacted]!'")

    assert path.read_text() == "MARK = '[redacted]!'\n"


def test_a_folder_that_cannot_be_written_is_a_plain_refusal(bench: Bench) -> None:
    bench.put("f", "file, not folder")

    said = bench.refused("write", file_path="f/g", content="x")

    assert said.startswith("write: ")
    assert str(bench.project) not in said
