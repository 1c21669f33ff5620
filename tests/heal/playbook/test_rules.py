"""The built-in rules on really broken jobs of many shapes, and on near misses that must stay untouched."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.breaking import picture, repair, verdict_on

pytestmark = pytest.mark.mission("B4")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "työ projekti"
    folder.mkdir()
    return folder


def write(folder: Path, name: str, text: str | bytes, mode: int = 0o755) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


# CRLF line endings


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("run.sh", "#!/bin/sh\necho a\n", "./run.sh"),
        (
            "bin/deep er/täsk",
            "#!/usr/bin/env bash\nset -e\nfor x in 1 2; do\n  echo $x\ndone\n",
            "'./bin/deep er/täsk'",
        ),
        ("loop.sh", "for x in 1 2; do\n  echo $x\ndone\n", "sh loop.sh"),
        ("fn.bash", "#!/bin/bash\nif true; then\n  echo yes\nfi\n", "bash fn.bash | cat; bash fn.bash"),
        ("tool", "#!/usr/bin/python3\nprint('x')\n", "./tool"),
        ("in/x.sh", "#!/bin/sh\ncd . \ntrue\n", "cd in && ./x.sh"),
    ],
)
def test_crlf_is_repaired(project: Path, name: str, text: str, command: str) -> None:
    script = write(project, name, crlf(text))

    verdict = repair(project, command)

    assert verdict.rule == "crlf"
    assert Path(name).name in verdict.cause
    assert script.read_bytes() == text.encode()
    assert script.stat().st_mode & 0o777 == 0o755


def test_crlf_one_script_deeper_is_repaired(project: Path) -> None:
    write(project, "outer.sh", "#!/bin/sh\n./lib/inner.sh\n")
    inner = write(project, "lib/inner.sh", crlf("#!/bin/sh\necho in\n"))

    repair(project, "./outer.sh")

    assert b"\r" not in inner.read_bytes()


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (b"#!/bin/sh\nprintf 'a\r\nb\r\n' >/dev/null\nnosuchcommand\n", "./x"),
        (b"#!/bin/sh\ncat <<'END'\none\r\ntwo\r\nEND\nexit 127\n", "./x"),
        (b"#!/usr/bin/python3\nprint('fine')\r\nraise SystemExit('not found')\r\n", "python3 x"),
        (b"#!/bin/sh\n" + bytes(range(256)) + b"\r\n", "./x"),
    ],
    ids=["quoted data", "here-document", "python does not mind", "binary"],
)
def test_crlf_that_is_data_stays(project: Path, text: bytes, command: str) -> None:
    write(project, "x", text)
    before = picture(project)

    verdict = verdict_on(project, command)

    assert verdict is None or verdict.rule != "crlf"
    assert picture(project) == before


def test_crlf_outside_the_project_stays(project: Path) -> None:
    outside = write(project.parent, "elsewhere/run.sh", crlf("#!/bin/sh\ntrue\n"))
    (project / "link.sh").symlink_to(outside)

    for command in (f"'{outside}'", "./link.sh"):
        verdict = verdict_on(project, command)
        assert verdict is None or verdict.repair is None

    assert b"\r" in outside.read_bytes()


def test_a_script_that_changed_since_is_left_alone(project: Path) -> None:
    script = write(project, "run.sh", crlf("#!/bin/sh\ntrue\n"))
    verdict = verdict_on(project, "./run.sh")
    assert verdict
    assert verdict.repair
    script.write_bytes(crlf("#!/bin/sh\necho changed by the person\n"))

    with pytest.raises(ValueError, match="has changed"):
        verdict.repair.apply()

    assert b"person\r\n" in script.read_bytes()


# A lost exec bit


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("go.sh", "./go.sh"),
        ("bin/täsk two", "'bin/täsk two' now"),
        ("deep/er/tool", "cd deep/er && ./tool"),
        ("py", "A=1 ./py"),
    ],
)
def test_a_lost_exec_bit_is_given_back(project: Path, name: str, command: str) -> None:
    script = write(project, name, "#!/bin/sh\necho ok\n", mode=0o640)

    verdict = repair(project, command)

    assert (verdict.rule, verdict.cause) == ("exec_bit", f"not executable: {name}")
    assert script.stat().st_mode & 0o777 == 0o740


def test_an_exec_bit_one_script_deeper_is_given_back(project: Path) -> None:
    write(project, "outer.sh", "#!/bin/sh\n./inner.sh\n")
    write(project, "inner.sh", "#!/bin/sh\ntrue\n", mode=0o644)

    assert repair(project, "./outer.sh").cause == "not executable: inner.sh"


def test_what_is_no_program_or_not_ours_gets_no_exec_bit(project: Path) -> None:
    write(project, "data.txt", "just text\n", mode=0o644)
    (project / "folder").mkdir()
    write(project, "key.pem", "#!/not for running\n", mode=0o600)
    outside = write(project.parent, "other/run.sh", "#!/bin/sh\ntrue\n", mode=0o644)
    before, before_outside = picture(project), outside.stat().st_mode

    for command in ("./data.txt", "./folder", f"'{outside}'", "sh -c 'echo key.pem: Permission denied >&2; exit 126'"):
        verdict = verdict_on(project, command)
        assert verdict is None or verdict.repair is None, command

    assert picture(project) == before
    assert outside.stat().st_mode == before_outside


# A missing output folder


@pytest.mark.parametrize(
    ("setup", "command", "made"),
    [
        ("", "python3 -c \"open('out/day/report.txt', 'w').write('x')\"", "out/day"),
        ("", "echo x > 'results ä/today.txt'", "results ä"),
        ("touch a.txt", "cp a.txt backup/a.txt", "backup"),
        ("mkdir src; touch src/f", "tar -cf dist/all.tar src", "dist"),
        ("", "echo x | tee logs/run.log", "logs"),
        ("", "python3 -c \"from pathlib import Path; Path('stats/x.json').write_text('1')\"", "stats"),
        ("", "touch marks/done", "marks"),
    ],
)
def test_a_missing_output_folder_is_made(project: Path, setup: str, command: str, made: str) -> None:
    subprocess.run(["/bin/sh", "-c", setup or ":"], cwd=project, check=True)

    if "tee" in command:  # the exit code of a pipe is its last command's
        command = f"bash -o pipefail -c '{command}'"
    verdict = repair(project, command)

    assert verdict.rule == "missing_folder"
    assert (project / made).is_dir()


def test_a_script_that_redirects_into_a_missing_folder_is_repaired(project: Path) -> None:
    write(project, "night.sh", "#!/bin/bash\nset -e\necho x > out/night.txt\n")

    assert repair(project, "./night.sh").cause == "missing output folder: out"


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c \"open('in/data.csv')\"",
        "cat in/data.csv",
        "bash -c 'while read x; do :; done < in/list.txt'",
        "python3 -c \"open('/nosuchplace/out/x', 'w')\"",
        "echo x > ../sibling/out.txt",
        "python3 -c \"open('file.txt/x', 'w')\"",
        "echo x > disk/out/x.txt",
    ],
    ids=["read", "cat", "redirect in", "absolute elsewhere", "beside the project", "file in the way", "unmounted disk"],
)
def test_other_missing_paths_stay_missing(project: Path, command: str) -> None:
    write(project, "file.txt", "x\n", mode=0o644)
    (project / "disk").symlink_to("/nosuchdisk")
    before, beside = picture(project), sorted(project.parent.iterdir())

    verdict = verdict_on(project, command)

    assert verdict is None or verdict.repair is None
    assert picture(project) == before
    assert not (project.parent / "sibling").exists()
    assert set(beside) <= set(project.parent.iterdir())


# A stale git lock

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="needs git")


@pytest.fixture
def repository(project: Path) -> Path:
    if not shutil.which("git"):
        pytest.skip("needs git")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], cwd=project, check=True)
    write(project, "a.txt", "a\n", mode=0o644)
    return project


def lock(repository: Path, name: str = "index.lock", age: float = 3_600) -> Path:
    path = repository / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


@needs_git
@pytest.mark.parametrize("folder", [".", "deep/ä b"])
def test_a_stale_index_lock_is_removed(project: Path, folder: str) -> None:
    place = project / folder
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    write(place, "a.txt", "a\n", mode=0o644)
    stale = lock(place)

    verdict = repair(project, "git add a.txt", cwd=place)

    assert verdict.rule == "git_lock"
    assert not stale.exists()


def hold_open(path: Path) -> Callable[[], None]:
    file = path.open()
    return file.close


def run_git(path: Path) -> Callable[[], None]:
    process = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=path.parent.parent, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait(10)

    return end


@pytest.mark.parametrize(
    ("age", "use"),
    [(5.0, None), (3_600.0, hold_open), (3_600.0, run_git)],
    ids=["fresh", "held by a process", "a git is at work"],
)
def test_a_lock_that_may_be_somebodys_stays_and_is_told(
    repository: Path, age: float, use: Callable[[Path], Callable[[], None]] | None
) -> None:
    held = lock(repository, age=age)
    end = use(held) if use else lambda: None

    verdict = verdict_on(repository, "git add a.txt")
    end()

    assert verdict
    assert (verdict.kind, verdict.repair) == ("tell", None)
    assert "index.lock" in (verdict.step or "")
    assert held.exists()


def test_another_lock_stays_and_is_told(repository: Path) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x"],
        cwd=repository,
        check=True,
    )
    held = lock(repository, "refs/heads/topic.lock")

    verdict = verdict_on(repository, "git update-ref refs/heads/topic HEAD")

    assert verdict is None or (verdict.kind, verdict.repair) == ("tell", None)
    assert held.exists()


# What only time or a person cures


@pytest.mark.parametrize(
    ("command", "kind", "said"),
    [
        ("echo 'curl: (22) The requested URL returned error: 429' >&2; exit 22", "wait", "429"),
        ("echo 'ssh: Could not resolve: Temporary failure in name resolution' >&2; exit 255", "wait", "name"),
        ("echo 'git@host: Permission denied (publickey).' >&2; exit 128", "tell", "SSH key"),
        ("echo 'cp: error writing x: No space left on device' >&2; exit 1", "tell", "disk is full"),
        ("python3 -c \"import os; os.environ['BACKUP_TOKEN']\"", "tell", "BACKUP_TOKEN"),
        ("bash -uc 'echo $DB_PASSWORD'", "tell", "DB_PASSWORD"),
    ],
)
def test_what_cannot_be_repaired_here_is_named(project: Path, command: str, kind: str, said: str) -> None:
    verdict = verdict_on(project, command)

    assert verdict
    assert (verdict.kind, verdict.repair) == (kind, None)
    assert said in verdict.cause
    assert kind == "wait" or verdict.step


def test_the_book_is_silent_on_what_it_does_not_know(project: Path) -> None:
    write(project, "w.py", "total = {}['sum']\n")

    assert verdict_on(project, "python3 w.py") is None
