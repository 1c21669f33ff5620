"""The session's process: parked until it may go, gone with the app, ended whole, and free of secrets."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.cli_stand_in import TOKEN, CliStandIn, Job
from support.session_bench import KEY, SessionBench, make_spec, wait_until

from agent.worker_process import kill_tree, read_boot_id, start_time_of

WORKER = (sys.executable, "-P", "-m", "heal.worker")


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", source)


# Says its own pid and those of a child, a child that leaves the session, and a grandchild of that one.
FAMILY = """
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
nested = "import subprocess,sys,time; p=subprocess.Popen(['sleep','300']); print(p.pid, flush=True); time.sleep(300)"
child = subprocess.Popen(["sleep", "300"])
stray = subprocess.Popen([sys.executable, "-S", "-c", nested], start_new_session=True, stdout=subprocess.PIPE)
grandchild = int(stray.stdout.readline())
print(json.dumps({"type": "family", "pids": [os.getpid(), child.pid, stray.pid, grandchild]}), flush=True)
time.sleep(300)
"""

# Passes on what it reads.
ECHO = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"type": "read", "line": json.loads(line)}), flush=True)
"""


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.mission("O4")
def test_a_parked_session_does_nothing_until_it_may_go(tmp_path: Path) -> None:
    (tmp_path / "count.sh").write_bytes(b"#!/bin/sh\r\necho 3\r\n")
    with CliStandIn(Job(tmp_path, "true")) as cli, SessionBench(WORKER, make_spec(tmp_path, api_url=cli.url)) as bench:
        bench.until_line("ready")
        time.sleep(0.3)
        while_parked = list(bench.lines)

        end = bench.treat()

    assert while_parked == [{"type": "ready"}]
    assert end["outcome"] == "needs_you"
    assert bench.exit_code == 0


@pytest.mark.mission("O4")
@pytest.mark.parametrize("moment", ["before the spec", "while parked", "in the middle of a question"])
def test_a_session_ends_at_once_when_the_app_is_gone(tmp_path: Path, moment: str) -> None:
    case = {"command": "./count.sh", "exit_code": 127, "stderr_tail": "sh: ./count.sh: not found"}
    (tmp_path / "count.sh").write_bytes(b"#!/bin/sh\r\necho 3\r\n")
    (tmp_path / "count.sh").chmod(0o755)
    spec = make_spec(tmp_path)
    spec_line = json.dumps({**spec.to_json(), "case": {**spec.case, **case}}) + "\n"
    worker = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin
    assert worker.stdout
    with worker.stdout:
        if moment != "before the spec":
            worker.stdin.write(spec_line)
            worker.stdin.flush()
            assert json.loads(worker.stdout.readline()) == {"type": "ready"}
        if moment == "in the middle of a question":
            worker.stdin.write('{"type": "go"}\n')
            worker.stdin.flush()
            assert '"ask"' in worker.stdout.readline() + worker.stdout.readline()

        worker.stdin.close()

        assert worker.wait(30) == 1
    assert (tmp_path / "count.sh").read_bytes().endswith(b"\r\n"), "nothing is touched that was not granted"


@pytest.mark.mission("O4")
def test_killing_a_session_leaves_nothing_of_it(tmp_path: Path) -> None:
    with SessionBench(python(FAMILY), make_spec(tmp_path)) as bench:
        pids = bench.until_line("family")["pids"]
        assert all(is_alive(pid) for pid in pids)

        is_gone = bench.process.kill()

        left = [pid for pid in pids if is_alive(pid)]
    assert (is_gone, left) == (True, [])
    assert bench.until_exit() == -9


@pytest.mark.mission("O4")
def test_killing_ends_the_children_of_a_session_that_has_ended_itself(tmp_path: Path) -> None:
    source = (
        "import json, subprocess\n"
        "child = subprocess.Popen(['sleep', '300'], stdin=-3, stdout=-3, stderr=-3)\n"
        "print(json.dumps({'type': 'child', 'pid': child.pid}), flush=True)"
    )
    with SessionBench(python(source), make_spec(tmp_path)) as bench:
        child = bench.until_line("child")["pid"]
        assert bench.until_exit() == 0
        assert is_alive(child)

        is_gone = bench.process.kill()

        assert (is_gone, is_alive(child)) == (True, False)


