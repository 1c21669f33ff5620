"""Which files of the project a command runs, and in which folders."""

from pathlib import Path

import pytest
from support.writing import write

from heal.playbook.case import Case
from heal.playbook.command_line import scripts_of, steps_of

pytestmark = pytest.mark.mission("B4")

FILES = ("run.sh", "sub/run.sh", "a b/é.sh", "job.py", "tool", "hidden/run.sh", "data.csv", "deep/x/run.sh")


@pytest.fixture
def case(project: Path) -> Case:
    for name in FILES:
        write(project, name, "#!/usr/bin/env python3\n" if name.endswith("py") else "#!/bin/bash -e\necho\n")
    outside = write(project.parent, "outside.sh", "#!/bin/sh\n")
    (project / "way-out.sh").symlink_to(outside)
    (project / "way-in.sh").symlink_to("sub/run.sh")
    return Case(
        project=str(project),
        cwd=str(project),
        command="",
        path=f"{project}/deep/x:/usr/bin:/bin",
        forbidden=(str(project / "hidden"),),
    )


def found(case: Case, command: str) -> list[tuple[str, bool, str]]:
    case = Case.from_json({**case.to_json(), "command": command})
    return [(script.path.relative_to(case.project).as_posix(), script.direct, script.by) for script in scripts_of(case)]


RUN = ("run.sh", True, "bash")
READ = ("run.sh", False, "bash")
SUB = ("sub/run.sh", True, "bash")


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("./run.sh", [RUN]),
        ("./run.sh --flag > log 2>&1", [RUN]),
        ("bash run.sh", [READ]),
        ("bash -euo pipefail run.sh x", [READ]),
        ("bash -o pipefail -e ./run.sh", [READ]),
        ("/bin/sh -c './run.sh | cat'", [RUN]),
        ("bash -ec 'cd sub && ./run.sh'", [SUB]),
        ("bash < run.sh", [READ]),
        (". ./run.sh && source sub/run.sh", [("run.sh", False, "sh"), ("sub/run.sh", False, "sh")]),
        ("cd sub && ./run.sh", [SUB]),
        ("(cd sub; true); ./run.sh", [RUN]),
        ("cd sub; cd ..; ./run.sh", [RUN]),
        ("'a b/é.sh' && a\\ b/é.sh", [("a b/é.sh", True, "bash")]),
        ("A=1 B='x y' ./run.sh", [RUN]),
        ("env -u HOME A=1 ./run.sh", [RUN]),
        ("nice -n 10 ionice -c2 timeout -k 5 60 ./run.sh", [RUN]),
        ("flock -n /tmp/lock ./run.sh", [RUN]),
        ("flock /tmp/lock -c './run.sh'", [RUN]),
        ("if ! ./run.sh; then exec sub/run.sh; fi", [RUN, SUB]),
        ('x=$(./run.sh) && echo `sub/run.sh` "$(bash run.sh)"', [RUN, SUB, READ]),
        ("P=sub; $P/run.sh", [SUB]),
        ("python3 job.py", [("job.py", False, "python")]),
        ("/usr/bin/python3.11 -W error -u job.py data.csv", [("job.py", False, "python")]),
        ("./job.py", [("job.py", True, "python")]),
        ("run.sh", [("deep/x/run.sh", True, "bash")]),
        ("./way-in.sh", [SUB]),
    ],
)
def test_what_a_command_runs_is_found(case: Case, command: str, scripts: list[tuple[str, bool, str]]) -> None:
    assert found(case, command) == scripts


@pytest.mark.parametrize(
    "command",
    [
        "",
        "true",
        "./way-out.sh",
        "../outside.sh",
        "hidden/run.sh",
        "cd hidden && ./run.sh",
        "cat run.sh",
        "echo ./run.sh '&& ./run.sh' # ; ./run.sh",
        "python3 -c './run.sh'",
        "python3 -m job",
        "perl -e 1 run.sh",
        'cd "$SOMEWHERE" && ./run.sh',
        "$UNKNOWN/run.sh",
        "./*.sh",
        "cat <<END\n./run.sh\nEND",
        "./run.sh '",
        "./sub",
        "./missing.sh",
        "make run.sh",
    ],
)
def test_what_is_not_run_or_not_ours_is_not_found(case: Case, command: str) -> None:
    # The quote that is left open takes the command with it.
    assert found(case, command) == ([RUN] if command.endswith("'") and command.startswith("./run") else [])


def test_scripts_that_scripts_run_are_found_once(case: Case) -> None:
    write(Path(case.project), "loop.sh", "#!/bin/sh\n./loop.sh\n./run.sh\n(cd sub && . ./run.sh)\n")

    assert found(case, "sh loop.sh; ./run.sh") == [
        ("loop.sh", False, "sh"),
        ("loop.sh", True, "sh"),
        RUN,
        ("sub/run.sh", False, "sh"),
    ]


def test_the_folder_of_each_command_is_known_or_said_to_be_unknown(case: Case) -> None:
    write(Path(case.project), "goes.sh", "cd sub\n")
    command = "one; (cd sub && two); three; cd sub/../deep; four; . ../goes.sh; five; cd /tmp; six; cd $X; seven"
    steps = steps_of(Case.from_json({**case.to_json(), "command": command}))

    folders = {step.command.words[0]: step.cwd for step in steps if len(step.command.words) == 1}

    project = Path(case.project)
    assert folders == {
        "one": project,
        "two": project / "sub",
        "three": project,
        "four": project / "sub/../deep",
        "five": None,
        "six": None,
        "seven": None,
    }
