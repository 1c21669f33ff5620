"""Fix it, by hand: what it overrides, what it refuses, what it records, and that it never strands or counts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.serving import Served

pytestmark = pytest.mark.mission("O8")

KEY = "sk-ant-canary-0123456789abcdef"
GIVE_UP = [call("give_up", reason="no idea")]
NO_START = "Could not start the fix session. Please try again."


@pytest.fixture
def claude() -> Iterator[ClaudeServer]:
    with ClaudeServer([Fault(slow_secs=60)]) as server:
        yield server


@pytest.fixture
def served(serve: Callable[..., Served], claude: ClaudeServer) -> Served:
    return serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)


def failed_job(served: Served, folder: Path, *more: str) -> int:
    """A job that has failed for good, and that nobody heals by itself."""
    words = ("--name", "broken", "--command", "exit 7", "--schedule", "0 0 1 1 *", "--project", str(folder))
    job = int(served.run("jobs", "add", *words, "--no-healing", *more).out)
    fail_again(served, job)
    return job


def fail_again(served: Served, job: int) -> None:
    served.run("jobs", "run", str(job))
    served.until(lambda: all(run["healDecision"] for run in served.json("runs", "list", "--status", "failed")))


def start(served: Served, job: int) -> dict[str, Any]:
    started: dict[str, Any] = served.json("heals", "start", str(job))
    return started


def heals(served: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = served.json("heals", "list")
    return found


def test_it_records_a_manual_heal_and_pauses_the_job(served: Served, tmp_path: Path) -> None:
    job = failed_job(served, tmp_path)

    started = start(served, job)

    assert {name: started[name] for name in ("ok", "healId", "sessionId", "isPaused")} == {
        "ok": True,
        "healId": 1,
        "sessionId": 1,
        "isPaused": True,
    }
    (heal,) = heals(served)
    assert (heal["status"], heal["isManual"], heal["sessionId"]) == ("spawned", True, 1)
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["pausedBy"]) == (False, "heal 1")


@pytest.mark.parametrize(
    ("healing", "failures", "decision"), [("--no-healing", 0, "guard:healing_off"), ("--healing", 3, "guard:cap")]
)
def test_it_overrides_healing_off_and_the_cap(
    served: Served, claude: ClaudeServer, tmp_path: Path, healing: str, failures: int, decision: str
) -> None:
    claude.play([GIVE_UP])
    job = failed_job(served, tmp_path)
    served.alter("UPDATE cron_jobs SET consecutive_heal_failures = ? WHERE id = ?", failures, job)
    served.run("jobs", "edit", str(job), healing)
    fail_again(served, job)
    assert served.json("runs", "list")[0]["healDecision"] == decision

    start(served, job)

    heal = served.until_heal("abandoned")
    assert (heal["abandonedReason"], heal["countsAsFailure"]) == ("gave up: no idea", False)
    shown = served.json("jobs", "show", str(job))
    assert (shown["consecutiveHealFailures"], shown["isActive"]) == (failures, True)


def test_it_refuses_what_has_nothing_to_repair(served: Served, tmp_path: Path) -> None:
    add = ("jobs", "add", "--project", str(tmp_path), "--schedule", "0 0 1 1 *", "--name")
    prompt = served.run(*add, "prompt", "--prompt", "Say hello.").out.strip()
    never_failed = served.run(*add, "fine", "--command", "true").out.strip()
    words = ("jobs", "add", "--name", "once", "--command", "exit 3", "--at", "in 1s")
    once = served.run(*words).out.strip()
    served.until(lambda: served.json("runs", "list", "--job", once, "--status", "failed"))

    refused = {job: served.run("heals", "start", job) for job in (prompt, never_failed, once, "99")}

    assert {job: said.code for job, said in refused.items()} == {prompt: 2, never_failed: 2, once: 2, "99": 3}
    assert "A session job is a conversation itself" in refused[prompt].err
    assert "This job has no failed run; there is nothing to fix." in refused[never_failed].err
    assert "A one-off job has had its only run" in refused[once].err
    assert heals(served) == []


def test_one_fix_at_a_time(served: Served, tmp_path: Path) -> None:
    job = failed_job(served, tmp_path)
    start(served, job)

    refused = served.run("heals", "start", str(job))

    assert (refused.code, "A heal is already at work on this job." in refused.err) == (2, True)
    assert len(heals(served)) == 1


def test_a_run_that_was_healed_before_gets_a_session_that_holds_nothing(
    served: Served, claude: ClaudeServer, tmp_path: Path
) -> None:
    claude.play([GIVE_UP, [text("I would change the command.")]])
    job = failed_job(served, tmp_path)
    start(served, job)
    served.until_heal("abandoned")
    run = heals(served)[0]["runId"]

    again = start(served, job)

    assert (again["ok"], again["healId"], again["isPaused"]) == (True, None, False)
    number = str(again["sessionId"])
    session = served.until(
        lambda: one if (one := served.json("sessions", "show", number))["status"] == "idle" else None
    )
    assert len(heals(served)) == 1
    assert served.json("jobs", "show", str(job))["isActive"]
    assert f"Heal 1 has worked on run {run} before" in session["messages"][0]["content"][0]["text"]
    tools = {tool["name"] for tool in claude.requests[-1]["tools"]}
    assert tools == {"read", "write", "edit", "glob", "grep"}
    assert (
        f"[cron-heal] manual heal for job {job}: run {run} already has a heal_attempt (run_id collision) — "
        "spawning the fix session WITHOUT pausing so the job is never stranded"
    ) in served.log()
    assert "The job is not paused." in served.run("heals", "start", str(job)).out


def test_a_failed_spawn_leaves_no_heal(served: Served, tmp_path: Path) -> None:
    job = failed_job(served, tmp_path)
    served.alter(
        "CREATE TRIGGER broken BEFORE INSERT ON sessions BEGIN SELECT RAISE(ABORT, 'the disk says no'); END",
    )

    refused = served.run("heals", "start", str(job))

    assert (refused.code, NO_START in refused.err) == (2, True)
    assert heals(served) == []
    assert served.json("jobs", "show", str(job))["isActive"]
    assert f"[cron-heal] manual heal spawn failed for job {job} " in served.log()


@pytest.mark.mission("O13")
def test_a_project_folder_that_is_gone_is_named(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    folder.mkdir()
    job = failed_job(served, folder)
    folder.rename(tmp_path / "elsewhere")

    refused = served.run("heals", "start", str(job))

    assert (refused.code, f"The project folder {folder} is gone" in refused.err) == (2, True)
    assert heals(served) == []


def test_a_heal_that_cannot_be_finalized_blocks_nothing(served: Served, claude: ClaudeServer, tmp_path: Path) -> None:
    claude.play([GIVE_UP])
    job = failed_job(served, tmp_path)
    served.alter(
        "CREATE TRIGGER broken BEFORE UPDATE OF status ON cron_heal_attempts WHEN NEW.status = 'spawned'"
        " BEGIN SELECT RAISE(ABORT, 'the disk says no'); END",
    )

    refused = served.run("heals", "start", str(job))

    assert (refused.code, NO_START in refused.err) == (2, True)
    heal = served.until_heal("abandoned")
    assert (heal["abandonedReason"], heal["countsAsFailure"]) == ("manual-heal-finalize-failed", False)
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 0)
    assert f"[cron-heal] manual heal finalize failed for job {job} " in served.log()
    served.alter("DROP TRIGGER broken")
    fail_again(served, job)
    assert start(served, job)["healId"] == 2


@pytest.mark.mission("O7")
def test_putting_its_session_away_restores_the_job_and_does_not_count(served: Served, tmp_path: Path) -> None:
    job = failed_job(served, tmp_path)
    started = start(served, job)

    assert served.run("sessions", "archive", str(started["sessionId"])).code == 0

    heal = served.heal()
    assert (heal["abandonedReason"], heal["countsAsFailure"]) == ("session ended without resume", False)
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 0)
    assert served.json("sessions", "show", str(started["sessionId"]))["status"] == "archived"
    assert f"[CronHeal] Session 1 archived without resume — heal 1 abandoned, job {job} restored to active" in (
        served.log()
    )


@pytest.mark.mission("O7")
def test_putting_the_session_of_an_automatic_heal_away_counts(served: Served, tmp_path: Path) -> None:
    words = ("--name", "broken", "--command", "exit 7", "--schedule", "0 0 1 1 *", "--project", str(tmp_path))
    job = served.run("jobs", "add", *words).out.strip()
    served.run("jobs", "run", job)
    heal = served.until_heal("spawned")

    served.run("sessions", "archive", str(heal["sessionId"]))

    heal = served.heal()
    assert (heal["abandonedReason"], heal["countsAsFailure"]) == ("session ended without resume", True)
    shown = served.json("jobs", "show", job)
    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 1)


def test_a_fix_that_works_clears_the_escalation_and_the_counter(
    served: Served, claude: ClaudeServer, tmp_path: Path
) -> None:
    claude.play(
        [
            [call("write", file_path="ok.sh", content="exit 0\n")],
            [call("run_job")],
            [call("resume_schedule", root_cause="no script", fix="wrote it")],
        ]
    )
    job = failed_job(served, tmp_path, "--effects", "none", "--command", "sh ok.sh")
    served.alter("UPDATE cron_jobs SET consecutive_heal_failures = 3 WHERE id = ?", job)
    served.run("jobs", "edit", str(job), "--healing")
    fail_again(served, job)
    (card,) = [card for card in served.json("inbox", "list") if card["title"] == "broken needs human attention"]

    started = start(served, job)

    served.until_heal("fixed", heal_id=started["healId"])
    assert served.json("jobs", "show", str(job))["consecutiveHealFailures"] == 0
    assert served.json("inbox", "show", str(card["id"]))["status"] == "dismissed"