@pytest.mark.mission("O9")
@pytest.mark.parametrize("wrong", ["the start time", "the boot"])
def test_a_process_that_only_has_the_same_pid_is_left_alone(wrong: str) -> None:
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        started = start_time_of(other.pid)
        assert started is not None
        named = (started - 1, read_boot_id()) if wrong == "the start time" else (started, "another-boot")

        is_gone = kill_tree(other.pid, *named)

        assert (is_gone, other.poll()) == (True, None)
    finally:
        other.kill()
        other.wait()


@pytest.mark.mission("O9")
def test_a_worker_of_an_earlier_start_is_ended_with_its_children() -> None:
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert shell.stdout
    with shell.stdout:
        child = int(shell.stdout.readline())
        started = start_time_of(shell.pid)
        assert started is not None

        is_gone = kill_tree(shell.pid, started, read_boot_id())

        assert (is_gone, is_alive(child), shell.wait(30)) == (True, False, -9)


@pytest.mark.mission("B9")
def test_a_session_has_no_secret_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("MY_OWN_PASSWORD", "hunter2hunter2")
    with SessionBench(WORKER, make_spec(tmp_path, provider={"apiKey": KEY})) as bench:
        bench.until_line("ready")

        environment = Path(f"/proc/{bench.process.pid}/environ").read_bytes().decode()
        words = Path(f"/proc/{bench.process.pid}/cmdline").read_bytes().decode()

    names = {entry.partition("=")[0] for entry in environment.split("\0") if entry}
    assert "PATH" in names
    assert not names & {"ANTHROPIC_API_KEY", "MY_OWN_PASSWORD", "CRONMEND_HOME"}
    for secret in (KEY, TOKEN, "hunter2"):
        assert secret not in environment + words


@pytest.mark.mission("B9")
def test_other_processes_of_the_person_cannot_read_a_sessions_memory(tmp_path: Path) -> None:
    # As an ordinary user, whose own processes may read one another; the kernel gives the files of one that is not
    # dumpable to root.  2: the kernel's own rule for who has just changed the user; 1 undoes that first.
    source = """
import ctypes, os, heal.worker
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
assert os.stat("/proc/self/environ").st_uid == os.geteuid() != 0
heal.worker.main()
"""
    with SessionBench((sys.executable, "-P", "-c", source), make_spec(tmp_path)) as bench:
        bench.until_line("ready")

        owner = Path(f"/proc/{bench.process.pid}/environ").stat().st_uid

    assert owner == 0


def test_what_a_session_prints_by_accident_is_no_message(tmp_path: Path) -> None:
    source = 'print("hello"); print("[1]"); print(\'{"type": "ready"}\'); raise SystemExit(3)'
    with SessionBench(python(source), make_spec(tmp_path)) as bench:
        code = bench.until_exit()

    assert (code, bench.lines) == (3, [{"type": "ready"}])


@pytest.mark.mission("B9")
def test_what_a_session_writes_to_stderr_is_logged_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cron-heal")
    source = f"import sys; sys.stderr.write('x' * 9000 + '\\nthe key is {KEY}\\n')"
    with SessionBench(python(source), make_spec(tmp_path)) as bench:
        bench.until_exit()

    (record,) = caplog.records
    assert "the key is [redacted]" in record.getMessage()
    assert len(record.getMessage()) < 5_000


def test_what_the_app_says_arrives_in_order(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    with SessionBench(python(ECHO), spec) as bench:
        bench.process.go()
        bench.process.reply(4, ok=False, error="no\nroom")
        bench.process.stop()
        wait_until(lambda: len(bench.lines) == 4)

    assert [line["line"] for line in bench.lines] == [
        json.loads(json.dumps(spec.to_json())),
        {"type": "go"},
        {"type": "reply", "id": 4, "ok": False, "error": "no\nroom"},
        {"type": "stop"},
    ]


def test_a_session_that_has_ended_can_still_be_spoken_to_and_killed(tmp_path: Path) -> None:
    with SessionBench(python("pass"), make_spec(tmp_path)) as bench:
        bench.until_exit()

        bench.process.go()
        is_gone = bench.process.kill()

    assert is_gone


def test_a_worker_names_itself_for_good(tmp_path: Path) -> None:
    with SessionBench(python("input(); input()"), make_spec(tmp_path)) as bench:
        process = bench.process
        assert os.getsid(process.pid) == process.pid
        assert process.start_time == start_time_of(process.pid)
        assert process.boot_id == read_boot_id()
