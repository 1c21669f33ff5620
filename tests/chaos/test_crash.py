"""Runs outlive a crash of the app, and what nobody can vouch for is said so."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.serving import Served

from scheduler import process_tree

pytestmark = pytest.mark.mission("B3")


def add(served: Served, command: str, *more: str) -> str:
    words = ("--name", "j", "--command", command, "--schedule", "0 0 1 1 *", "--no-healing")
    return served.run("jobs", "add", *words, *more).out.strip()


def start_run(served: Served, job: str) -> str:
    run = served.run("jobs", "run", job, "--detach").out.strip()
    served.until(lambda: served.json("runs", "show", run)["status"] == "running")
    return run


@pytest.mark.mission("L6")
def test_a_child_that_ends_while_the_app_is_down_is_recorded_as_it_ended(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    gate, done = tmp_path / "gate", tmp_path / "done"
    command = (
        f"(while [ ! -e {gate} ]; do sleep 0.05; done; sleep 0.4; echo last byte; touch {done}) & "
        f"echo started; while [ ! -e {gate} ]; do sleep 0.05; done; exit 37"
    )
    run = start_run(served, add(served, command))
    served.kill()
    gate.touch()
    served.until(done.exists)

    served.start()

    shown = served.until(lambda: found if (found := served.json("runs", "show", run))["status"] != "running" else None)
    assert (shown["status"], shown["exitCode"], shown["systemMarkedFailure"]) == ("failed", 37, False)
    assert served.run("runs", "log", run).out == "started\nlast byte\n"
    assert len(served.json("runs", "list")) == 1, "it was not started again"


@pytest.mark.mission("L6")
def test_a_run_that_still_lives_is_adopted_watched_and_abortable(serve: Callable[..., Served]) -> None:
    served = serve()
    run = start_run(served, add(served, "sleep 300"))
    served.kill()

    served.start()

    assert served.json("runs", "show", run)["status"] == "running"
    assert served.run("runs", "abort", run).code == 0
    served.until(lambda: served.json("runs", "show", run)["status"] == "aborted")


@pytest.mark.mission("L6")
def test_a_killed_keeper_is_told_honestly(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    lost = start_run(served, add(served, "echo $$ > pid; sleep 300", "--cwd", str(tmp_path)))
    living = start_run(served, add(served, "sleep 2"))
    keeper = served.json("status")["keeperPid"]
    os.kill(keeper, signal.SIGKILL)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    served.until(lambda: all(run["completedAt"] for run in served.json("runs", "list")))

    for one in (served.json("runs", "show", run) for run in (lost, living)):
        assert (one["status"], one["exitCode"], one["systemMarkedFailure"]) == ("failed", None, True)
        assert one["error"].startswith("Nobody can vouch for how this run ended")
        assert one["evidence"] is None
    status = served.json("status")
    assert (status["staleRecoveryCount"], status["keeperPid"] != keeper) == (2, True)
    assert served.run("jobs", "run", add(served, "exit 5")).code == 5, "the next keeper runs jobs"


@pytest.mark.mission("O3")
def test_a_system_marked_failure_is_not_healed(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    words = ("--name", "h", "--command", "echo $$ > pid; sleep 300", "--schedule", "0 0 1 1 *", "--cwd", str(tmp_path))
    run = start_run(served, served.run("jobs", "add", *words).out.strip())
    os.kill(served.json("status")["keeperPid"], signal.SIGKILL)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    decided = served.until(lambda: found if (found := served.json("runs", "show", run))["healDecision"] else None)

    assert decided["healDecision"] == "guard:system_marked"
    assert served.json("heals", "list") == []


def test_a_clean_end_leaves_the_runs_alone(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    run = start_run(served, add(served, "echo $$ > pid; sleep 1; exit 3", "--cwd", str(tmp_path)))

    assert served.stop() == 0
    pid = int((tmp_path / "pid").read_text())
    served.until(lambda: process_tree.look_up(pid) is None)
    served.start()

    served.until(lambda: served.json("runs", "show", run)["exitCode"] == 3)


@pytest.mark.mission("B1", "L3")
def test_a_due_slot_that_passed_while_the_app_was_down_is_caught_up_once(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    words = ("--name", "n", "--command", "echo x >> ran", "--cwd", str(tmp_path), "--no-healing")
    job = served.run("jobs", "add", *words, "--at", "in 2s").out.strip()
    served.kill()
    served.until(lambda: served.run("jobs", "next", job, "--json").json == [])

    served.start()
    served.until((tmp_path / "ran").exists)
    served.kill()
    served.start()

    served.until(lambda: served.json("runs", "list")[0]["status"] == "completed")
    assert (tmp_path / "ran").read_text() == "x\n"
    assert len(served.json("runs", "list")) == 1


@pytest.mark.mission("L2")
def test_a_job_for_the_start_of_the_machine_runs_once_a_boot(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    words = ("--name", "mounts", "--command", "echo x >> ran", "--cwd", str(tmp_path), "--schedule", "@reboot")
    job = served.run("jobs", "add", *words).out.strip()
    served.stop()
    served.start()
    assert served.json("runs", "list") == [], "the machine was not started anew"
    served.stop()
    served.alter("UPDATE boots SET machine_boot_id = 'an earlier boot'")

    for _ in range(2):
        served.start()
        served.until((tmp_path / "ran").exists)
        served.kill()
    served.start()

    served.until(lambda: served.json("runs", "list", "--job", job)[0]["status"] == "completed")
    assert (tmp_path / "ran").read_text() == "x\n"
    assert [run["triggeredBy"] for run in served.json("runs", "list")] == ["schedule"]
