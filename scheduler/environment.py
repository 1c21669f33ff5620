"""The environment of a run: the person's login environment, captured once, plus the job's own."""

import os
import pwd
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Surroundings:
    """What a run gets where its job says nothing: the login environment, the hard time limit in seconds, how many
    commands run at once and how long a log becomes (0: any number, any length), and how many runs a pool has."""

    login: Mapping[str, str]
    hard_timeout: Callable[[], int]
    most_at_once: Callable[[], int] = lambda: 0
    most_log_bytes: Callable[[], int] = lambda: 0
    pools: Callable[[], Mapping[str, int]] = dict

    def environment(self, job: Job, run: Run) -> dict[str, str]:
        """The whole environment of one run's process."""
        return {
            **self.login,
            **job.env,
            "CRONMEND_JOB_ID": str(job.id),
            "CRONMEND_RUN_ID": str(run.id),
            "CRONMEND_SLOT": iso(run.slot_at) if run.slot_at else "",
            "CRONMEND_ATTEMPT": str(run.attempt),
            **({"CRONMEND_WAKE_CONTEXT": run.wake_context} if run.wake_context else {}),
        }

    def path(self, job: Job) -> str:
        """The PATH that the job's commands are looked up in."""
        return job.env.get("PATH", self.login.get("PATH", ""))

    def folder(self, job: Job, project_folder: str | None) -> str:
        """Where the job's command runs: its own folder, else its project's, else the home folder."""
        return job.cwd or project_folder or self.login["HOME"]

    def timeout_secs(self, job: Job) -> int:
        return job.timeout_secs or self.hard_timeout()
