"""The keeper starts runs exactly once, ends whole trees, and knows how they ended whatever happens to the app."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.keeping import KEEPER, Kept, wait_until

from scheduler import process_tree
from scheduler.keeper_link import Cleanup, runtime_dir

pytestmark = pytest.mark.mission("B3", "L6")

Keep = Callable[..., Kept]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """Links to one keeper; the keeper is ended afterwards, with everything it runs."""
    state = tmp_path / "state"
    links: list[Kept] = []

    def connect(epoch: int = 1) -> Kept:
        links.append(Kept(state, epoch))
        return links[-1]

    yield connect
    for link in links:
        for report in link.reports:
            if report.pid and report.start_time and process_tree.is_alive(report.pid, report.start_time):
                os.kill(report.pid, signal.SIGKILL)
        link.close()
    pid = int((state / "keeper.lock").read_text())
    if process_tree.look_up(pid):
        os.kill(pid, signal.SIGTERM)
    for file in runtime_dir(state).iterdir():
        file.unlink()
    runtime_dir(state).rmdir()


def write_script(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


@pytest.mark.parametrize("code", [0, 1, 37, 255])
def test_the_exit_code_is_the_commands_own(keep: Keep, tmp_path: Path, code: int) -> None:
    kept = keep()

    kept.start(1, "/bin/sh", "-c", f"exit {code}", folder=tmp_path)

    report = kept.ended(1)
    assert (report.state, report.exit_code, report.signal, report.known) == ("ended", code, None, True)


def test_death_by_a_signal_is_told_as_the_signal(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.start(1, "/bin/sh", "-c", "kill -SEGV $$", folder=tmp_path)

    report = kept.ended(1)
    assert (report.exit_code, report.signal) == (None, signal.SIGSEGV)


def test_both_streams_arrive_byte_for_byte(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    code = "import sys; sys.stdout.buffer.write(b'a\\x00\\xff\\n'); sys.stderr.write('wrong\\n')"

    kept.start(1, sys.executable, "-c", code, folder=tmp_path)
    kept.ended(1)

    assert (tmp_path / "1.out").read_bytes() == b"a\x00\xff\n"
    assert (tmp_path / "1.err").read_bytes() == b"wrong\n"
    assert stat.S_IMODE((tmp_path / "1.out").stat().st_mode) == 0o600


def test_the_run_gets_its_environment_and_no_more(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    env = {"PATH": "/usr/bin:/bin", "GREETING": "höi", "CRONMEND_RUN_ID": "1"}

    kept.start(1, "env", "-0", folder=tmp_path, env=env)
    kept.ended(1)

    seen = dict(line.split("=", 1) for line in (tmp_path / "1.out").read_text().split("\0") if line)
    assert seen == env


def test_the_run_inherits_no_file_and_default_signals(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.start(1, "/bin/sh", "-c", "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status", folder=tmp_path)
    kept.ended(1)

    lines = (tmp_path / "1.out").read_text().split()
    assert lines[:4] == ["0", "1", "2", "3"], "3 is ls reading the folder"
    # 32 and 33 belong to the C library, which lets nobody set them.
    assert [int(lines[5], 16) & 0x7FFFFFFF, int(lines[7], 16) & 0x7FFFFFFF] == [0, 0]


@pytest.mark.parametrize(
    ("text", "mode", "code", "said"),
    [
        ("exit 3\n", 0o755, 3, None),
        ("#!/bin/sh\nexit 0\n", 0o644, 126, "Permission denied: './tool'"),
        ("#!/bin/sh\r\nexit 0\r\n", 0o755, 127, "its interpreter '/bin/sh\\r' does not exist"),
        ("#!/no/such/thing -x\n", 0o755, 127, "its interpreter '/no/such/thing -x' does not exist"),
    ],
    ids=["no shebang: the shell runs it", "no exec bit", "CRLF shebang", "missing interpreter"],
)
def test_a_script_starts_or_fails_as_a_shell_would_say(
    keep: Keep, tmp_path: Path, text: str, mode: int, code: int, said: str | None
) -> None:
    kept = keep()
    write_script(tmp_path, "tool", text, mode)

    kept.start(1, "./tool", folder=tmp_path)

    report = kept.ended(1)
    assert report.exit_code == code
    assert said is None or said in (report.spawn_error or "")


def test_a_program_that_is_nowhere_is_127(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.start(1, "no-such-program", "x", folder=tmp_path)

    report = kept.ended(1)
    assert (report.exit_code, report.spawn_error) == (127, "[Errno 2] No such file or directory: 'no-such-program'")


def test_a_missing_working_folder_is_named(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.start(1, "true", folder=tmp_path, cwd=str(tmp_path / "gone"))

    report = kept.ended(1)
    assert report.exit_code is None
    assert str(tmp_path / "gone") in (report.spawn_error or "")


def test_a_grandchild_does_not_hold_the_run_and_its_last_byte_is_kept(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.start(1, "/bin/sh", "-c", "(sleep 0.7; echo last) & echo first", folder=tmp_path)
    kept.ended(1)

    assert (tmp_path / "1.out").read_text() == "first\n"
    wait_until(lambda: (tmp_path / "1.out").read_text() == "first\nlast\n")


@pytest.mark.mission("L4")
def test_a_command_that_ignores_term_is_killed_after_the_grace(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    kept.start(1, "/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", folder=tmp_path)
    wait_until(lambda: (tmp_path / "1.out").exists() and (tmp_path / "1.out").read_text() == "ready\n")

    kept.link.stop(1, 1, "abort", 0.3)

    report = kept.ended(1)
    assert (report.stopped, report.signal, report.survivors) == ("abort", signal.SIGKILL, ())


@pytest.mark.mission("L4")
def test_a_process_that_left_the_session_is_ended_with_its_run(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    command = f"setsid sh -c 'setsid sleep 300 & echo $! > {tmp_path}/stray' & sleep 300"
    kept.start(1, "/bin/sh", "-c", command, folder=tmp_path)
    wait_until(lambda: (tmp_path / "stray").exists() and (tmp_path / "stray").read_text())
    stray = int((tmp_path / "stray").read_text())
    assert process_tree.look_up(stray)

    kept.link.stop(1, 1, "abort", 2.0)
    kept.ended(1)

    wait_until(lambda: process_tree.look_up(stray) is None)


def test_the_time_limit_holds_while_no_app_is_there(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "sleep", "300", folder=tmp_path, timeout_secs=0.5)
    pid = first.until(1, "running").pid
    first.close()
    wait_until(lambda: process_tree.look_up(pid or 0) is None)

    again = keep(2)

    report = again.ended(1)
    assert (report.stopped, report.signal) == ("timeout", signal.SIGTERM)


def test_an_end_that_no_app_saw_is_kept_until_it_is_acknowledged(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "/bin/sh", "-c", "sleep 0.3; exit 37", folder=tmp_path)
    first.until(1, "running")
    first.close()

    second = keep(2)
    assert second.ended(1).exit_code == 37
    second.close()
    third = keep(3)
    assert third.ended(1).exit_code == 37
    third.link.acknowledge([(1, 1)])
    third.close()
    fourth = keep(4)

    assert fourth.known == []


def test_a_repeated_start_spawns_once(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    order = kept.order(1, "/bin/sh", "-c", "echo once; sleep 0.3", folder=tmp_path)

    kept.link.start([order, order])
    kept.link.start([order])
    kept.ended(1)

    assert (tmp_path / "1.out").read_text() == "once\n"


def test_a_burst_starts_each_run_once(keep: Keep, tmp_path: Path) -> None:
    kept = keep()

    kept.link.start([kept.order(number, "echo", "x", folder=tmp_path) for number in range(200)])
    for number in range(200):
        assert kept.ended(number).exit_code == 0

    assert {(tmp_path / f"{number}.out").read_text() for number in range(200)} == {"x\n"}


def test_a_newer_start_of_the_app_takes_over_and_an_older_one_is_refused(keep: Keep, tmp_path: Path) -> None:
    older = keep(5)
    keeper = older.link.pid

    newer = keep(6)

    assert older.lost.wait(10)
    assert newer.link.pid == keeper
    with socket.socket(socket.AF_UNIX) as link, link.makefile("rwb") as lines:
        link.connect(str(runtime_dir(tmp_path / "state") / "k.sock"))
        lines.write(b'{"op": "hello", "version": 1, "epoch": 5}\n')
        lines.flush()
        assert json.loads(lines.readline())["op"] == "refused"


def test_what_did_not_say_hello_is_not_obeyed(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(runtime_dir(tmp_path / "state") / "k.sock"))
        link.sendall(json.dumps({"op": "start", "runs": [{"run": 9, "attempt": 1}]}).encode() + b"\n")

        assert link.recv(10) == b"", "it hangs up"

    kept.start(1, "true", folder=tmp_path)
    assert kept.ended(1).exit_code == 0


def test_socket_and_state_are_the_persons_alone(keep: Keep, tmp_path: Path) -> None:
    keep()

    folder = runtime_dir(tmp_path / "state")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "k.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_second_keeper_leaves_at_once(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    state = tmp_path / "state"

    subprocess.run([*KEEPER, str(runtime_dir(state)), str(state)], check=True, timeout=20)

    time.sleep(0.3)
    kept.start(1, "true", folder=tmp_path)
    assert kept.ended(1).exit_code == 0
    assert int((state / "keeper.lock").read_text()) == kept.link.pid


@pytest.mark.mission("B3")
def test_a_run_that_outlives_a_killed_keeper_is_watched_and_its_end_told_as_unknown(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "sleep", "1", folder=tmp_path)
    pid = first.until(1, "running").pid
    first.kill_keeper()

    second = keep(2)

    assert second.until(1, "running").pid == pid
    report = second.ended(1)
    assert (report.state, report.known, report.exit_code) == ("ended", False, None)


@pytest.mark.mission("L4")
def test_an_adopted_run_can_be_ended(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "sleep", "300", folder=tmp_path)
    running = first.until(1, "running")
    first.kill_keeper()
    second = keep(2)

    second.link.stop(1, 1, "abort", 1.0)

    assert second.ended(1).stopped == "abort"
    assert not process_tree.is_alive(running.pid or 0, running.start_time or 0)


def test_a_run_that_ended_with_its_keeper_is_lost(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "sleep", "300", folder=tmp_path)
    pid = first.until(1, "running").pid or 0
    first.kill_keeper()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: (process := process_tree.look_up(pid)) is None or process.state == "Z")

    second = keep(2)

    report = second.ended(1)
    assert report.state == "lost"
    assert "no keeper was there" in (report.reason or "")


@pytest.mark.parametrize("change", ["start", "boot"])
def test_a_reused_pid_and_another_boot_are_not_adopted(keep: Keep, tmp_path: Path, change: str) -> None:
    journal = tmp_path / "state" / "journal"
    journal.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    mine = process_tree.look_up(os.getpid())
    assert mine
    entry = {"intent": 1, "pid": mine.pid, "start": mine.start_time, "boot": process_tree.boot_id(), "at": 1.0}
    other = {"start": mine.start_time + 1, "boot": "11111111-2222"}[change]
    line = json.dumps({"key": [1, 1], **entry, change: other, "timeout": None, "clock": 1.0, "grace": 1, "marks": []})
    (journal / "00000001.log").write_text(line + "\n")

    kept = keep()

    assert kept.ended(1).state == "lost"


def test_a_keeper_that_drains_takes_nothing_new_and_ends_after_its_last_run(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    kept.start(1, "sleep", "0.6", folder=tmp_path)
    kept.until(1, "running")
    assert kept.link.pid

    os.kill(kept.link.pid, signal.SIGTERM)
    time.sleep(0.1)
    kept.start(2, "true", folder=tmp_path)

    assert kept.ended(2).state == "refused"
    assert kept.ended(1).exit_code == 0
    assert kept.lost.wait(10)


def test_a_keeper_that_nobody_needs_leaves(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    folder = runtime_dir(state)
    subprocess.run([*KEEPER, str(folder), str(state), "--leave-after", "0.2"], check=True, timeout=20)
    wait_until(lambda: (state / "keeper.lock").exists() and (state / "keeper.lock").read_text())
    pid = int((state / "keeper.lock").read_text())

    wait_until(lambda: process_tree.look_up(pid) is None)


CLEANUP = Cleanup(
    ("/bin/sh", "-c", 'echo "$CRONMEND_OUTCOME ${CRONMEND_EXIT_CODE:-none}"'), direct=False, timeout_secs=20
)


@pytest.mark.parametrize(
    ("command", "told"),
    [("exit 0", "completed 0"), ("exit 3", "failed 3"), ("kill -9 $$", "failed none"), (None, "failed 127")],
)
def test_a_cleanup_runs_after_each_end_and_is_told_of_it(
    keep: Keep, tmp_path: Path, command: str | None, told: str
) -> None:
    kept = keep()
    argv = ("/bin/sh", "-c", command) if command else ("no-such-program-xyz",)

    kept.start(1, *argv, folder=tmp_path, cleanup=CLEANUP)

    report = kept.ended(1)
    assert (tmp_path / "1.out").read_text() == f"{told}\n"
    assert (report.cleanup, report.exit_code) == (None, None if command == "kill -9 $$" else int(told.split()[1]))


def test_a_cleanup_runs_when_the_run_is_stopped_and_when_its_time_is_over(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    kept.start(1, "sleep", "60", folder=tmp_path, cleanup=CLEANUP)
    kept.start(2, "sleep", "60", folder=tmp_path, cleanup=CLEANUP, timeout_secs=0.3)
    kept.until(1, "running")

    kept.link.stop(1, 1, "abort", 5)

    assert (kept.ended(1).stopped, (tmp_path / "1.out").read_text()) == ("abort", "aborted none\n")
    assert (kept.ended(2).stopped, (tmp_path / "2.out").read_text()) == ("timeout", "timeout none\n")


@pytest.mark.parametrize(
    ("cleanup", "said"),
    [
        (("/bin/sh", "-c", "exit 4"), "exit code 4"),
        (("sleep", "60"), "ran longer than 0.3 s and was ended"),
        (("no-such-program-xyz",), "could not be started: [Errno 2] No such file or directory: 'no-such-program-xyz'"),
    ],
)
def test_a_cleanup_that_fails_says_so_and_leaves_the_runs_own_end(
    keep: Keep, tmp_path: Path, cleanup: tuple[str, ...], said: str
) -> None:
    kept = keep()

    kept.start(1, "true", folder=tmp_path, cleanup=Cleanup(cleanup, direct=True, timeout_secs=0.3))

    report = kept.ended(1)
    assert (report.cleanup, report.exit_code, report.stopped) == (said, 0, None)


def test_a_stop_during_the_cleanup_ends_the_cleanup_alone(keep: Keep, tmp_path: Path) -> None:
    kept = keep()
    slow = Cleanup(("/bin/sh", "-c", "echo cleaning; sleep 60"), direct=False, timeout_secs=60)
    kept.start(1, "true", folder=tmp_path, cleanup=slow)
    wait_until(lambda: (tmp_path / "1.out").is_file() and (tmp_path / "1.out").read_text() == "cleaning\n")

    kept.link.stop(1, 1, "abort", 5)

    report = kept.ended(1)
    assert (report.cleanup, report.exit_code, report.stopped) == ("was stopped", 0, None)


def test_a_cleanup_runs_although_the_keeper_was_killed_during_the_run(keep: Keep, tmp_path: Path) -> None:
    first = keep()
    first.start(1, "sleep", "1", folder=tmp_path, cleanup=CLEANUP)
    first.until(1, "running")
    first.kill_keeper()

    second = keep(2)

    report = second.ended(1)
    assert (report.known, (tmp_path / "1.out").read_text()) == (False, "failed none\n")


def test_an_end_is_kept_although_the_keeper_was_killed_during_the_cleanup(keep: Keep, tmp_path: Path) -> None:
    slow = Cleanup(("/bin/sh", "-c", "echo cleaning; sleep 1"), direct=False, timeout_secs=60)
    first = keep()
    first.start(1, "/bin/sh", "-c", "exit 3", folder=tmp_path, cleanup=slow)
    wait_until(lambda: (tmp_path / "1.out").is_file() and (tmp_path / "1.out").read_text() == "cleaning\n")
    first.kill_keeper()

    second = keep(2)

    report = second.ended(1)
    assert (report.exit_code, report.known, report.cleanup) == (3, True, "nobody saw how it ended")
