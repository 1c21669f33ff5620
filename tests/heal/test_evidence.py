"""Evidence of really broken jobs: the category, the object that failed by its name, and nothing secret."""

import shutil
from pathlib import Path

import pytest
from support.breaking import run

from heal.evidence import Evidence, Failure, examine

pytestmark = pytest.mark.mission("O2")

PY = "python3 -c "
BROKEN = {
    "python reads a missing file": (PY + "\"open('in/data.csv')\"", "missing-file", "in/data.csv"),
    "python without a module": (PY + '"import nosuchmodule.sub"', "script-error", "nosuchmodule"),
    "python key": (PY + "\"{}['total']\"", "script-error", "'total'"),
    "python syntax": (PY + '"if"', "script-error", "SyntaxError"),
    "python JSON": (PY + "\"import json; json.loads('{')\"", "script-error", "not JSON"),
    "python value": (PY + "\"int('many')\"", "script-error", "many"),
    "python permission": (PY + "\"raise PermissionError(13, 'Permission denied', 'x.lock')\"", "permission", "x.lock"),
    "python refused": (
        PY + "\"import socket; socket.create_connection(('127.0.0.1', 1))\"",
        "network",
        "connection refused",
    ),
    "python name": (
        PY + "\"import socket; socket.create_connection(('no.such.host.invalid', 1))\"",
        "network",
        "host name",
    ),
    "sh command": ("nosuchprogram --now || exit 127", "missing-file", "nosuchprogram"),
    "direct command": ("nosuchprogram --now", "missing-file", "command not found: nosuchprogram"),
    "sh file": ("cat 'in put.txt'", "missing-file", "in put.txt"),
    "bash command": ("bash -c 'nosuch2 x'", "missing-file", "nosuch2"),
    "bash redirect": ("bash -c 'echo x > no/where.txt'", "missing-file", "no/where.txt"),
    "sh redirect": ("echo x > no/where.txt", "missing-file", "no/where.txt"),
    "cp": ("cp from.txt to.txt", "missing-file", "from.txt"),
    "ls": ("ls absent.d", "missing-file", "absent.d"),
    "tar": ("tar -xf none.tar", "missing-file", "none.tar"),
    "no exec bit": ("./plain.sh", "permission", "not executable: ./plain.sh"),
    "no exec bit in sh": ("true && ./plain.sh", "permission", "./plain.sh"),
    "CRLF": ("./crlf.sh", "script-error", "CRLF line endings): ./crlf.sh"),
    "CRLF body": ("bash crlf.sh", "script-error", "crlf.sh"),
    "no interpreter": ("./lost.sh", "missing-file", "./lost.sh"),
    "curl refused": ("curl -sS http://127.0.0.1:1/", "network", "127.0.0.1:1"),
    "curl name": ("curl -sS http://no.such.host.invalid/", "network", "no.such.host.invalid"),
    "git repository": ("git log", "script-error", "not a git repository"),
    "make": ("make nosuchtarget", "script-error", "nosuchtarget"),
    "publickey": ("echo 'git@h.example: Permission denied (publickey).' >&2; exit 128", "permission", "git@h.example"),
    "429": ("echo 'HTTP/1.1 429 Too Many Requests'; exit 1", "network", "429"),
    "disk": ("echo 'dd: writing: No space left on device' >&2; exit 1", "unknown", "no space left"),
    "certificate": (
        "echo 'curl: (60) SSL certificate problem: certificate has expired' >&2; exit 60",
        "network",
        "TLS",
    ),
    "plain message": ("echo 'the ledger does not add up' >&2; exit 4", "script-error", "the ledger does not add up"),
    "silence": ("exit 9", "unknown", "exit code 9"),
    "signal": ("kill -KILL $$", "unknown", "killed by signal 9"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    files = {
        "plain.sh": (b"#!/bin/sh\ntrue\n", 0o644),
        "crlf.sh": (b"#!/bin/sh\r\nif true; then\r\n  echo x\r\nfi\r\n", 0o755),
        "lost.sh": (b"#!/no/such/shell\ntrue\n", 0o755),
    }
    for name, (data, mode) in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(mode)
    return folder


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_job_is_understood(project: Path, name: str) -> None:
    command, category, named = BROKEN[name]
    tool = command.partition(" ")[0]
    if tool in ("curl", "git", "make") and not shutil.which(tool):
        pytest.skip(f"needs {tool}")
    failure, _ = run(project, command)

    evidence = examine(failure)

    assert (evidence.category, named in evidence.cause) == (category, True), (evidence, failure.stderr)
    assert Evidence.from_json(evidence.to_json()) == evidence


def test_the_last_frame_of_the_project_is_named(project: Path) -> None:
    (project / "report.py").write_text("import json\n\n\ndef total(rows):\n    return rows['sum']\n\n\ntotal({})\n")
    failure, _ = run(project, "python3 report.py")

    assert examine(failure).cause == "KeyError 'sum' in report.py line 5"


def test_a_time_limit_tells_the_last_words(project: Path) -> None:
    failure = made(b"step 1\nstep 2: waiting for the printer\n", stopped="timeout")

    evidence = examine(failure)

    assert evidence.category == "timeout"
    assert evidence.cause == "timed out after 60 s; last output: step 2: waiting for the printer"


def made(stdout: bytes = b"", stderr: bytes = b"", stopped: str | None = None, *secrets: str) -> Failure:
    return Failure(
        command="job --token tok-1234567",
        schedule="daily",
        exit_code=None if stopped else 1,
        signal=None,
        spawn_error=None,
        stopped=stopped,
        timeout_secs=60,
        stdout=stdout,
        stderr=stderr,
        cwd="/",
        project=None,
        path="/usr/bin",
        secrets=secrets,
    )


@pytest.mark.mission("B9")
def test_no_secret_stays_in_evidence() -> None:
    failure = made(b"", b"login with tok-1234567 failed\nPASSWORD=hunter22\n", None, "tok-1234567")

    kept = str(examine(failure).to_json())

    assert "tok-1234567" not in kept
    assert "hunter22" not in kept


def test_only_the_last_fifty_lines_are_kept_and_the_first_error_still_counts() -> None:
    early = b"[Errno 2] No such file or directory: 'early.cfg'\n"
    failure = made(b"", early + b"".join(b"noise %d\n" % number for number in range(200)))

    evidence = examine(failure)

    assert len(evidence.stderr_tail.split("\n")) == 50
    assert evidence.cause == "missing file: early.cfg"


def test_terminal_codes_progress_and_binary_output_become_plain_text() -> None:
    failure = made(b"10%\r20%\r100%\n\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\xff\n", b"")

    text = examine(failure).stdout_tail

    assert text.split("\n")[0] == "100%"
    assert "\x1b" not in text
    assert "red" in text


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", [b"a: ", b"'", b'File "', b"x" * 100, b"\r", b"\x1b[", b"No such file or directory: '", b"\n"]
)
def test_hostile_output_takes_linear_time(piece: bytes) -> None:
    data = (piece * 262_144)[:262_144]

    assert examine(made(data, data)).category
