"""Evidence of really broken jobs: the category, the object that failed by its name, and nothing secret."""

import json
import random
import re
import shutil
from dataclasses import replace
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
    # The same broken first line has many faces; what is on the disk tells.
    "CRLF in sh": ("true; ./crlf.sh", "script-error", "CRLF line endings): ./crlf.sh"),
    "CRLF in bash": ("bash -c ./crlf.sh", "script-error", "CRLF line endings): ./crlf.sh"),
    "CRLF for env": ("./crlf_env.sh", "script-error", "CRLF line endings): ./crlf_env.sh"),
    "CRLF from python": (
        "python3 calls_crlf.py",
        "script-error",
        "CRLF line endings): ./crlf.sh in calls_crlf.py line 2",
    ),
    "CRLF body in sh": ("sh crlf.sh", "script-error", "CRLF line endings: crlf.sh"),
    "no interpreter in sh": ("true; ./lost.sh", "missing-file", "missing interpreter /no/such/shell: ./lost.sh"),
    "no interpreter in bash": ("bash -c ./lost.sh", "missing-file", "missing interpreter /no/such/shell: ./lost.sh"),
    "no interpreter for env": ("./lost_env.sh", "missing-file", "python9"),
    "another machine's program": ("true; ./wrong.elf", "script-error", "not a program for this machine: ./wrong.elf"),
    "a folder as a program": ("true && ./folder.d", "permission", "is a folder, not a program: ./folder.d"),
    "no exec bit inside": ("./inner.sh", "permission", "not executable: ./plain.sh in inner.sh line 2"),
    "no exec bit from python": (
        "python3 calls_plain.py",
        "permission",
        "not executable: ./plain.sh in calls_plain.py line 2",
    ),
    # Where in the project.
    "bash line": ("'bin/night run.sh'", "missing-file", "command not found: nosuch42"),
    "bash variable": ("./unset.sh", "script-error", "variable not set: TARGET in unset.sh line 3"),
    "bash variable, 127": ("bash -uc 'echo $TARGET'", "script-error", "variable not set: TARGET"),
    "bash words in sh": ("./bashism.sh", "script-error", "source in bashism.sh line 2"),
    "environment": ("python3 env.py", "script-error", "environment variable not set: API_TOKEN in env.py line 3"),
    "key": ("python3 key.py", "script-error", "KeyError 'total' in key.py line 2"),
    "first of a chain": ("python3 chain.py", "missing-file", "missing file: a.cfg in chain.py line 2"),
    "not a mere warning": ("python3 warned.py", "script-error", "KeyError 'k' in warned.py line 3"),
    "refused deep in a library": ("python3 url.py", "network", "connection refused in url.py line 3"),
    "an unknown exception": ("python3 zip.py", "script-error", "File is not a zip file in zip.py line 2"),
    "an exception of its own": ("python3 boom.py", "script-error", "Boom: the tank is empty in boom.py line 5"),
    "python syntax in a file": ("python3 syntax.py", "script-error", "invalid syntax in syntax.py line 1"),
    "encoding": ("python3 latin.py", "script-error", "byte 0xe9"),
    "table": ("python3 table.py", "script-error", "missing table: users in table.py line 2"),
    "another python": ("python3 -S uses_fancy.py", "script-error", "fancy (it is in .venv"),
    "node file": ("node read.js", "missing-file", "missing file: in.json in read.js line 2"),
    "node module": ("node module.js", "script-error", "missing Node module: left-pad"),
    "node script": ("node nowhere.js", "missing-file", "missing file: nowhere.js"),
    "node type": ("node null.js", "script-error", "(reading 'x') in null.js line 1"),
    "node syntax": ("node syntax.js", "script-error", "in syntax.js line 1"),
    "perl module": ("perl module.pl", "script-error", "missing Perl module: Foo/Bar.pm in module.pl line 1"),
    "make step": ("make", "recipe-step-failed", "step all failed (Makefile:2)"),
    "make cause": ("make miss", "missing-file", "missing file: nothere.txt"),
    # Exit codes and signals.
    "silent 127": ("sh silent.sh", "missing-file", "exit code 127, a command was not found"),
    "124": ("sh limit.sh", "timeout", "exit code 124"),
    "137 is no proof": ("true; sh tired.sh", "unknown", "killed by signal 9 (SIGKILL)"),
    "139": ("kill -SEGV $$", "script-error", "SIGSEGV"),
    "time limit inside": ("python3 slow.py", "timeout", "sleep"),
    "complaint in a log": ("sh log.sh", "script-error", "exit code 3: ERROR page 7"),
    "arguments": ("/bin/ls $(seq 1 300000)", "script-error", "argument list too long"),
    "cd": ("cd nowhere && ls", "missing-file", "nowhere"),
    "env command": ("env nosuch42", "missing-file", "command not found: nosuch42"),
    "quoted by coreutils": ("rm 'my file.txt'", "missing-file", "missing file: my file.txt"),
    "no folder": ("touch out/2026/r.csv", "missing-file", "out/2026/r.csv (no folder out/2026)"),
    "clone": ("git clone ./no.git", "missing-file", "no.git"),
    "cp into no folder": ("cp plain.sh key.py arch/", "missing-file", "missing folder: arch"),
    "cp -t": ("cp -t arch plain.sh", "missing-file", "missing folder: arch"),
    "mv into no folder": ("mv plain.sh arch/x", "missing-file", "missing folder: arch (for arch/x)"),
    "rename into no folder": (
        "python3 move.py",
        "missing-file",
        "missing folder: out (for out/key.py) in move.py line 2",
    ),
    "rename of nothing": ("mv absent.csv arch/x", "missing-file", "missing file: absent.csv"),
    "CRLF in an argument": (
        "sh crlf_cat.sh",
        "script-error",
        "CRLF line endings, a name ends with a carriage return: a.txt",
    ),
    # Names with spaces and letters beyond ASCII.
    "spaces, bash": ("'my dir/täsk x.sh'", "script-error", "variable not set: NOPE in my dir/täsk x.sh line 3"),
    "spaces, CRLF body": ("bash 'my dir/wïn x.sh'", "script-error", "CRLF line endings: my dir/wïn x.sh"),
    "spaces, python": ("python3 'my dir/jöb.py'", "missing-file", "missing file: cfg ü.json in my dir/jöb.py line 1"),
    "exception group": ("python3 group.py", "script-error", "ValueError: a bad row in group.py line 3"),
    # A service of this machine is not the network.
    "psql": ("psql -h 127.0.0.1 -p 1 -c x", "network", "127.0.0.1:1 (a service on this machine)"),
    "ssh": ("ssh -o BatchMode=yes -p 1 127.0.0.1", "network", "127.0.0.1:1 (a service on this machine)"),
    "silence": ("exit 9", "unknown", "exit code 9"),
    "signal": ("kill -KILL $$", "unknown", "killed by signal 9"),
}


