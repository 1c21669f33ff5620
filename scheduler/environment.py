"""The environment of a run: the person's login environment, captured once, plus the job's own."""

import os
import pwd
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from store.clock import iso
from store.jobs import Job
from store.runs import Run

CAPTURE_SECS = 5
_OURS = re.compile(
    r"ANTHROPIC_|CRONMEND_|CLAUDE_CODE|_PYI_|PYTHON(HOME|PATH|SAFEPATH)$|VIRTUAL_ENV|_$|SHLVL$|PWD$|OLDPWD$"
)
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def login_environment() -> dict[str, str]:
    """What the person's login shell exports, without our own and the model's variables.

    A shell that cannot be asked within five seconds leaves the app's own environment.
    """
    own = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    person = pwd.getpwuid(os.getuid())
    shell = person.pw_shell if Path(person.pw_shell).is_file() else "/bin/sh"
    basics = {"HOME": own.get("HOME", person.pw_dir), "USER": person.pw_name, "LOGNAME": person.pw_name, "SHELL": shell}
    asked = {**own, **basics}
    try:
        answer = subprocess.run(
            [shell, "-l", "-c", "env -0"],
            env=asked,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CAPTURE_SECS,
            check=True,
            start_new_session=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return _completed(asked)
    pairs = (entry.partition("=") for entry in answer.decode(errors="surrogateescape").split("\0") if "=" in entry)
    return _completed({name: value for name, _, value in pairs if not _OURS.match(name)} | basics)


def _completed(env: dict[str, str]) -> dict[str, str]:
    # A killed Python child leaves no output unless it is unbuffered; a missing locale turns output to ASCII.
    usual = {"PATH": _USUAL_PATH, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    return {**usual, **env}


def run_environment(base: Mapping[str, str], job: Job, run: Run) -> dict[str, str]:
    """The whole environment of one run's process."""
    return {
        **base,
        **job.env,
        "CRONMEND_JOB_ID": str(job.id),
        "CRONMEND_RUN_ID": str(run.id),
        "CRONMEND_SLOT": iso(run.slot_at) if run.slot_at else "",
        "CRONMEND_ATTEMPT": str(run.attempt),
    }
