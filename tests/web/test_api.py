"""The CLI server's contracts: tokens, refusals with a named field, shapes, and its own description."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.serving import Served

from agent.tokens import SessionTokens
from web.whole import read_whole


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One running app for the tests of this file, which make their own jobs."""
    served = Served(tmp_path_factory.mktemp("app"))
    served.start()
    yield served
    served.close()


def make_job(app: Served, **fields: Any) -> dict[str, Any]:
    body = {"name": "j", "command": "echo hi", "schedule": "0 0 1 1 *", "healingEnabled": False, **fields}
    status, job = app.call("POST", "/cron/jobs", body)
    assert status == 201, job
    found: dict[str, Any] = job
    return found


JOB_KEYS = (
    "id name targetType command recipe prompt projectId cwd env schedule scheduleText timezone runMode runAt isActive "
    "pausedBy pausedUntil overlap catchUp catchUpMaxAgeSecs jitterSecs timeoutSecs retries retryBackoffSecs effects "
    "verifyCommand successWhen requireApproval healingEnabled consecutiveHealFailures deliverTo tags nextRunAt lastRun "
    "createdAt updatedAt"
)
RUN_KEYS = (
    "id jobId slotAt status skipReason slotsCovered triggeredBy attempt retryOf rootRunId startedAt completedAt "
    "durationMs exitCode signal error category cause systemMarkedFailure healDecision suppressed wakeContext logBytes"
)
STATUS_KEYS = (
    "version schedulerState lastTickAt monitorLastCycleAt jobCount activeJobs activeRunCount queuedRunCount "
    "failedRunCount retryRunCount suppressedSlotCount staleRecoveryCount openHealCount runStatusCounts triggerCounts "
    "nextRunAt lastRunAt"
)


@pytest.mark.mission("L8")
def test_a_job_has_every_key_of_the_contract(app: Served) -> None:
    made = make_job(app)

    status, shown = app.call("GET", f"/cron/jobs/{made['id']}")

    assert status == 200
    assert set(JOB_KEYS.split()) <= shown.keys()


@pytest.mark.mission("L8")
def test_run_waits_for_the_end_and_tells_the_outcome(app: Served) -> None:
    job = make_job(app, command="echo out; echo err >&2; exit 5")

    status, answer = app.call("POST", f"/cron/jobs/{job['id']}/run", {})

    assert status == 200
    assert {key: answer[key] for key in ("status", "exitCode", "stdout", "stderr", "truncated")} == {
        "status": "failed",
        "exitCode": 5,
        "stdout": "out\n",
        "stderr": "err\n",
        "truncated": False,
    }
    status, run = app.call("GET", f"/cron/runs/{answer['runId']}")
    assert set(RUN_KEYS.split()) <= run.keys()
    assert (run["triggeredBy"], run["slotAt"], run["healDecision"]) == ("manual", None, run["healDecision"])
    assert set(run["evidence"]) >= {"hits", "stdoutTail", "stderrTail", "spawnError"}


@pytest.mark.mission("L8")
def test_run_without_waiting_answers_at_once_and_can_be_followed(app: Served) -> None:
    job = make_job(app, command="sleep 0.5; echo done")

    status, answer = app.call("POST", f"/cron/jobs/{job['id']}/run?wait=0", {})

    assert status == 202
    status, ended = app.call("POST", f"/cron/jobs/{job['id']}/run?follow={answer['runId']}")
    assert (status, ended["stdout"]) == (200, "done\n")


@pytest.mark.mission("L4")
def test_abort_ends_a_running_run(app: Served) -> None:
    job = make_job(app, command="sleep 300")
    _, started = app.call("POST", f"/cron/jobs/{job['id']}/run?wait=0", {})
    run = f"/cron/runs/{started['runId']}"
    app.until(lambda: app.call("GET", run)[1]["status"] == "running")

    status, _ = app.call("POST", f"{run}/abort", {"reason": "enough"})

    assert status == 202
    ended = app.until(lambda: found if (found := app.call("GET", run)[1])["status"] != "running" else None)
    assert (ended["status"], ended["healDecision"]) == ("aborted", None)
    assert app.call("POST", f"{run}/abort")[0] == 409


