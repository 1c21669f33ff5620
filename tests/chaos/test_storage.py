"""One data directory, many hazards: two apps at one instant, a database that somebody else holds."""

import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.serving import PYTHON, Served
from support.small_disk import fill, read_only, small_disk

pytestmark = [pytest.mark.mission("L3"), pytest.mark.timeout(1_200)]

__all__ = ["small_disk"]

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "12"))


def test_of_two_apps_that_start_at_one_instant_one_ticks(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        for _ in range(ROUNDS):
            both = [
                subprocess.Popen(
                    [*PYTHON, "serve"],
                    env=served.environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for _ in range(2)
            ]
            said = [process.stdout.readline() for process in both if process.stdout]
            winners = [process for process, line in zip(both, said, strict=True) if "running at" in line]
            assert len(winners) == 1, said
            (loser,) = [process for process in both if process is not winners[0]]
            _, why = loser.communicate(timeout=30)
            assert (loser.returncode, "Cronmend is running already" in why) == (2, True)
            winners[0].kill()
            winners[0].communicate()
    finally:
        served.close()


def test_a_database_that_somebody_holds_loses_no_end(serve: Callable[..., Served]) -> None:
    served = serve()
    words = ("--name", "held", "--command", "sleep 1; exit 4", "--schedule", "0 0 1 1 *", "--no-healing")
    job = served.run("jobs", "add", *words).out.strip()
    run = served.run("jobs", "run", job, "--detach").out.strip()
    served.until(lambda: served.json("runs", "show", run)["status"] == "running")

    with closing(sqlite3.connect(served.home / "cronmend.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(6)
        assert served.json("runs", "show", run)["status"] == "running", "nothing can be written meanwhile"
        other.execute("ROLLBACK")

    served.until(lambda: served.json("runs", "show", run)["status"] == "failed")
    shown = served.json("runs", "show", run)
    assert (shown["exitCode"], shown["systemMarkedFailure"]) == (4, False)
    assert 900 <= shown["durationMs"] < 5_000, "its end is when it ended, not when it could be written"


CODES = {0: "completed", 1: "failed", 126: "failed", 127: "failed", 137: "failed", 141: "failed", 255: "failed"}


def test_each_exit_code_is_told_as_it_was(serve: Callable[..., Served], tmp_path: Path) -> None:
    """Also of children that print what is no text, ask for input, or leave a child behind that holds their output."""
    served = serve()
    awkward = (
        r"printf 'caf\351 \303\050 \360\237\230'; printf '\000\n'; sleep 0.2; printf '\200'",
        'read answer; test -z "$answer"',
        "sleep 30 & echo parent is done",
    )
    commands = [*(f"exit {code}" for code in CODES), *awkward]
    for number, command in enumerate(commands):
        words = ("--name", f"code {number}", "--command", command, "--schedule", "0 0 1 1 *", "--no-healing")
        served.run("jobs", "run", served.run("jobs", "add", *words, "--cwd", str(tmp_path)).out.strip(), "--detach")

    served.until(lambda: all(run["completedAt"] for run in served.json("runs", "list")))

    ended = {run["jobId"]: (run["exitCode"], run["status"]) for run in served.json("runs", "list")}
    assert [ended[number] for number in sorted(ended)] == [*CODES.items(), *[(0, "completed")] * len(awkward)]
    raw = served.call("GET", f"/cron/runs/{len(CODES) + 1}/log?stream=out")[1]
    assert raw == b"caf\xe9 \xc3( \xf0\x9f\x98\x00\n\x80", "byte for byte"


def test_a_full_disk_loses_no_end_and_says_so_once(small_disk: Path, tmp_path: Path) -> None:
    served = Served(small_disk)
    try:
        served.start()
        add = ("jobs", "add", "--schedule", "0 0 1 1 *", "--no-healing", "--cwd", "/", "--name")
        over = tmp_path / "over"
        command = f"echo begun; sleep 4; seq 100000; touch {over}; exit 4"
        job = served.run(*add, "full", "--command", command).out.strip()
        later = served.run(*add, "later", "--command", "true").out.strip()
        run = served.run("jobs", "run", job, "--detach").out.strip()
        served.until(lambda: served.json("runs", "show", run)["status"] == "running")

        filler = fill(small_disk)

        refused = served.until(lambda: (said := served.run("jobs", "run", later)).code == 2 and said)
        assert "The disk is full: nothing can be recorded, and no job starts. Make room." in refused.err
        assert len(refused.err.splitlines()) == 1
        served.until(lambda: "The disk is full" in served.run("doctor").out)
        served.until(over.exists)
        time.sleep(1.5)
        assert served.json("runs", "show", run)["status"] == "running", "its end cannot be written yet"
        filler.unlink()
        served.until(lambda: served.json("runs", "show", run)["status"] == "failed")
        shown = served.json("runs", "show", run)
        assert (shown["exitCode"], shown["systemMarkedFailure"], shown["logCut"]) == (4, False, True)
        assert served.run("jobs", "run", later).code == 0
        served.until(lambda: "The disk is full" not in served.run("doctor").out)
        log = (served.home / "app.log").read_text()
        assert log.count("The disk is full: nothing can be recorded") == 1
    finally:
        served.close()


def test_a_directory_that_became_read_only_is_told_once_and_nothing_is_lost(small_disk: Path) -> None:
    served = Served(small_disk)
    try:
        served.start()
        add = ("jobs", "add", "--schedule", "0 0 1 1 *", "--no-healing", "--cwd", "/", "--name")
        old = served.run(*add, "old", "--command", "sleep 3; exit 4").out.strip()
        new = served.run(*add, "new", "--command", "true").out.strip()
        alive = served.run("jobs", "run", old, "--detach").out.strip()
        served.until(lambda: served.json("runs", "show", alive)["status"] == "running")

        with read_only(served.home):
            waiting = served.run("jobs", "run", new, "--detach").out.strip()

            served.until(lambda: "Runs wait to start: the log folder cannot be written" in served.run("doctor").out)
            assert served.json("runs", "show", waiting)["status"] == "pending"
            served.until(lambda: served.json("runs", "show", alive)["status"] == "failed")
            time.sleep(6)  # it is tried again meanwhile

        served.until(lambda: served.json("runs", "show", waiting)["status"] == "completed")
        served.until(lambda: "Runs wait to start" not in served.run("doctor").out)
        assert served.json("runs", "show", alive)["exitCode"] == 4
        log = (served.home / "app.log").read_text()
        assert (log.count(f"run {waiting} waits: the log folder cannot be written"), log.count("Traceback")) == (1, 0)
    finally:
        served.close()


def test_on_a_read_only_directory_each_command_says_so_in_one_line(small_disk: Path) -> None:
    served = Served(small_disk)
    served.start()
    served.run("jobs", "add", "--name", "kept", "--command", "true", "--schedule", "@daily")
    served.close()
    before = sorted(served.home.iterdir())

    with read_only(served.home):
        for words in (["serve"], ["backup"]):
            said = served.run(*words)
            assert (said.code, len(said.err.splitlines())) == (2, 1), said
            assert "cannot be" in said.err
        looked = served.run("doctor")

    assert looked.code != 0
    assert "Read-only file system" in looked.out
    assert sorted(served.home.iterdir()) == before, "nothing was taken for damaged"