# What the jobs below stumble over, by name: content and mode.
FILES: dict[str, tuple[bytes, int]] = {
    "plain.sh": (b"#!/bin/sh\ntrue\n", 0o644),
    "crlf.sh": (b"#!/bin/sh\r\nif true; then\r\n  echo x\r\nfi\r\n", 0o755),
    "crlf_env.sh": (b"#!/usr/bin/env bash\r\ntrue\r\n", 0o755),
    "lost.sh": (b"#!/no/such/shell\ntrue\n", 0o755),
    "lost_env.sh": (b"#!/usr/bin/env python9\n", 0o755),
    "folder.d/x": (b"", 0o644),
    "wrong.elf": (b"\x7fELF\x02\x01\x01" + b"\0" * 60, 0o755),
    "bin/night run.sh": (b"#!/bin/bash\nset -e\necho begin\nnosuch42 --x\n", 0o755),
    "inner.sh": (b"#!/bin/sh\n./plain.sh\n", 0o755),
    "bashism.sh": (b"#!/bin/sh\nsource ./x\n", 0o755),
    "unset.sh": (b"#!/bin/bash\nset -u\necho $TARGET\n", 0o755),
    "silent.sh": (b"nosuch42 2>/dev/null\n", 0o644),
    "limit.sh": (b"timeout 0.1 sleep 5\n", 0o644),
    "tired.sh": (b"kill -9 $$\n", 0o644),
    "log.sh": (
        b"echo '2026-01-02 03:04:05,678 INFO 0 errors'; echo '2026-01-02 03:04:06,1 ERROR page 7'; exit 3\n",
        0o644,
    ),
    "crlf_cat.sh": (b"cat a.txt\r\n", 0o755),
    "my dir/täsk x.sh": (b"#!/bin/bash\nset -u\necho $NOPE\n", 0o755),
    "my dir/wïn x.sh": (b"if true; then\r\n  echo x\r\nfi\r\n", 0o755),
    "my dir/jöb.py": ("open('cfg ü.json')\n".encode(), 0o644),
    "move.py": (b"import os\nos.rename('key.py', 'out/key.py')\n", 0o644),
    "group.py": (
        (
            b"try:\n    if True:\n        raise ValueError('a bad row')\n"
            b"except ValueError as error:\n    raise ExceptionGroup('all', [error]) from None\n"
        ),
        0o644,
    ),
    "env.py": (b"import os\n\nos.environ['API_TOKEN']\n", 0o644),
    "key.py": (b"def total(row):\n    return row['total']\n\n\ntotal({})\n", 0o644),
    "calls_crlf.py": (b"import subprocess\nsubprocess.run(['./crlf.sh'])\n", 0o644),
    "calls_plain.py": (b"import subprocess\nsubprocess.run(['./plain.sh'])\n", 0o644),
    "chain.py": (b"try:\n    open('a.cfg')\nexcept OSError:\n    {}['b']\n", 0o644),
    "warned.py": (
        b"import sys\nprint(\"Warning: [Errno 2] No such file or directory: 'c'\", file=sys.stderr)\n{}['k']\n",
        0o644,
    ),
    "url.py": (b"import urllib.request\n\nurllib.request.urlopen('http://127.0.0.1:1/')\n", 0o644),
    "zip.py": (b"import zipfile\nzipfile.ZipFile('zip.py')\n", 0o644),
    "boom.py": (b"class Boom(Exception):\n    pass\n\n\nraise Boom('the tank is empty')\n", 0o644),
    "slow.py": (b"import subprocess\nsubprocess.run(['sleep', '5'], timeout=0.1)\n", 0o644),
    "syntax.py": (b"def f(:\n    pass\n", 0o644),
    "latin.py": (b"open('latin.txt', encoding='utf-8').read()\n", 0o644),
    "latin.txt": (b"caf\xe9\n", 0o644),
    "table.py": (b"import sqlite3\nsqlite3.connect(':memory:').execute('select * from users')\n", 0o644),
    "uses_fancy.py": (b"import fancy.thing\n", 0o644),
    ".venv/lib/python3.11/site-packages/fancy/__init__.py": (b"", 0o644),
    "Makefile": (b"all:\n\t@false\nmiss:\n\tcat nothere.txt\n", 0o644),
    "read.js": (b"const fs = require('fs');\nfs.readFileSync('in.json');\n", 0o644),
    "module.js": (b"require('left-pad');\n", 0o644),
    "null.js": (b"function f() { return null.x }\nf();\n", 0o644),
    "syntax.js": (b"let x = ;\n", 0o644),
    "module.pl": (b"use Foo::Bar;\n", 0o644),
}
TOOLS = {"curl", "git", "make", "node", "perl", "psql", "ssh"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, (data, mode) in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)
    return folder


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_job_is_understood(project: Path, name: str) -> None:
    command, category, named = BROKEN[name]
    tool = command.partition(" ")[0]
    if tool in TOOLS and not shutil.which(tool):
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