@pytest.mark.mission("L13")
def test_several_jobs_are_woken_by_id_name_and_label(app: Served) -> None:
    add = ("jobs", "add", "--schedule", "0 0 1 1 *", "--command", 'echo "why: $CRONMEND_WAKE_CONTEXT"', "--name")
    by_id, by_name, by_tag, paused, other = (
        app.run(*add, name, *more).out.strip()
        for name, more in (
            ("first", ()),
            ("Mail out", ()),
            ("labelled", ("--tag", "nightly")),
            ("Mail in", ()),
            ("left alone", ()),
        )
    )
    app.run("jobs", "pause", paused)

    said = app.run("jobs", "wake", by_id, "--name", "mail *", "--tag", "nightly", "--context", "a new file", "--json")

    woken = {str(one["jobId"]): one for one in json.loads(said.out)}
    assert set(woken) == {by_id, by_name, by_tag, paused}
    assert (said.code, woken[paused]["error"]["code"]) == (1, "job_disabled")
    run = str(woken[by_tag]["runId"])
    app.until(lambda: app.json("runs", "show", run)["status"] == "completed")
    assert app.run("runs", "log", run).out == "why: a new file\n"
    assert app.json("runs", "list", "--job", other) == []
    assert app.run("jobs", "wake").code == 2
    assert app.run("jobs", "wake", "99999").code == 3


@pytest.mark.mission("L13")
def test_wake_runs_with_a_context_and_respects_a_pause(app: Served) -> None:
    job = make_job(app)
    path = f"/cron/jobs/{job['id']}"

    status, answer = app.call("POST", f"{path}/wake", {"context": "new file"})

    assert status == 202
    run = app.until(
        lambda: found if (found := app.call("GET", f"/cron/runs/{answer['runId']}")[1])["completedAt"] else None
    )
    assert (run["triggeredBy"], run["wakeContext"], run["status"]) == ("wake", "new file", "completed")
    app.call("POST", f"{path}/toggle", {"isActive": False})
    status, refused = app.call("POST", f"{path}/wake", {})
    assert (status, refused["error"]["code"]) == (409, "job_disabled")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "impossible date": ({"schedule": "0 0 30 2 *"}, "schedule"),
    "unknown zone": ({"timezone": "Mars/Olympus"}, "timezone"),
    "missing folder": ({"cwd": "/no/such/folder"}, "cwd"),
    "minute 60": ({"schedule": "60 * * * *"}, "schedule"),
    "empty name": ({"name": "  "}, "name"),
    "200 KB command": ({"command": "echo " + "x" * 200_000}, "command"),
    "unknown field": ({"colour": "red"}, "colour"),
    "no command": ({"command": ""}, "command"),
    "text for a number": ({"retries": "three"}, "retries"),
    "a time in the past": ({"schedule": None, "runAt": "2001-01-01T00:00:00Z"}, "runAt"),
    "a reserved variable": ({"env": {"CRONMEND_RUN_ID": "1"}}, "env"),
}


@pytest.mark.mission("L1", "L2")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_field_and_stores_nothing(app: Served, case: str) -> None:
    change, field = BAD[case]
    body = {"name": "bad", "command": "true", "schedule": "hourly", **change}
    before = len(app.call("GET", "/cron/jobs")[1])

    status, answer = app.call("POST", "/cron/jobs", {key: value for key, value in body.items() if value is not None})

    assert (status, answer["error"]["field"]) == (422, field)
    assert len(answer["error"]["message"]) > 15
    assert len(app.call("GET", "/cron/jobs")[1]) == before


@pytest.mark.mission("B9")
@pytest.mark.parametrize("token", ["", "wrong", "cms_AAAA.BBBB", "x" * 5_000])
def test_without_a_valid_token_nothing_is_served(app: Served, token: str) -> None:
    for path in ("/cron/jobs", "/cron/status", "/inbox", "/sessions", "/projects", "/openapi.json"):
        status, answer = app.call("GET", path, token=token)
        assert (status, answer["error"]["code"]) == (401, "unauthorized")
    assert app.call("GET", "/health", token="")[0] == 200


