"""Really running a command that breaks, and looking at it as the app would."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from heal.evidence import Evidence, Failure, examine
from heal.playbook.book import look
from heal.playbook.case import Case, Verdict
from scheduler.launch import argv_of

PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"

_SPAWN = """
import json, os, sys
sys.path.insert(0, sys.argv[2])
from scheduler.spawning import SpawnError, spawn
order = json.loads(sys.argv[1])
try:
    pid = spawn(order)
except SpawnError as error:
    print(json.dumps({"code": error.exit_code, "error": str(error)}))
else:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps({"code": code, "error": None}))
"""

ROOT = Path(__file__).resolve().parents[2]


def run(
    project: Path, command: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> tuple[Failure, float]:
    """Runs the command by the keeper's own spawning; what is known of its failure, and when it began."""
    argv, direct = argv_of(command)
    logs = project.parent / f"{project.name}.logs"
    logs.mkdir(exist_ok=True)
    out, err = logs / "out", logs / "err"
    out.write_bytes(b"")
    err.write_bytes(b"")
    order: dict[str, Any] = {
        "argv": argv,
        "direct": direct,
        "cwd": str(cwd or project),
        "env": {"PATH": PATH, "HOME": str(project.parent), "LANG": "C.UTF-8", **(env or {})},
        "stdout": str(out),
        "stderr": str(err),
    }
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-c", _SPAWN, json.dumps(order), str(ROOT)], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    code = said["code"]
    failure = Failure(
        command=command,
        schedule="daily",
        exit_code=code if code is None or code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        spawn_error=said["error"],
        stopped=None,
        timeout_secs=60,
        stdout=out.read_bytes(),
        stderr=err.read_bytes(),
        cwd=str(cwd or project),
        project=str(project),
        path=PATH,
    )
    return failure, began


def case_of(failure: Failure, project: Path, began: float) -> tuple[Case, Evidence]:
    evidence = examine(failure)
    case = Case(
        project=os.path.realpath(project),
        cwd=os.path.realpath(failure.cwd),
        command=failure.command,
        path=failure.path,
        exit_code=failure.exit_code,
        signal=failure.signal,
        spawn_error=failure.spawn_error,
        stdout_tail=evidence.stdout_tail,
        stderr_tail=evidence.stderr_tail,
        category=evidence.category,
        cause=evidence.cause,
        run_started_at=began,
    )
    return case, evidence


def verdict_on(project: Path, command: str, cwd: Path | None = None) -> Verdict | None:
    """What the book says of the command, which must break."""
    failure, began = run(project, command, cwd)
    assert failure.exit_code != 0, (failure.stdout, failure.stderr)
    return look(case_of(failure, project, began)[0])


def repair(project: Path, command: str, cwd: Path | None = None) -> Verdict:
    """Breaks, is repaired by the book, and then really works."""
    verdict = verdict_on(project, command, cwd)
    assert verdict is not None
    assert verdict.repair is not None, verdict
    before = picture(project)
    verdict.repair.apply()
    touched = {path for path, state in picture(project).items() if before.get(path) != state} | {
        path for path in before if path not in picture(project)
    }
    assert touched <= set(verdict.repair.paths), "it touches what it named, and nothing else"
    again, _ = run(project, command, cwd)
    assert again.exit_code == 0, again.stderr
    return verdict


def picture(folder: Path) -> dict[str, str]:
    """Every file and folder with mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        found[path.relative_to(folder).as_posix()] = f"{path.lstat().st_mode:o} {content}"
    return found