@pytest.mark.mission("B9")
def test_a_secret_in_the_command_and_the_cause_is_taken_out(project: Path) -> None:
    failure, _ = run(project, "cat /srv/key-Zq81xw90/in.csv")

    evidence = examine(replace(failure, secrets=("key-Zq81xw90\n",)))

    assert "key-Zq81xw90" not in str(evidence)
    assert evidence.cause.startswith("missing file: /srv/[redacted]/in.csv")


@pytest.mark.mission("B9")
def test_a_key_of_many_lines_stays_out_although_only_its_end_is_among_the_last_lines() -> None:
    body = b"".join(b"%064d\n" % number for number in range(80))
    key = b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + body + b"-----END OPENSSH PRIVATE KEY-----\n"

    evidence = examine(made(b"", key + b"done\n"))

    assert evidence.stderr_tail == "[redacted]\ndone"


@pytest.mark.mission("B9")
def test_a_secret_at_the_cut_of_a_long_line_or_of_the_tail_leaves_no_part() -> None:
    secret = "s3cr3t-value-0123456789"
    line = b"x" * 1_990 + secret.encode() + b"\n"
    tail = (secret.encode()[8:] + b"\n" + b"y\n" * 262_144)[:262_144]

    evidence = examine(made(tail, line, None, secret))

    assert "s3cr3t-v" not in evidence.stderr_tail
    assert "0123456789" not in evidence.stdout_tail


def test_a_failure_without_output_says_so() -> None:
    evidence = examine(made())

    assert (evidence.category, evidence.hits) == ("unknown", ())
    assert evidence.cause.startswith("exit code 1, no output: job")


def test_a_command_outside_the_path_is_pointed_at(project: Path) -> None:
    failure, _ = run(project, "nosuch42 x")
    tool = project / "bin/nosuch42"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    assert examine(failure).cause == "command not found: nosuch42 (it is in bin, which is not on the job's PATH)"


@pytest.mark.parametrize(
    ("stopped", "cause"), [("abort", "stopped by a person"), ("replace", "stopped for the next run of this job")]
)
def test_a_run_that_was_stopped_on_purpose_has_no_other_cause(stopped: str, cause: str) -> None:
    assert examine(made(b"", b"KeyError: 'x'\n", stopped)).cause == cause


def test_the_missing_working_folder_is_named(project: Path) -> None:
    failure, _ = run(project, "true", project / "gone")

    evidence = examine(failure)

    assert evidence.category == "missing-file"
    assert str(project / "gone") in evidence.cause


def test_hits_come_in_the_order_of_the_output() -> None:
    said = b"Error: connect ECONNREFUSED 10.0.0.1:80\nfoo: command not found\nKeyError: 'a'\nKeyError: 'b'\n"

    assert examine(made(b"", said)).hits == ("ECONNREFUSED", "command not found", "KeyError")


@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_give_evidence_that_can_be_stored(seed: int) -> None:
    noise = random.Random(seed)
    data = noise.randbytes(20_000) + b"\x1b]0;t\x07\x1b[2J\r\xed\xa0\x80\xe2\x80\xae end\n"

    evidence = examine(replace(made(data, data), command="job \udcff", spawn_error=None))

    kept = json.dumps(evidence.to_json(), ensure_ascii=False).encode()
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", kept)
    assert max(map(len, evidence.stdout_tail.split("\n"))) <= 2_000