@pytest.mark.mission("B9", "O6")
def test_a_token_of_another_boot_is_worth_nothing(app: Served) -> None:
    foreign = SessionTokens().mint(1, "heal:1", 3_600)

    status, _ = app.call("POST", "/cron/jobs/1/run", {}, token=foreign)

    assert status == 401


@pytest.mark.mission("B9")
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_page_of_another_site_is_refused(app: Served, headers: dict[str, str]) -> None:
    status, answer = app.call("GET", "/cron/jobs", headers=headers)

    assert (status, answer["error"]["code"]) == (403, "forbidden")


@pytest.mark.mission("L8")
def test_missing_things_and_malformed_bodies_say_so(app: Served) -> None:
    assert app.call("GET", "/cron/jobs/99999")[0] == 404
    assert app.call("GET", "/no/such/path")[0] == 404
    assert app.call("POST", "/cron/jobs", [1, 2])[0] == 400
    assert app.call("DELETE", "/cron/status")[0] == 405
    status, answer = app.call("GET", "/cron/runs?limit=many")
    assert (status, answer["error"]["field"]) == (422, "limit")


@pytest.mark.mission("L8")
def test_an_edit_changes_the_named_fields_alone(app: Served) -> None:
    job = make_job(app, retries=2)
    time.sleep(0.002)

    status, edited = app.call("PATCH", f"/cron/jobs/{job['id']}", {"name": "other", "schedule": "daily at 9am"})

    assert status == 200
    different = {key for key in edited if edited[key] != job[key]}
    assert different == {"name", "schedule", "scheduleText", "nextRunAt", "updatedAt"}


@pytest.mark.mission("L7")
def test_status_has_every_counter(app: Served) -> None:
    status, found = app.call("GET", "/cron/status")

    assert status == 200
    assert set(STATUS_KEYS.split()) <= found.keys()
    assert found["schedulerState"] == "running"


@pytest.mark.mission("O6")
def test_the_description_names_every_route(app: Served) -> None:
    _, described = app.call("GET", "/openapi.json")

    calls = {f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods}
    assert calls >= {
        "POST /cron/jobs/{job_id}/run",
        "POST /cron/jobs/{job_id}/toggle",
        "GET /cron/jobs",
        "POST /cron/jobs",
        "PATCH /cron/jobs/{job_id}",
        "DELETE /cron/jobs/{job_id}",
        "GET /cron/runs/{run_id}/log",
        "POST /cron/heals/{heal_id}/undo",
        "POST /inbox/{card_id}/resolve",
        "POST /cron/jobs/{job_id}/wake",
    }
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert operation["summary"], path


@pytest.mark.mission("B9")
def test_the_address_file_is_the_persons_alone(app: Served) -> None:
    file = app.home / "cli.json"

    assert file.stat().st_mode & 0o777 == 0o600
    assert app.home.stat().st_mode & 0o777 == 0o700
    assert json.loads(file.read_text()).keys() == {"url", "controlToken", "pid", "startedAt", "version"}


@pytest.mark.mission("L18")
def test_the_log_is_served_raw_from_any_offset(app: Served, tmp_path: Path) -> None:
    (tmp_path / "bytes.bin").write_bytes(bytes(range(256)))
    job = make_job(app, command="cat bytes.bin", cwd=str(tmp_path))
    _, answer = app.call("POST", f"/cron/jobs/{job['id']}/run", {})

    status, data = app.call("GET", f"/cron/runs/{answer['runId']}/log?offset=250")

    assert (status, data) == (200, bytes(range(250, 256)))


@pytest.mark.mission("L1")
def test_numbers_that_are_none_are_no_server_error(app: Served) -> None:
    """What a person or a program may put where the pages expect a number."""
    for text in ("9" * 40, "²", "-1", "x", "", "1e9"):
        assert read_whole(text) in (None, 2**63 - 1)
    for digits in ("9" * 40, "9" * 5_000):
        assert app.call("GET", f"/cron/jobs/{digits}")[0] == 404
        assert app.call("GET", f"/cron/runs?job={digits}") == (200, [])
