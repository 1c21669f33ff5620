"""glob and grep: they find what is in the project, in bounded time, and show no secret."""

import os
import threading
from pathlib import Path

import pytest
from support.file_bench import FileBench as Bench

from agent.tools import Workspace

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


@pytest.mark.mission("O5")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.py", {"a.py", "sub/b.py", "sub/deep/c.py"}),
        ("*.py", {"a.py"}),
        ("sub/*", {"sub/b.py"}),
        ("sub/**", {"sub/b.py", "sub/deep/c.py"}),
        ("**/deep/**/*.py", {"sub/deep/c.py"}),
        ("**", {"a.py", "sub/b.py", "sub/deep/c.py", "é.txt"}),
        ("[é].txt", {"é.txt"}),
    ],
)
def test_names_are_found_by_pattern(bench: Bench, pattern: str, expected: set[str]) -> None:
    for name in ("a.py", "sub/b.py", "sub/deep/c.py", "é.txt", ".git/x.py", "node_modules/y.py"):
        bench.put(name, "")

    assert set(bench.use("glob", pattern=pattern).splitlines()) == expected


def test_the_newest_name_comes_first(bench: Bench) -> None:
    for age, name in enumerate(("new", "older", "oldest")):
        os.utime(bench.put(name, ""), (1_000_000 - age, 1_000_000 - age))

    assert bench.use("glob", pattern="*") == "new\nolder\noldest"


def test_a_path_narrows_the_search(bench: Bench) -> None:
    bench.put("a.py", "needle")
    bench.put("sub/b.py", "needle")

    found = [bench.use("glob", pattern="*.py", path="sub"), bench.use("grep", pattern="need", path="sub")]

    assert found == ["sub/b.py", "sub/b.py:1:needle"]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", ""])
def test_a_pattern_of_names_that_leads_out_is_refused(bench: Bench, pattern: str) -> None:
    assert "relative" in bench.refused("glob", pattern=pattern)


@pytest.mark.mission("B9")
def test_neither_search_goes_through_a_link(bench: Bench, outside: Path) -> None:
    (bench.project / "link").symlink_to(outside)
    (bench.project / "folder").symlink_to(outside.parent)

    found = [
        bench.use("glob", pattern="folder/*"),
        bench.use("glob", pattern="**"),
        bench.use("grep", pattern="canary"),
    ]

    assert found == ["no matches"] * 3


def test_lines_are_found_with_file_and_number(bench: Bench) -> None:
    bench.put("a.py", "one\ntwo\r\nthree\n")
    bench.put("b.bin", b"two\0")

    assert bench.use("grep", pattern=r"^t\w+$") == "a.py:2:two\na.py:3:three"


def test_neither_pipes_nor_large_files_stop_a_search(bench: Bench) -> None:
    os.mkfifo(bench.project / "pipe")
    bench.put("large", b"needle\n" * 900_000)
    bench.put("small", "needle")

    assert bench.use("grep", pattern="needle") == "small:1:needle"


def test_a_search_with_very_many_hits_is_cut(bench: Bench) -> None:
    bench.put("f", "x\n" * 5_000)

    assert "more than 1,000 lines" in bench.use("grep", pattern="x")


@pytest.mark.mission("B9")
def test_a_pattern_cannot_feel_out_a_secret(bench: Bench) -> None:
    bench.put("conf", f"key {SECRET}\n")

    assert [bench.use("grep", pattern=f"key {SECRET[:place]}") for place in (1, 4, 8)] == ["no matches"] * 3


@pytest.mark.mission("B9")
def test_a_line_of_a_private_key_is_not_found_on_its_own(bench: Bench) -> None:
    bench.put("key.pem", f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n")

    assert bench.use("grep", pattern=CANARY) == "no matches"


@pytest.mark.parametrize("pattern", ["(", "[", "a{99999999999999999999}", "x" * 2_000])
def test_a_bad_pattern_of_lines_is_refused(bench: Bench, pattern: str) -> None:
    assert "pattern" in bench.refused("grep", pattern=pattern)


@pytest.mark.mission("B11")
def test_a_pattern_that_backtracks_for_ever_is_ended(bench: Bench) -> None:
    bench.put("f", "a" * 1_500 + "!")

    assert "simpler pattern" in bench.refused("grep", pattern="(a|a)*$")


@pytest.mark.mission("B11")
def test_outside_the_main_thread_a_repeated_repetition_is_refused(bench: Bench) -> None:
    said: list[str] = []
    bench.put("f", "a")
    thread = threading.Thread(target=lambda: said.append(bench.refused("grep", pattern="(a+)+$")))

    thread.start()
    thread.join()

    assert "repeats a repetition" in said[0]
