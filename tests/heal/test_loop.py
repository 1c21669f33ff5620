"""The whole loop through a real `serve`: a job breaks, is diagnosed, repaired, proven and resumed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.serving import Served

KEY = "sk-ant-canary-0123456789abcdef"

BROKEN = """\
import json
total = sum(order["amount"] for order in json.load(open("orders.json")))
print("total", total)
"""


def make_shop(folder: Path) -> Path:
    """A project whose data file had a field renamed: the script fails with KeyError."""
    project = folder / "shop"
    project.mkdir()
    (project / "report.py").write_text(BROKEN)
    (project / "orders.json").write_text(json.dumps([{"total": 3}, {"total": 4}]))
    return project


def add_job(served: Served, project: Path, *more: str) -> int:
    words = ("--name", "shop report", "--command", "python3 report.py", "--schedule", "0 0 1 1 *")
    return int(served.run("jobs", "add", *words, "--project", str(project), *more).out)


REPAIR = [
    [text("The field was renamed."), call("read", file_path="report.py")],
    [call("edit", file_path="report.py", old_string='order["amount"]', new_string='order["total"]')],
    [call("run_job")],
    [call("resume_schedule", root_cause="the field amount is now total", fix="read total instead of amount")],
]


@pytest.mark.mission("O4", "O5", "O6", "O7")
def test_claude_repairs_a_renamed_field(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    with ClaudeServer(REPAIR) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, project, "--effects", "idempotent")

        assert served.run("jobs", "run", str(job)).code == 1

        heal = served.until_heal("fixed", "abandoned")
        served.until(lambda: served.json("sessions", "show", "1")["status"] == "idle")

    assert (heal["status"], heal["proof"], heal["rootCause"]) == ("fixed", "run", "the field amount is now total")
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["consecutiveHealFailures"], shown["pausedBy"]) == (True, 0, None)
    assert served.run("jobs", "run", str(job)).out == "total 7\n"
    diff = served.run("heals", "show", "1", "--diff").out
    assert '-total = sum(order["amount"]' in diff
    assert '+total = sum(order["total"]' in diff
    assert claude.refused == []
    session = served.json("sessions", "show", "1")
    assert (session["origin"], session["provider"], session["tokensIn"]) == ("heal", "claude", 4_000)
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"] * 4 + ["user"]


@pytest.mark.mission("O6", "B9")
def test_neither_key_nor_token_reaches_the_model(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    (project / "leak.txt").write_text(f"ANTHROPIC_API_KEY={KEY}\n")
    script = [
        [call("read", file_path="leak.txt")],
        [call("grep", pattern="ANTHROPIC")],
        [call("bash", command="cat leak.txt; env; cat /proc/*/environ | tr '\\0' '\\n'")],
        [call("give_up", reason="seen enough")],
    ]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, project)

        served.run("jobs", "run", str(job))
        served.until_heal("abandoned")

        sent = json.dumps(claude.requests)
        control = served.address["controlToken"]
    assert "leak.txt" in sent
    for secret in (KEY, control, "cms_"):
        assert secret not in sent
        assert secret not in served.log()
        assert secret not in json.dumps(served.json("sessions", "show", "1"))


@pytest.mark.mission("O5", "B4")
def test_the_sample_heals_itself_without_a_key(serve: Callable[..., Served]) -> None:
    served = serve()

    assert served.run("sample").code == 0

    heal = served.until_heal("fixed", "abandoned")
    assert (heal["status"], heal["proof"], heal["cause"]) == (
        "fixed",
        "run",
        "bad interpreter (CRLF line endings): ./count_words.sh",
    )
    run = served.json("runs", "show", str(heal["runId"]))
    assert (run["category"], run["healDecision"], run["exitCode"]) == ("script-error", "healed", 127)
    assert served.run("jobs", "run", "1").out == "fox.txt: 9\n"


@pytest.mark.mission("O7")
def test_without_a_key_and_a_rule_it_asks_the_person(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    job = add_job(served, make_shop(tmp_path))

    served.run("jobs", "run", str(job))

    heal = served.until_heal("abandoned")
    assert heal["abandonedReason"].startswith("needs you: KeyError 'amount' in report.py line 2")
    assert heal["countsAsFailure"] is True
    (card,) = served.json("inbox", "list")
    assert (card["actionKind"], card["title"]) == ("heal.needs_you", "shop report needs you")
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 1)


@pytest.mark.mission("O7", "B8")
def test_an_unfixed_heal_puts_every_file_back(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    script = [
        [call("edit", file_path="report.py", old_string="total =", new_string="totally = total =")],
        [call("write", file_path="notes/new.txt", content="x\n")],
        [call("bash", command="echo more >> orders.json; mkdir -p made; echo y > made/file")],
        [call("give_up", reason="ask the owner of orders.json")],
    ]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, project)

        served.run("jobs", "run", str(job))
        heal = served.until_heal("abandoned", "fixed")

    assert heal["abandonedReason"] == "gave up: ask the owner of orders.json"
    assert (project / "report.py").read_text() == BROKEN
    assert json.loads((project / "orders.json").read_text()) == [{"total": 3}, {"total": 4}]
    assert not (project / "notes" / "new.txt").exists()
    assert not (project / "made" / "file").exists()
    assert "+totally = total =" in served.run("heals", "show", "1", "--diff").out, "the patch is kept"


@pytest.mark.mission("B8")
def test_a_fix_can_be_undone(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    with ClaudeServer(REPAIR) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        served.run("jobs", "run", str(add_job(served, project, "--effects", "none")))
        served.until_heal("fixed")

        said = served.run("heals", "undo", "1")

    assert said.out == "Put back: report.py\n"
    assert (project / "report.py").read_text() == BROKEN


@pytest.mark.mission("B6")
def test_a_job_with_side_effects_is_never_run_by_a_heal(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    script = [
        [call("run_job")],
        REPAIR[1],
        [call("resume_schedule", root_cause="r", fix="f")],
        [call("verify")],
        REPAIR[3],
    ]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, project, "--effects", "external")

        served.run("jobs", "run", str(job))
        heal = served.until_heal("fixed", "abandoned")

        results = [message["content"][0]["content"] for message in claude.requests[-1]["messages"][2::2]]
    assert (heal["status"], heal["proof"]) == ("fixed", "unverified")
    assert "may not run this job for real" in json.dumps(results[0])
    assert "There is no proof" in json.dumps(results[2])
    assert [run["triggeredBy"] for run in served.json("runs", "list")] == ["manual"]


@pytest.mark.mission("B6")
def test_a_proof_is_void_when_a_file_changes_after_it(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    spoil = [call("edit", file_path="report.py", old_string='print("total", total)', new_string="print(1)")]
    script = [REPAIR[1], [call("run_job")], spoil, REPAIR[3], [call("give_up", reason="enough")]]
    with ClaudeServer(script) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)

        served.run("jobs", "run", str(add_job(served, project, "--effects", "none")))
        heal = served.until_heal("fixed", "abandoned")

    assert heal["abandonedReason"] == "gave up: enough"
    assert "There is no proof" in json.dumps(claude.requests[-1]["messages"][-1])


@pytest.mark.mission("O9")
def test_a_kill_in_mid_heal_is_closed_at_the_next_start(serve: Callable[..., Served], tmp_path: Path) -> None:
    project = make_shop(tmp_path)
    with ClaudeServer([REPAIR[1], Fault(slow_secs=30)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, project, "--effects", "none")
        served.run("jobs", "run", str(job), "--detach")
        served.until(lambda: (project / "report.py").read_text() != BROKEN)
        old_token = served.address["controlToken"]
        served.kill()

        served.start()
        heal = served.until_heal("abandoned")

    assert heal["abandonedReason"] == "app restart invalidated session token"
    assert heal["countsAsFailure"] is True
    assert (project / "report.py").read_text() == BROKEN
    shown = served.json("jobs", "show", str(job))
    assert (shown["isActive"], shown["pausedBy"], shown["consecutiveHealFailures"]) == (True, None, 1)
    assert served.call("GET", "/cron/jobs", token=old_token)[0] == 401


@pytest.mark.mission("O7")
def test_a_person_who_resumes_the_job_stops_its_heal(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=30)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        job = add_job(served, make_shop(tmp_path))
        served.run("jobs", "run", str(job), "--detach")
        served.until(lambda: claude.requests)
        assert served.json("jobs", "show", str(job))["pausedBy"] == "heal 1"

        shown = served.json("jobs", "resume", str(job))

    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 0)
    assert served.heal()["abandonedReason"] == "stopped by user"


@pytest.mark.mission("O4", "O7")
def test_a_heal_whose_folder_is_gone_is_a_counted_failure_to_start(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    project = make_shop(tmp_path)
    job = add_job(served, project)
    shutil.rmtree(project)

    served.run("jobs", "run", str(job))

    heal = served.until_heal("abandoned")
    assert (heal["abandonedReason"], heal["countsAsFailure"]) == ("auto-fire-spawn-failed", True)
    assert served.json("jobs", "show", str(job))["isActive"] is True


@pytest.mark.mission("O3")
def test_twenty_jobs_that_fail_at_once_open_three_heals(serve: Callable[..., Served], tmp_path: Path) -> None:
    with ClaudeServer([Fault(slow_secs=60)]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        project = make_shop(tmp_path)
        jobs = [add_job(served, project) for _ in range(20)]
        for job in jobs:
            served.call("POST", f"/cron/jobs/{job}/run?wait=0", {})
        served.until(lambda: all(run["healDecision"] for run in served.json("runs", "list")))

        decisions = {run["id"]: run["healDecision"] for run in served.json("runs", "list")}
        deferred = next(run for run, decision in decisions.items() if decision == "guard:fleet_cap")
        said = served.run("runs", "show", str(deferred)).out

    assert sorted(decisions.values()) == ["guard:fleet_cap"] * 17 + ["healed"] * 3
    assert "as many heals as allowed were at work; tried again at the next failure" in said
    assert served.json("status")["openHealCount"] == 3


@pytest.mark.mission("O3")
def test_a_run_that_overran_is_marked_by_the_app_and_heals_all_the_same(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve(CRONMEND_HEALER="playbook")
    words = ("--name", "slow", "--command", "echo loading; sleep 60", "--schedule", "0 0 1 1 *", "--timeout", "1")
    job = served.run("jobs", "add", *words, "--project", str(tmp_path)).out.strip()

    served.run("jobs", "run", job)

    served.until_heal("abandoned", "fixed")
    run = served.json("runs", "show", "1")
    assert (run["status"], run["systemMarkedFailure"], run["healDecision"]) == ("timeout", True, "healed")
    assert run["evidence"]["stdoutTail"] == "loading"
    assert served.json("status")["staleRecoveryCount"] == 0


@pytest.mark.mission("O8")
def test_a_manual_fix_at_the_cap_works_and_never_counts(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(CRONMEND_HEALER="playbook")
    job = add_job(served, make_shop(tmp_path))
    for _ in range(4):
        served.run("jobs", "run", str(job))
        served.until(lambda: all(run["healDecision"] for run in served.json("runs", "list")))
        served.until(lambda: served.json("status")["openHealCount"] == 0)
    assert served.json("jobs", "show", str(job))["consecutiveHealFailures"] == 3
    assert served.json("runs", "list")[0]["healDecision"] == "guard:cap"

    heal_id = int(served.run("heals", "start", str(job)).out)

    heal = served.until_heal("abandoned", heal_id=heal_id)
    assert (heal["isManual"], heal["countsAsFailure"]) == (True, False)
    shown = served.json("jobs", "show", str(job))
    assert (shown["consecutiveHealFailures"], shown["isActive"]) == (3, True)
