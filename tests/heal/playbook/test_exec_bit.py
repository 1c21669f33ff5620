"""A lost exec bit: really refused scripts of many shapes, and near misses whose mode stays."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.breaking import ROOT, picture, repair, verdict_on
from support.writing import write

pytestmark = pytest.mark.mission("B4")

TRUE = "#!/bin/sh\ntrue\n"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("go.sh", "./go.sh"),
        ("go.sh", "true && ./go.sh >/dev/null"),
        ("bin/täsk two", "'bin/täsk two' now"),
        ("deep/er/tool", "cd deep/er && ./tool"),
        ("py", "A=1 ./py"),
        ("job", "bash -c './job 1 2'"),
        ("job", "env ./job"),
        ("job", "nohup ./job"),
        ("job", "timeout 20 ./job"),
        ("job", "echo 1 | xargs ./job"),
        ("quiet", "./quiet 2>/dev/null || exit 126"),
        ("run/step", "python3 -c \"import subprocess; subprocess.run(['run/step'], check=True)\""),
    ],
)
def test_a_lost_exec_bit_is_given_back(project: Path, name: str, command: str) -> None:
    script = write(project, name, "#!/bin/sh\necho ok\n", mode=0o640)

    verdict = repair(project, command)

    assert (verdict.rule, verdict.cause) == ("exec_bit", f"not executable: {name}")
    assert script.stat().st_mode & 0o777 == 0o740


def test_a_python_script_and_a_binary_get_it_back_too(project: Path) -> None:
    write(project, "tool.py", "#!/usr/bin/env python3\nprint(1)\n", mode=0o644)
    binary = write(project, "bin/yes-it-is", Path("/bin/true").read_bytes(), mode=0o600)

    assert repair(project, "./tool.py").cause == "not executable: tool.py"
    assert repair(project, "bin/yes-it-is").cause == "not executable: bin/yes-it-is"

    assert binary.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "outer",
    [
        "#!/bin/sh\n./lib/inner.sh\n",
        "#!/bin/bash\nset -e\nfor x in 1; do\n  lib/inner.sh $x\ndone\n",
        '#!/bin/bash\ncd "$(dirname "$0")/lib"\n./inner.sh\n',
        '#!/bin/bash\nHERE="$(dirname "$(readlink -f "$0")")"\nexec "$HERE/lib/inner.sh" --now\n',
    ],
)
def test_an_exec_bit_one_script_deeper_is_given_back(project: Path, outer: str) -> None:
    write(project, "outer.sh", outer)
    write(project, "lib/inner.sh", TRUE, mode=0o644)

    assert repair(project, "./outer.sh").cause == "not executable: lib/inner.sh"


@pytest.mark.parametrize(
    "command",
    [
        "./data.txt",
        "./folder",
        "'../other/run.sh'",
        "./link.sh",
        "sh -c 'echo key.pem: Permission denied >&2; exit 126'",
        "sh -c 'echo ./hook.sh: Permission denied >&2; exit 126'",
        "python3 -c \"raise PermissionError(13, 'Permission denied', 'hook.sh')\"",
        "sh -c 'echo deploy: not done >&2; exit 126' hook.sh",
        "cat hook.sh; exit 126",
        "./unreadable",
    ],
)
def test_what_is_no_program_or_not_run_gets_no_exec_bit(project: Path, command: str) -> None:
    write(project, "data.txt", "just text\n", mode=0o644)
    (project / "folder").mkdir()
    write(project, "key.pem", "#!/not for running\n", mode=0o600)
    write(project, "hook.sh", TRUE, mode=0o600)
    write(project, "unreadable", TRUE, mode=0o040)
    outside = write(project.parent, "other/run.sh", TRUE, mode=0o644)
    (project / "link.sh").symlink_to(outside)
    before = picture(project)

    verdict = verdict_on(project, command)

    assert verdict is None or verdict.repair is None
    assert picture(project) == before
    assert outside.stat().st_mode & 0o777 == 0o644


def test_a_script_with_another_bit_set_or_a_second_name_is_left_alone(project: Path) -> None:
    write(project, "twin", TRUE, mode=0o644)
    (project.parent / "twin").hardlink_to(project / "twin")
    write(project, "special", TRUE, mode=0o2644)
    before = picture(project)

    for command in ("./twin", "./special"):
        verdict = verdict_on(project, command)
        assert verdict is None or verdict.repair is None, command

    assert picture(project) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")
def test_a_script_of_somebody_else_is_left_alone(project: Path) -> None:
    script = write(project, "theirs.sh", TRUE, mode=0o644)
    os.chown(script, 12_345, 12_345)

    verdict = verdict_on(project, "./theirs.sh")

    assert verdict is None or verdict.repair is None
    assert script.stat().st_mode & 0o777 == 0o644


def test_on_a_disk_that_forbids_programs_nothing_is_changed(project: Path) -> None:
    inside = f"""
set -e
mount -t tmpfs -o noexec none "$1"
printf '#!/bin/sh\\ntrue\\n' > "$1/x.sh"
exec '{sys.executable}' -c '
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from support.breaking import verdict_on
project = Path(sys.argv[1])
verdict = verdict_on(project, "./x.sh")
print(verdict and verdict.repair, oct(project.joinpath("x.sh").stat().st_mode & 0o777))
' "$1" '{ROOT}' '{ROOT}/tests'
"""
    unshare = shutil.which("unshare") or "unshare"
    try:
        done = subprocess.run(
            [unshare, "-rm", "sh", "-c", f"umask 022{inside}", "sh", str(project)],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if "ermission denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("needs mount namespaces")

    assert done.stdout.strip() == "None 0o644", done.stderr


@pytest.mark.mission("B8")
def test_a_mode_that_was_changed_since_is_left_alone(project: Path) -> None:
    script = write(project, "run.sh", TRUE, mode=0o644)
    verdict = verdict_on(project, "./run.sh")
    assert verdict
    assert verdict.repair
    script.chmod(0o600)

    with pytest.raises(ValueError, match=r"run\.sh has changed"):
        verdict.repair.apply()

    assert script.stat().st_mode & 0o777 == 0o600
