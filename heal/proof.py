"""Proof: what the app itself saw, bound to the very files and the job's definition it saw it with."""

import ast
import hashlib
import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.heals import Verification
from store.jobs import Job

BY_RUN = "run"
BY_COMMAND = "verify"
UNVERIFIED = "unverified"

CHECK_SECS = 30
_SHELLS = {"sh": "sh", "dash": "sh", "ash": "sh", "bash": "bash", "ksh": "bash", "zsh": "zsh"}


@dataclass(frozen=True)
class Outcome:
    """Whether a proof came out green, and what it said."""

    is_green: bool
    kind: str
    detail: str


def digest(files: Mapping[str, str], job: Job) -> str:
    """One short text for the changed files and everything that decides what the job does."""
    definition: dict[str, Any] = {
        "command": job.command,
        "cwd": job.cwd,
        "env": job.env,
        "project": job.project_id,
        "effects": job.effects,
        "verify": job.verify_command,
        "cleanup": job.cleanup_command,
        "timeout": job.timeout_secs,
    }
    text = json.dumps([sorted(files.items()), definition], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def may_run(job: Job) -> bool:
    """Whether a heal may really run the job to prove its fix."""
    return job.effects in ("none", "idempotent")


def is_enough(proof: Verification, job: Job) -> bool:
    """A check of syntax alone is enough only where nothing better can be had."""
    return proof.kind != UNVERIFIED or (not may_run(job) and job.verify_command is None)


def check_syntax(project: Path, paths: Sequence[str]) -> Outcome:
    """Reads the changed files as their languages do; runs nothing of them."""
    said = [f"{path}: {wrong}" for path in paths if (wrong := _wrong_with(project / path)) is not None]
    checked = ", ".join(paths) or "no file was changed"
    return Outcome(not said, UNVERIFIED, "\n".join(said) if said else f"syntax checked, not run: {checked}")


def _wrong_with(path: Path) -> str | None:
    if not path.is_file() or path.is_symlink():
        return None
    data = path.read_bytes()
    if path.suffix == ".json":
        return _wrong_json(data)
    if path.suffix == ".py" or _interpreter(data).startswith("python"):
        return _wrong_python(data)
    shell = _SHELLS.get(_interpreter(data) or {".sh": "sh", ".bash": "bash"}.get(path.suffix, ""))
    return _wrong_shell(shell, path) if shell else None


def _interpreter(data: bytes) -> str:
    line = data.partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return ""
    words = line[2:].decode(errors="replace").split()
    names = [Path(word).name for word in words if not word.startswith("-") and "=" not in word]
    return next((name for name in names if name != "env"), "")


def _wrong_json(data: bytes) -> str | None:
    try:
        json.loads(data)
    except ValueError as error:
        return str(error)
    return None


def _wrong_python(data: bytes) -> str | None:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError) as error:
        return str(error)
    return None


def _wrong_shell(shell: str, path: Path) -> str | None:
    try:
        done = subprocess.run(
            [shell, "-n", str(path)], capture_output=True, timeout=CHECK_SECS, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr.decode(errors="replace").strip()[-500:] if done.returncode else None


def commands_files(command: str, folder: Path, project: Path) -> list[str]:
    """Files of the project that the job's command names, relative to it: they are checked too."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    real = project.resolve()
    named = [(folder / word).resolve() for word in words if word and not word.startswith("-")]
    return [str(path.relative_to(real)) for path in named if path.is_relative_to(real) and path.is_file()]
