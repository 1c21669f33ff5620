"""Sessions of a person and of jobs that are prompts: a real app, real worker processes, the real SDK."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.serving import Served

KEY = "sk-ant-canary-0123456789abcdef"


def session(served: Served, session_id: int | str) -> dict[str, Any]:
    found: dict[str, Any] = served.json("sessions", "show", str(session_id))
    return found


def until_idle(served: Served, session_id: int | str) -> dict[str, Any]:
    return served.until(lambda: one if (one := session(served, session_id))["status"] != "running" else None)  # type: ignore[no-any-return]


def said(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of every text block."""
    return [
        (message["role"], block["text"])
        for message in one["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


@pytest.mark.mission("O5", "O14")
def test_a_person_starts_a_session_goes_on_and_archives_it(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("blue\n")
    script = [
        [text("I look."), call("read", file_path="notes.txt")],
        [text("It says blue.")],
        [call("write", file_path="notes.txt", content="green\n")],
        [text("Changed.")],
    ]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)

        number = served.run("sessions", "start", "What colour?", "--project", str(tmp_path)).out.strip()
        first = until_idle(served, number)
        assert served.run("sessions", "send", number, "Make it green.").code == 0
        second = until_idle(served, number)

        assert served.run("sessions", "archive", number).code == 0
        again = served.run("sessions", "send", number, "And now?")

    assert claude.refused == []
    assert said(first) == [("user", "What colour?"), ("assistant", "I look."), ("assistant", "It says blue.")]
    assert (first["status"], first["origin"], first["tokensIn"], first["error"]) == ("idle", "manual", 2_000, None)
    assert said(second)[-1] == ("assistant", "Changed.")
    assert second["tokensIn"] == 4_000
    assert (tmp_path / "notes.txt").read_text() == "green\n"
    assert "green" in str(claude.requests[2]["messages"][-1]), "the whole conversation is sent again"
    assert session(served, number)["status"] == "archived"
    assert (again.code, "archived" in again.err) == (2, True)


@pytest.mark.mission("O5")
def test_without_a_key_a_session_says_how_to_get_one(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()

    refused = served.run("sessions", "start", "hello", "--project", str(tmp_path))

    assert refused.code == 2
    assert "add one in Settings, or set ANTHROPIC_API_KEY" in refused.err
    assert served.json("sessions", "list") == []


@pytest.mark.mission("O5")
def test_a_turn_is_stopped_and_the_session_goes_on(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=60), [text("Here I am.")]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        number = served.run("sessions", "start", "Think long.", "--project", str(tmp_path)).out.strip()
        served.until(lambda: claude.requests)
        assert served.run("sessions", "send", number, "Hurry.").code == 2, "one turn at a time"

        assert served.run("sessions", "stop", number).code == 0

        stopped = until_idle(served, number)
        served.run("sessions", "send", number, "Are you there?")
        assert said(until_idle(served, number))[-1] == ("assistant", "Here I am.")
    assert (stopped["status"], stopped["error"]) == ("idle", "Stopped.")


@pytest.mark.mission("O5")
def test_a_killed_app_leaves_a_session_that_can_go_on(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=60), [text("Well again.")]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        number = served.run("sessions", "start", "Do it.", "--project", str(tmp_path)).out.strip()
        served.until(lambda: claude.requests)

        served.kill()
        served.start()

        cut = session(served, number)
        served.run("sessions", "send", number, "Go on.")
        after = until_idle(served, number)
    assert (cut["status"], cut["error"]) == (
        "idle",
        "Cronmend was closed while it was at work. Send a message to go on.",
    )
    assert said(after) == [("user", "Do it."), ("user", "Go on."), ("assistant", "Well again.")]
    assert claude.refused == []


@pytest.mark.mission("O5")
def test_a_refused_key_ends_the_turn_with_its_reason(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(status=401)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)

        number = served.run("sessions", "start", "Hello.", "--project", str(tmp_path)).out.strip()

        one = until_idle(served, number)
    assert (one["status"], one["error"]) == ("failed", "The model could not be reached: key refused.")


@pytest.mark.mission("O5")
def test_a_closed_heal_is_talked_about_without_its_rights(serve: Callable[..., Served]) -> None:
    with ClaudeServer([[text("The line endings were wrong.")]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        served.run("sample")
        number = served.until_heal("fixed")["sessionId"]
        until_idle(served, number)

        assert served.run("sessions", "send", str(number), "What was it?").code == 0

        one = until_idle(served, number)
    assert said(one)[-1] == ("assistant", "The line endings were wrong.")
    assert claude.refused == []
    tools = {tool["name"] for tool in claude.requests[0]["tools"]}
    assert not tools & {"run_job", "resume_schedule", "propose_job"}


def proposals(body: dict[str, Any]) -> Any:
    return body["messages"][-1]["content"][0]["content"]


@pytest.mark.mission("O14", "I8")
def test_a_session_looks_at_jobs_and_can_only_propose_one(serve: Callable[..., Served], tmp_path: Path) -> None:
    script = [
        [call("list_jobs")],
        [call("job_status", job_id=1)],
        [call("propose_job", name="tidy", command="./tidy.sh", schedule="daily at 9am")],
        [text("Proposed.")],
    ]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        served.run("jobs", "add", "--name", "present", "--command", "true", "--schedule", "0 0 1 1 *")

        number = served.run("sessions", "start", "Add a job.", "--project", str(tmp_path)).out.strip()
        until_idle(served, number)

    assert '"name": "present"' in str(claude.requests[1]["messages"])
    assert '"runs": []' in str(claude.requests[2]["messages"])
    assert [job["name"] for job in served.json("jobs", "list")] == ["present"]
    (card,) = served.json("inbox", "list")
    assert (card["actionKind"], card["payload"]["sessionId"]) == ("cron.create", int(number))
    assert served.run("inbox", "resolve", str(card["id"]), "approve").code == 0
    assert [job["name"] for job in served.json("jobs", "list")] == ["present", "tidy"]


@pytest.mark.mission("O11")
def test_a_fix_by_hand_holds_the_job_until_its_session_is_archived(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    with ClaudeServer([[text("I see.")]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = served.run(
            *("jobs", "add", "--name", "broken", "--command", "exit 3", "--schedule", "0 0 1 1 *"),
            *("--project", str(tmp_path), "--no-healing"),
        ).out.strip()

        number = served.run("sessions", "start", "Fix it with me.", "--job", job).out.strip()

        held = served.json("jobs", "show", job)
        twice = served.run("sessions", "start", "Me too.", "--job", job)
        until_idle(served, number)
        served.kill()
        served.start()
        still_held = served.json("jobs", "show", job)
        served.run("sessions", "archive", number)
    assert (held["isActive"], held["pausedBy"]) == (False, "session")
    assert (twice.code, f"Session {number} repairs this job already" in twice.err) == (2, True)
    assert still_held["pausedBy"] == "session", "a session that can go on keeps its pause"
    assert served.json("jobs", "show", job)["isActive"]


@pytest.mark.mission("O11")
def test_a_hand_fix_pause_without_its_session_is_lifted_at_start(serve: Callable[..., Served]) -> None:
    served = serve()
    job = served.run("jobs", "add", "--name", "n", "--command", "true", "--schedule", "0 0 1 1 *").out.strip()
    served.stop()
    served.alter("UPDATE cron_jobs SET paused_session_id = 99")

    served.start()

    assert served.json("jobs", "show", job)["isActive"]


def add_prompt(served: Served, project: Path, *more: str) -> str:
    words = ("--name", "digest", "--prompt", "Sum up notes.txt.", "--schedule", "0 0 1 1 *")
    said = served.run("jobs", "add", *words, "--project", str(project), *more)
    assert said.code == 0, said
    return said.out.strip()


@pytest.mark.mission("L8", "L1")
def test_a_prompt_job_runs_in_a_fresh_session_and_its_answer_is_the_output(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("blue\n")
    answer = "Only one colour: blue. " * 200
    script = [[text("Let me see."), call("read", file_path="notes.txt")], [text(answer)]]
    with ClaudeServer([*script, *script]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_prompt(served, tmp_path)

        first = served.run("jobs", "run", job)
        second = served.run("jobs", "run", job)

    assert (first.code, first.out) == (0, answer + "\n")
    assert second.code == 0
    tools = {tool["name"] for tool in claude.requests[0]["tools"]}
    assert "read" in tools
    assert not tools & {"list_jobs", "propose_job", "run_job", "resume_schedule"}
    assert len(claude.requests[2]["messages"]) == 1, "the second run knows nothing of the first"
    found = served.json("sessions", "list")
    assert [(one["origin"], one["jobId"], one["runId"], one["status"]) for one in found] == [
        ("job", int(job), 2, "idle"),
        ("job", int(job), 1, "idle"),
    ]
    assert served.json("runs", "list")[0]["status"] == "completed"


@pytest.mark.mission("L8", "O1", "O3")
def test_a_prompt_job_that_fails_alerts_and_never_heals(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(status=401)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_prompt(served, tmp_path)

        served.run("jobs", "run", job)

        (card,) = served.until(lambda: served.json("inbox", "list"))
    run = served.json("runs", "show", "1")
    assert (run["status"], run["healDecision"]) == ("failed", "guard:session_job")
    assert run["error"] == "The model could not be reached: key refused."
    assert card["actionKind"] == "cron.failure_alert"
    assert served.json("heals", "list") == []


@pytest.mark.mission("L8", "L6")
def test_a_prompt_job_is_aborted_and_timed_out(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=60)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_prompt(served, tmp_path, "--timeout", "4")
        run = served.json("jobs", "run", job, "--detach")["runId"]
        served.until(lambda: claude.requests)

        assert served.run("runs", "abort", str(run)).code == 0

        served.until(lambda: served.json("runs", "show", str(run))["status"] == "aborted")
        served.run("jobs", "run", job)
        assert served.json("runs", "list")[0]["status"] == "timeout"


@pytest.mark.mission("L8", "B3")
def test_a_prompt_run_that_a_crash_cut_off_is_nobodys_success(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=60)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_prompt(served, tmp_path)
        run = served.json("jobs", "run", job, "--detach")["runId"]
        served.until(lambda: claude.requests)

        served.kill()
        served.start()

        ended = served.json("runs", "show", str(run))
    assert (ended["status"], ended["systemMarkedFailure"]) == ("failed", True)
    assert session(served, 1)["status"] == "failed"
