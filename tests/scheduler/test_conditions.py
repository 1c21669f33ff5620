"""Success beyond the exit code: what a run must print, produce, how long it may take, which codes are fine."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.serving import Served

from scheduler.conditions import read_condition

pytestmark = pytest.mark.mission("B12")

OFTEN = ("--schedule", "0 0 1 1 *", "--no-healing")
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"))
    served.start()
    yield served
    served.close()


def outcome(served: Served, folder: Path, command: str, *conditions: str) -> tuple[str, str | None, str | None]:
    """Status, error and cause of one run."""
    named = [word for one in conditions for word in ("--success-when", one)]
    words = ("--name", f"c{next(numbers)}", "--command", command, "--cwd", str(folder), *OFTEN)
    said = served.run("jobs", "add", *words, *named)
    assert said.code == 0, said
    served.run("jobs", "run", said.out.strip())
    run = served.json("runs", "list", "--job", said.out.strip())[0]
    return run["status"], run["error"], run["cause"]


MET = {
    "prints": ("echo all is well", "prints is well"),
    "on stderr": ("echo well >&2", "must print well"),
    "prints nothing bad": ("echo fine", "not prints ERROR"),
    "a new file": ("echo x > out.txt", "creates out.txt"),
    "one of a pattern": ("mkdir -p d; echo x > d/a.csv", "creates d/*.csv"),
    "long enough": ("sleep 1.1", "takes at least 1s"),
    "soon enough": ("true", "takes at most 1m"),
    "another code": ("exit 3", "exits 0,3"),
}


@pytest.mark.parametrize("case", MET)
def test_a_condition_that_is_met_is_a_success(app: Served, tmp_path: Path, case: str) -> None:
    assert outcome(app, tmp_path, *MET[case]) == ("completed", None, None)


UNMET = {
    "prints": ("echo ill", "prints well", "it did not print “well”"),
    "prints what it must not": ("echo one ERROR here", "not prints ERROR", "it printed “ERROR”"),
    "no file": ("true", "creates out.txt", "it did not produce out.txt"),
    "an empty file": ("true > out.txt", "creates out.txt", "it left out.txt empty"),
    "an old file": ("true", "creates old.txt", "it did not produce old.txt anew: the file is older than the run"),
    "too short": ("true", "takes at least 1h", "s, and at least 3600 s are expected"),
    "too long": ("sleep 1.2", "takes at most 1s", "s, and at most 1 s are expected"),
    "zero is no success": ("true", "exits 7", "exit code 0"),
}


@pytest.mark.parametrize("case", UNMET)
def test_a_condition_that_is_not_met_is_a_failure_that_says_so(app: Served, tmp_path: Path, case: str) -> None:
    (tmp_path / "old.txt").write_text("x")
    os.utime(tmp_path / "old.txt", (1, 1))
    command, condition, said = UNMET[case]

    status, error, cause = outcome(app, tmp_path, command, condition)

    assert (status, said in (error or ""), said in (cause or "")) == ("failed", True, True), (error, cause)


def test_a_bad_exit_code_stays_a_failure(app: Served, tmp_path: Path) -> None:
    assert outcome(app, tmp_path, "echo done; exit 4", "prints done")[:2] == ("failed", "exit code 4")


def test_a_job_that_is_green_but_produces_nothing_is_healed(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(CRONMEND_HEALER="playbook")
    words = ("--name", "report", "--command", "true", "--project", str(tmp_path), "--schedule", "0 0 1 1 *")
    job = served.run("jobs", "add", *words, "--success-when", "creates report.pdf").out.strip()

    assert served.run("jobs", "run", job).code == 1

    heal = served.until_heal("abandoned")
    assert heal["cause"] == "not a success: it did not produce report.pdf"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("must print  done", "prints  done"),
        ("never prints error", "not prints error"),
        ("produces a.txt", "creates a.txt"),
        ("minimum 5 seconds", "takes at least 5s"),
        ("at most 10m", "takes at most 10m"),
        ("exit codes 3 or 0", "exits 0,3"),
    ],
)
def test_words_of_the_same_meaning_are_one_condition(said: str, kept: str) -> None:
    assert read_condition(said) == kept
    assert read_condition(kept) == kept


def test_what_is_no_condition_is_named_with_the_forms(app: Served) -> None:
    for wrong in ("be nice", "exits 300", "takes at least", "prints"):
        refused = app.run("jobs", "add", "--name", "n", "--command", "true", *OFTEN, "--success-when", wrong)
        assert refused.code == 2
        assert f"successWhen: “{wrong}” is no condition; write prints TEXT" in refused.err
    refused = app.run("jobs", "add", "--name", "n", "--prompt", "hi", *OFTEN, "--success-when", "prints x")
    assert (refused.code, "successWhen: is for commands" in refused.err) == (2, True)
