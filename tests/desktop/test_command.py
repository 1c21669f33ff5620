"""The cronmend command as a stranger uses it: exit codes, one line on stderr, stable JSON."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import pytest
from support.serving import PYTHON, Served


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"))
    served.start()
    yield served
    served.close()


def add(app: Served, *more: str, command: str = "echo hi") -> int:
    words = ("--name", "j", "--command", command, "--schedule", "0 0 1 1 *", "--no-healing")
    said = app.run("jobs", "add", *words, *more)
    assert said.code == 0, said
    return int(said.out)


@pytest.mark.mission("L8")
def test_run_streams_the_output_and_exits_with_the_jobs_code(app: Served) -> None:
    job = add(app, command="echo to out; echo to err >&2; exit 9")

    said = app.run("jobs", "run", str(job))

    assert (said.code, said.out) == (9, "to out\n")
    assert said.err.startswith("to err\nrun ")


@pytest.mark.mission("L8")
def test_run_of_a_killed_job_exits_as_a_shell_would(app: Served) -> None:
    assert app.run("jobs", "run", str(add(app, command="kill -TERM $$"))).code == 128 + signal.SIGTERM


@pytest.mark.mission("L4")
def test_a_job_over_its_time_limit_is_ended(app: Served) -> None:
    job = add(app, "--timeout", "1", command="sleep 300")

    assert app.run("jobs", "run", str(job)).code != 0

    (run,) = app.json("runs", "list", "--job", str(job))
    assert (run["status"], run["category"]) == ("timeout", "timeout")
    assert run["cause"].startswith("timed out after 1 s")


@pytest.mark.mission("L4")
def test_detach_prints_the_run_and_log_follows_it(app: Served) -> None:
    job = add(app, command="echo first; sleep 0.5; echo last; echo wrong >&2")

    run = app.run("jobs", "run", str(job), "--detach").out.strip()

    assert app.run("runs", "log", run, "--follow").out == "first\nlast\n"
    assert app.run("runs", "log", run, "--stream", "err").out == "wrong\n"


@pytest.mark.mission("L1")
def test_pause_and_resume_show_in_the_listing(app: Served) -> None:
    job = add(app)

    app.run("jobs", "pause", str(job))
    paused = app.json("jobs", "show", str(job))
    app.run("jobs", "resume", str(job))

    assert (paused["isActive"], paused["pausedBy"], paused["nextRunAt"]) == (False, "person", None)
    assert app.json("jobs", "show", str(job))["isActive"] is True
    assert app.run("jobs", "rm", str(job)).code == 0
    assert app.run("jobs", "show", str(job)).code == 3


@pytest.mark.mission("L1")
def test_a_pause_with_an_end_lifts_by_itself(app: Served) -> None:
    job = add(app)

    app.run("jobs", "pause", str(job), "--until", "in 2s")

    assert app.json("jobs", "show", str(job))["pausedUntil"]
    app.until(lambda: app.json("jobs", "show", str(job))["isActive"], secs=30)


REFUSED = {
    "impossible date": (("--schedule", "0 0 31 2 *"), "schedule"),
    "unknown zone": (("--schedule", "hourly", "--timezone", "Europe/Nowhere"), "timezone"),
    "missing folder": (("--schedule", "hourly", "--cwd", "/no/such"), "cwd"),
    "missing project": (("--schedule", "hourly", "--project", "/no/such"), "project"),
    "minute 60": (("--schedule", "60 * * * *"), "schedule"),
    "no schedule": ((), "schedule"),
    "broken variable": (("--schedule", "hourly", "--env", "NOVALUE"), "env"),
    "what is not there yet": (("--schedule", "hourly", "--deliver-to", "x"), "deliverTo"),
}


@pytest.mark.mission("L1", "L2")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_one_line_that_names_the_field(app: Served, case: str) -> None:
    words, field = REFUSED[case]

    said = app.run("jobs", "add", "--name", "x", "--command", "true", *words)

    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"cronmend: {field}:")


@pytest.mark.mission("L8")
def test_missing_objects_exit_3(app: Served) -> None:
    for words in (("jobs", "show"), ("runs", "show"), ("heals", "show"), ("inbox", "show"), ("sessions", "show")):
        said = app.run(*words, "99999")
        assert (said.code, said.err.count("\n")) == (3, 1), words


@pytest.mark.mission("L2")
def test_next_previews_what_will_fire() -> None:
    when = ("--schedule", "30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2027-03-27T12:00:00Z")
    said = subprocess.run(
        [*PYTHON, "jobs", "next", *when, "--count", "2", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )

    first, second = json.loads(said.stdout)
    assert first["at"] == "2027-03-28T01:00:00.000Z"
    assert "does not exist" in first["note"]
    assert second == {"at": "2027-03-29T00:30:00.000Z", "local": second["local"], "note": None}


@pytest.mark.mission("L8")
def test_export_and_import_make_the_same_jobs(app: Served, serve: Callable[..., Served], tmp_path: Path) -> None:
    add(app, "--env", "A=1", "--tag", "night", "--effects", "none", "--retries", "2")
    exported = app.run("jobs", "export").out
    other = serve()
    (tmp_path / "jobs.json").write_text(exported)

    assert other.run("jobs", "import", str(tmp_path / "jobs.json")).code == 0

    assert json.loads(other.run("jobs", "export").out) == json.loads(exported)


@pytest.mark.mission("L8")
def test_without_an_app_reading_works_and_acting_says_how_to_start(tmp_path: Path) -> None:
    served = Served(tmp_path)
    assert served.run("jobs", "list").code == 2, "nothing there yet"
    added = served.run("jobs", "add", "--name", "n", "--command", "true", "--schedule", "hourly", "--offline")

    listed, refused = served.json("jobs", "list"), served.run("jobs", "run", "1")

    assert added.out == "1\n"
    assert [job["name"] for job in listed] == ["n"]
    assert served.json("status")["schedulerState"] == "stopped"
    assert (refused.code, "cronmend serve" in refused.err) == (2, True)
    assert not (served.home / "cli.json").exists()


@pytest.mark.mission("B1")
def test_two_apps_never_share_a_data_directory(app: Served) -> None:
    said = app.run("serve")

    assert (said.code, "running already" in said.err) == (2, True)
    assert app.run("jobs", "add", "--name", "x", "--command", "true", "--schedule", "hourly", "--offline").code == 2


@pytest.mark.mission("L7")
def test_doctor_says_what_is_wrong_and_the_remedy(app: Served) -> None:
    findings = {one["check"]: one for one in app.json("doctor")}

    well = ("app", "data lock", "keeper", "database", "disk", "data directory", "clock", "time zones")
    assert [name for name in well if not findings[name]["ok"]] == []
    assert {"notifications", "start at login", "sandbox", "limits"} < findings.keys()
    assert findings["PATH of jobs"]["detail"]
    assert findings["model key"] == {
        "check": "model key",
        "ok": False,
        "detail": "none: only the built-in playbook heals",
        "remedy": "Set ANTHROPIC_API_KEY before the start.",
    }


@pytest.mark.mission("L3")
def test_doctor_sees_a_held_lock_a_clock_set_back_and_a_lost_zone(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    served.run("jobs", "add", "--name", "n", "--command", "true", "--schedule", "hourly")
    served.stop()
    ahead = "2099-01-01T00:00:00.000Z"
    served.alter("INSERT INTO events (at, kind, actor) VALUES (?, 'job.updated', 'app')", ahead)
    served.alter("UPDATE cron_jobs SET blocked_reason = 'there is no zone Mars/Base'")

    with filelock.FileLock(served.home / "cronmend.lock"):
        said = served.run("doctor", "--json")

    findings = {one["check"]: one for one in said.json}
    assert said.code == 1
    assert findings["data lock"]["detail"] == "held by a process that does not answer"
    assert "it was set back" in findings["clock"]["detail"]
    assert findings["time zones"]["detail"] == "job 1 is blocked: there is no zone Mars/Base"


@pytest.mark.mission("L18")
def test_hostile_output_cannot_steer_the_terminal(app: Served) -> None:
    job = add(app, command="printf '\\033]0;owned\\007\\033[2Jboom\\n' >&2; exit 1")

    app.run("jobs", "run", str(job))

    for words in (("runs", "list"), ("runs", "show", "1"), ("jobs", "list")):
        assert "\x1b" not in app.run(*words).out


@pytest.mark.mission("B2")
def test_a_damaged_database_is_set_aside_and_the_backup_put_back(tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.start()
    add(served)
    assert served.run("backup").code == 0
    served.stop()
    (served.home / "cronmend.db").write_bytes(b"this is no database" * 100)

    refused = served.run("serve")
    restored = served.run("restore")
    served.start()

    assert (refused.code, "cronmend restore" in refused.err) == (2, True)
    assert restored.code == 0
    assert [job["name"] for job in served.json("jobs", "list")] == ["j"]
    served.close()


@pytest.mark.mission("B9")
def test_the_apps_environment_shows_no_key(serve: Callable[..., Served]) -> None:
    served = serve(ANTHROPIC_API_KEY="sk-ant-canary-000000000000")

    seen = Path(f"/proc/{served.pid}/environ").read_bytes()

    assert b"canary" not in seen
    job = add(served, command="env; tr '\\0' '\\n' < /proc/$PPID/environ")
    assert "canary" not in served.run("jobs", "run", str(job)).out


@pytest.mark.mission("L10")
def test_the_command_starts_quickly_because_it_imports_little() -> None:
    asked = "import sys, desktop.commands.root; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, env=dict(os.environ)
    )

    heavy = {"sqlalchemy", "flask", "pydantic", "anthropic", "apscheduler", "keyring"}
    assert heavy.isdisjoint(done.stdout.split())


@pytest.mark.mission("L8")
def test_settings_say_where_they_come_from_and_can_be_given_back(serve: Callable[..., Served]) -> None:
    served = serve(MAX_CONCURRENT_AUTO_HEALS="5", SANDBOX_TIMEOUT_SECS="soon")

    told = {row["name"]: (row["value"], row["origin"]) for row in served.json("settings", "get")}
    served.run("settings", "set", "MAX_CONCURRENT_AUTO_HEALS", "2")
    changed = served.json("settings", "get", "MAX_CONCURRENT_AUTO_HEALS")
    served.run("settings", "set", "MAX_CONCURRENT_AUTO_HEALS", "")

    assert told["MAX_CONCURRENT_AUTO_HEALS"] == (5, "environment")
    assert told["SANDBOX_TIMEOUT_SECS"] == (1800, "default"), "what cannot be read is a warning and the default"
    assert "SANDBOX_TIMEOUT_SECS from the environment is not usable" in served.log()
    assert (changed["value"], changed["origin"]) == (2, "settings page")
    assert served.run("settings", "get", "MAX_CONCURRENT_AUTO_HEALS").out == "5\n"
    refused = served.run("settings", "set", "CRONMEND_HEALER", "magic")
    assert (refused.code, refused.err.startswith("cronmend: CRONMEND_HEALER:")) == (2, True)
    assert served.run("settings", "get", "NO_SUCH").code == 3
