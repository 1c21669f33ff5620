"""Locks that a killed git leaves behind: real repositories, and locks that may be somebody's."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.breaking import case_of, picture, repair, run, verdict_on
from support.writing import write

from heal.playbook.book import look
from heal.playbook.case import Case

pytestmark = [pytest.mark.mission("B4"), pytest.mark.skipif(not shutil.which("git"), reason="needs git")]

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
IDENTITY = "git -c user.name=t -c user.email=t@example.org"


def make_repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    write(folder, "a.txt", "a\n", mode=0o644)
    return folder


@pytest.fixture
def repository(project: Path) -> Path:
    make_repository(project)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=True)
    return project


def lock(repository: Path, name: str = "index.lock", age: float = 3_600) -> Path:
    path = write(repository, f".git/{name}", b"", mode=0o644)
    then = time.time() - age
    os.utime(path, (then, then))
    return path


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        (".", "git add a.txt"),
        ("deep/ä b", "cd 'deep/ä b' && git add a.txt"),
        ("clone", "git -C clone add -A"),
        (".", f"git add a.txt && {IDENTITY} commit -q -m nightly"),
        ("notes", "sh notes/sync.sh"),
    ],
)
def test_a_stale_index_lock_is_removed(project: Path, folder: str, command: str) -> None:
    place = make_repository(project / folder)
    write(place, "sync.sh", '#!/bin/sh\nset -e\ncd "$(dirname "$0")"\ngit add a.txt\n')
    stale = lock(place)

    verdict = repair(project, command)

    assert verdict.rule == "git_lock"
    assert not stale.exists()


def hold_open(path: Path) -> Callable[[], None]:
    file = path.open()
    return file.close


def run_git(path: Path) -> Callable[[], None]:
    return _git_in(path.parent.parent)


def run_git_in_a_folder_below(path: Path) -> Callable[[], None]:
    below = path.parent.parent / "sub"
    below.mkdir()
    return _git_in(below)


def _git_in(folder: Path) -> Callable[[], None]:
    process = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait(10)

    return end


@pytest.mark.parametrize(
    ("age", "use", "reason"),
    [
        (5.0, None, "it is fresh"),
        (-120.0, None, "it is fresh"),
        (3_600.0, hold_open, "a process has it open"),
        (3_600.0, run_git, "a git process is at work"),
        (3_600.0, run_git_in_a_folder_below, "a git process is at work"),
    ],
)
def test_a_lock_that_may_be_somebodys_stays_and_is_told(
    repository: Path, age: float, use: Callable[[Path], Callable[[], None]] | None, reason: str
) -> None:
    held = lock(repository, age=age)
    end = use(held) if use else lambda: None
    before = picture(repository)

    verdict = verdict_on(repository, "git add a.txt")
    end()

    assert verdict
    assert (verdict.kind, verdict.repair) == ("tell", None)
    assert reason in verdict.explanation
    assert verdict.step == "See that no git is at work in that repository, then remove .git/index.lock"
    assert picture(repository) == before


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("refs/heads/topic.lock", "git update-ref refs/heads/topic HEAD"),
        ("config.lock", "git config color.ui never"),
        ("HEAD.lock", "git symbolic-ref HEAD refs/heads/other && git switch -q --orphan other2"),
        ("packed-refs.lock", "git pack-refs --all"),
    ],
)
def test_another_lock_stays_and_is_told(repository: Path, name: str, command: str) -> None:
    lock(repository, name)
    before = picture(repository)

    verdict = verdict_on(repository, command)

    assert verdict
    assert (verdict.kind, verdict.repair) == ("tell", None)
    assert verdict.step == f"See that no git is at work in that repository, then remove .git/{name}"
    assert picture(repository) == before


def test_the_lock_of_a_worktree_is_told(repository: Path) -> None:
    subprocess.run([*GIT, "worktree", "add", "-q", "side"], cwd=repository, check=True)
    held = lock(repository, "worktrees/side/index.lock")
    write(repository, "side/b.txt", "b\n")

    verdict = verdict_on(repository, "git -C side add b.txt")

    assert verdict
    assert (verdict.kind, verdict.repair) == ("tell", None)
    assert held.exists()


def test_a_lock_outside_the_project_stays(project: Path) -> None:
    held = lock(make_repository(project.parent / "other"))
    (project / "linked").symlink_to(project.parent / "other")

    for command in ("git -C ../other add a.txt", "git -C linked add a.txt"):
        verdict = verdict_on(project, command)
        assert verdict is None or verdict.repair is None

    assert held.exists()


def test_a_link_or_a_folder_in_place_of_the_lock_stays(repository: Path) -> None:
    target = write(repository, "notes.txt", "mine\n", mode=0o644)
    os.utime(target, (1, 1))
    (repository / ".git/index.lock").symlink_to(target)
    before = picture(repository)

    verdict = verdict_on(repository, "git add a.txt")

    assert verdict is None or verdict.repair is None
    assert picture(repository) == before


def test_a_hidden_repository_keeps_its_lock(repository: Path) -> None:
    held = lock(repository)
    failure, began = run(repository, "git add a.txt")
    case, _ = case_of(failure, repository, began)

    verdict = look(Case.from_json({**case.to_json(), "forbidden": [str(repository / ".git")]}))

    assert verdict is None or verdict.repair is None
    assert held.exists()


@pytest.mark.mission("B8")
@pytest.mark.parametrize("change", ["gone", "new", "in use"])
def test_a_lock_that_is_another_one_by_now_is_left_alone(repository: Path, change: str) -> None:
    held = lock(repository)
    verdict = verdict_on(repository, "git add a.txt")
    assert verdict
    assert verdict.repair
    end = run_git(held) if change == "in use" else lambda: None
    if change != "in use":
        held.unlink()
    if change == "new":
        held.write_bytes(b"another git's")
    before = picture(repository)

    with pytest.raises(ValueError, match=r"index\.lock (is not there any more|was left alone)"):
        verdict.repair.apply()
    end()

    assert picture(repository) == before
