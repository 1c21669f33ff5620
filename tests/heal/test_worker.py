"""A heal session from `go` to its end: the real process, a real broken project, a CLI server and a scripted Claude."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.claude_server import ClaudeServer, call, text
from support.cli_stand_in import TOKEN, CliStandIn, Job
from support.session_bench import KEY, SessionBench, make_spec, wait_until

from agent.wire import Spec
from heal.playbook.case import Case

WORKER = (sys.executable, "-P", "-m", "heal.worker")
PATH = "/usr/local/bin:/usr/bin:/bin"
CRLF = b"#!/bin/sh\r\necho 3 words\r\n"
BROKEN = """\
import json
print("total", sum(order["amount"] for order in json.load(open("orders.json"))))
"""
REPAIR: list[Any] = [
    [text("The field was renamed."), call("read", file_path="report.py")],
    [call("edit", file_path="report.py", old_string='order["amount"]', new_string='order["total"]')],
    [call("run_job")],
    [call("resume_schedule", root_cause="the field amount is now total", fix="read total instead of amount")],
]


def fail(folder: Path, command: str, **facts: Any) -> Case:
    """Runs the command, which really fails; what the app knows of it afterwards."""
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return Case(
        project=str(folder),
        cwd=str(folder),
        command=command,
        path=PATH,
        exit_code=done.returncode,
        stdout_tail=done.stdout,
        stderr_tail=done.stderr,
        **facts,
    )


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A project whose script has the line endings of another system."""
    (tmp_path / "count.sh").write_bytes(CRLF)
    (tmp_path / "count.sh").chmod(0o755)
    return tmp_path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project whose data file had a field renamed: no rule can know that."""
    (tmp_path / "report.py").write_text(BROKEN)
    (tmp_path / "orders.json").write_text(json.dumps([{"total": 3}, {"total": 4}]))
    return tmp_path


def shop_spec(shop: Path, cli: CliStandIn, claude: ClaudeServer | None, **changes: Any) -> Spec:
    case = fail(shop, "python3 report.py", cause="KeyError 'amount' in report.py line 2")
    model = {"apiKey": KEY, "baseUrl": claude.url} if claude is not None else {}
    return make_spec(shop, api_url=cli.url, case=case, provider={**model, **changes})


def words_spec(words: Path, cli: CliStandIn, **provider: Any) -> Spec:
    return make_spec(words, api_url=cli.url, case=fail(words, "./count.sh"), provider=provider)


# Claude


@pytest.mark.mission("O5", "O6")
def test_claude_repairs_a_really_broken_script(shop: Path) -> None:
    at_ask: list[str] = []
    job = Job(shop, "python3 report.py", follows=2)
    with (
        CliStandIn(job) as cli,
        ClaudeServer(REPAIR) as claude,
        SessionBench(WORKER, shop_spec(shop, cli, claude)) as bench,
    ):
        bench.on_ask = lambda _line: at_ask.append((shop / "report.py").read_text())

        end = bench.treat()

        code = bench.until_exit()
    done = subprocess.run(["python3", "report.py"], cwd=shop, capture_output=True, text=True, check=True)
    assert done.stdout == "total 7\n"
    assert (end["outcome"], code, claude.refused) == ("done", 0, [])
    assert at_ask == [BROKEN], "the app is asked before the file is touched"
    assert cli.toggles == [
        {"isActive": True, "rootCause": "the field amount is now total", "fix": "read total instead of amount"}
    ]
    assert cli.calls == [f"/cron/jobs/7/run{query}" for query in ("", "?follow=12", "?follow=12")] + [
        "/cron/jobs/7/toggle"
    ]
    results = [block["content"] for block in bench.said("claude") if block["type"] == "tool_result"]
    assert len(results) == len(REPAIR)
    assert json.loads(results[2]) == {
        "status": "completed",
        "exitCode": 0,
        "stdout": "total 7\n",
        "stderr": "",
        "truncated": False,
    }
    for secret in (KEY, TOKEN):
        assert secret not in json.dumps(claude.requests)
        assert secret not in json.dumps(bench.lines)


@pytest.mark.mission("O6", "B6")
def test_the_server_has_the_last_word_on_a_resume_and_a_run(shop: Path) -> None:
    script = [
        [call("run_job")],
        [call("resume_schedule", root_cause="r", fix="f")],
        [call("resume_schedule", root_cause="r")],
        [call("propose_change", field="effects", value="none", why="it only prints")],
        [call("give_up", reason="declare its effects")],
    ]
    job = Job(shop, "python3 report.py", effects="external")
    with (
        CliStandIn(job) as cli,
        ClaudeServer(script) as claude,
        SessionBench(WORKER, shop_spec(shop, cli, claude)) as bench,
    ):
        end = bench.treat()

    assert (end["outcome"], end["detail"], cli.toggles) == ("gave_up", "declare its effects", [])
    results = [block for block in bench.said("claude") if block["type"] == "tool_result"]
    assert [block["content"] for block in results[:3]] == [
        "A heal may not run this job for real.",
        "There is no proof that the fix works.",
        "fix is missing; it must be text.",
    ]
    assert [block.get("is_error") for block in results] == [True, True, True, None, None]
    assert bench.until_line("propose") == {
        "type": "propose",
        "field": "effects",
        "value": "none",
        "why": "it only prints",
    }


@pytest.mark.mission("O7")
def test_a_stop_does_not_wait_for_a_run_that_lasts(shop: Path) -> None:
    job = Job(shop, "python3 report.py", run_secs=600)
    with (
        CliStandIn(job) as cli,
        ClaudeServer([[call("run_job")]]) as claude,
        SessionBench(WORKER, shop_spec(shop, cli, claude)) as bench,
    ):
        bench.process.go()
        wait_until(lambda: cli.calls)

        bench.process.stop()

        end = bench.until_line("end")
        code = bench.until_exit()
    assert (end["outcome"], end["usage"]["inputTokens"], code) == ("stopped", 1_000, 0)


@pytest.mark.mission("O5", "B4")
def test_claude_is_told_what_the_playbook_tried_in_vain(words: Path) -> None:
    (words / "count.sh").write_bytes(CRLF + b"exit 4\r\n")
    with (
        CliStandIn(Job(words, "./count.sh")) as cli,
        ClaudeServer([[call("give_up", reason="no")]]) as claude,
        SessionBench(WORKER, words_spec(words, cli, apiKey=KEY, baseUrl=claude.url)) as bench,
    ):
        end = bench.treat()

    assert end["outcome"] == "gave_up"
    prompt = claude.requests[0]["messages"][0]["content"][0]["text"]
    assert "The built-in playbook tried first" in prompt
    assert "CRLF line endings: count.sh" in prompt
    assert bench.said("playbook")


@pytest.mark.mission("O5")
def test_with_claude_alone_the_playbook_is_not_asked(words: Path) -> None:
    with CliStandIn(Job(words, "./count.sh")) as cli, ClaudeServer([[call("give_up", reason="no")]]) as claude:
        spec = words_spec(words, cli, mode="claude", apiKey=KEY, baseUrl=claude.url)
        with SessionBench(WORKER, spec) as bench:
            end = bench.treat()

    assert (end["outcome"], bench.said("playbook")) == ("gave_up", [])
    assert (words / "count.sh").read_bytes() == CRLF


# The playbook


@pytest.mark.mission("B4", "O5")
@pytest.mark.parametrize("mode", ["auto", "playbook"])
def test_the_playbook_repairs_without_a_key(words: Path, mode: str) -> None:
    at_ask: list[bytes] = []
    with CliStandIn(Job(words, "./count.sh")) as cli, SessionBench(WORKER, words_spec(words, cli, mode=mode)) as bench:
        bench.on_ask = lambda _line: at_ask.append((words / "count.sh").read_bytes())

        end = bench.treat()

        code = bench.until_exit()
    assert (end["outcome"], end["usage"], code) == ("done", {}, 0)
    assert subprocess.run(["./count.sh"], cwd=words, capture_output=True, check=True).stdout == b"3 words\n"
    assert at_ask == [CRLF], "the app is asked before the file is touched"
    (ask,) = [line for line in bench.lines if line["type"] == "ask"]
    assert (ask["what"], ask["paths"], ask["by"]) == ("edit", ["count.sh"], "playbook")
    (toggle,) = cli.toggles
    assert (toggle["rootCause"], toggle["fix"]) == ("CRLF line endings: count.sh", end["detail"])
    assert cli.calls == ["/cron/jobs/7/run", "/cron/jobs/7/toggle"]


@pytest.mark.mission("O5")
def test_the_playbooks_steps_read_like_a_models(words: Path) -> None:
    with CliStandIn(Job(words, "./count.sh")) as cli, SessionBench(WORKER, words_spec(words, cli)) as bench:
        bench.treat()

    said = bench.said("playbook")
    assert [(block["role"], block["type"], block.get("name")) for block in said] == [
        ("assistant", "text", None),
        ("assistant", "tool_use", "edit"),
        ("user", "tool_result", None),
        ("assistant", "tool_use", "run_job"),
        ("user", "tool_result", None),
        ("assistant", "tool_use", "resume_schedule"),
        ("user", "tool_result", None),
        ("assistant", "text", None),
    ]
    calls = [block["id"] for block in said if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in said if block["type"] == "tool_result"] == calls
    assert "CRLF line endings: count.sh" in said[0]["text"]


@pytest.mark.mission("B6")
def test_the_playbook_never_runs_a_job_with_side_effects(words: Path) -> None:
    job = Job(words, "./count.sh", effects="unknown")
    with CliStandIn(job) as cli, SessionBench(WORKER, words_spec(words, cli)) as bench:
        end = bench.treat()

    assert end["outcome"] == "done"
    assert cli.calls == [f"/cron/jobs/7/{name}" for name in ("run", "verify", "toggle")]


@pytest.mark.mission("B4")
def test_a_repair_that_does_not_hold_goes_to_the_person(words: Path) -> None:
    (words / "count.sh").write_bytes(CRLF + b"exit 4\r\n")
    with CliStandIn(Job(words, "./count.sh")) as cli, SessionBench(WORKER, words_spec(words, cli)) as bench:
        end = bench.treat()

    assert (end["outcome"], cli.toggles) == ("needs_you", [])
    assert end["detail"].startswith("CRLF line endings: count.sh: the built-in repair did not hold")


@pytest.mark.mission("B8")
def test_a_file_the_app_cannot_save_first_is_not_touched(words: Path) -> None:
    with CliStandIn(Job(words, "./count.sh")) as cli, SessionBench(WORKER, words_spec(words, cli)) as bench:
        bench.refusal = "it cannot be saved first: no room"

        end = bench.treat()

    assert (end["outcome"], cli.calls) == ("needs_you", [])
    assert "no room" in end["detail"]
    assert (words / "count.sh").read_bytes() == CRLF


@pytest.mark.mission("B4")
@pytest.mark.parametrize(
    ("said", "outcome", "detail"),
    [
        ("curl: (6) Temporary failure in name resolution", "waiting", "name resolution does not work at present"),
        (
            "KeyError: 'SHOP_TOKEN'",
            "needs_you",
            "the variable SHOP_TOKEN is not set: set SHOP_TOKEN in the job's environment, then resume the job",
        ),
    ],
)
def test_what_no_change_can_cure_is_said(shop: Path, said: str, outcome: str, detail: str) -> None:
    case = fail(shop, f'echo "{said}" >&2; exit 1')
    with (
        CliStandIn(Job(shop, "true")) as cli,
        SessionBench(WORKER, make_spec(shop, api_url=cli.url, case=case)) as bench,
    ):
        end = bench.treat()

    assert (end["outcome"], end["detail"], cli.calls) == (outcome, detail, [])


@pytest.mark.mission("O5")
def test_without_a_rule_and_a_key_it_says_what_is_missing(shop: Path) -> None:
    with CliStandIn(Job(shop, "true")) as cli, SessionBench(WORKER, shop_spec(shop, cli, None)) as bench:
        end = bench.treat()

    assert (end["outcome"], end["detail"]) == (
        "needs_you",
        "KeyError 'amount' in report.py line 2: no built-in rule fits and no model key is set",
    )


@pytest.mark.mission("O5")
def test_with_the_playbook_alone_a_key_is_not_used(shop: Path) -> None:
    with (
        CliStandIn(Job(shop, "true")) as cli,
        ClaudeServer(REPAIR) as claude,
        SessionBench(WORKER, shop_spec(shop, cli, claude, mode="playbook")) as bench,
    ):
        end = bench.treat()

    assert (end["outcome"], claude.requests) == ("needs_you", [])


@pytest.mark.mission("O7")
def test_a_stop_ends_the_playbook_in_the_middle_of_a_proof(words: Path) -> None:
    job = Job(words, "./count.sh", run_secs=600)
    with CliStandIn(job) as cli, SessionBench(WORKER, words_spec(words, cli)) as bench:
        bench.process.go()
        wait_until(lambda: cli.calls)

        bench.process.stop()

        end = bench.until_line("end")
        code = bench.until_exit()
    assert (end["outcome"], code) == ("stopped", 0)


@pytest.mark.mission("O5")
def test_an_app_that_does_not_answer_leaves_it_to_the_person(words: Path) -> None:
    with CliStandIn(Job(words, "./count.sh")) as cli:
        spec = words_spec(words, cli)
    with SessionBench(WORKER, spec) as bench:
        end = bench.treat()

    assert end["outcome"] == "needs_you"
    assert "Connection refused" in end["detail"]


@pytest.mark.mission("B4")
def test_nothing_heavy_is_imported_before_the_playbook_has_looked() -> None:
    source = "import sys, heal.worker; print(*{name.partition('.')[0] for name in sys.modules})"

    done = subprocess.run([sys.executable, "-P", "-c", source], capture_output=True, text=True, check=True)

    assert not {"anthropic", "asyncio", "sqlalchemy", "pydantic", "psutil", "httpx2"} & set(done.stdout.split())
