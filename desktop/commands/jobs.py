"""cronmend jobs: list, show, draft, add, edit, pause, resume, run, rm, next, import, export."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from desktop.commands.client import Client
from desktop.commands.following import exit_code_of, follow
from desktop.commands.printing import json_option, local, print_facts, print_json, print_table
from store.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])

OVERLAP = click.Choice(["skip", "queue", "parallel", "replace"])
CATCH_UP = click.Choice(["skip", "once", "all"])
EFFECTS = click.Choice(["none", "idempotent", "external", "unknown"])

DRAFT_OPTIONS = {
    **{name: f"--{name}" for name in ("name", "command", "prompt", "schedule", "project", "effects")},
    "runAt": "--at",
    "verifyCommand": "--verify",
}
FIELDS = [
    click.option("--name", help="What the job is called."),
    click.option("--command", help="The shell line to run."),
    click.option("--recipe", help="A YAML file with steps."),
    click.option("--prompt", help="What Claude is to work on."),
    click.option("--schedule", help="'every 30m', 'daily at 9am', or five cron fields."),
    click.option("--at", "run_at", help="A single time in place of a schedule: 'tomorrow 09:00', ISO 8601."),
    click.option("--project", help="A project's id, or a folder (a new one becomes a project)."),
    click.option("--cwd", help="The folder to run in; the project's by default."),
    click.option("--env", multiple=True, metavar="K=V", help="A variable of the job's environment."),
    click.option("--timezone", help="IANA name; this machine's by default."),
    click.option("--timeout", "timeout_secs", type=int, help="Hard limit in seconds."),
    click.option("--retries", type=int, help="Further tries after a failure."),
    click.option("--retry-backoff", "retry_backoff_secs", type=int, help="Seconds before a retry."),
    click.option("--retry-on", type=int, multiple=True, help="Try again only after this exit code."),
    click.option("--pool", help="Jobs of one pool run one at a time, or as many as CRONMEND_POOLS says."),
    click.option("--jitter", "jitter_secs", type=int, help="Random delay of up to so many seconds."),
    click.option("--overlap", type=OVERLAP, help="When the last run has not ended."),
    click.option("--catch-up", type=CATCH_UP, help="Slots missed while the app or machine was off."),
    click.option("--catch-up-max-age", "catch_up_max_age_secs", type=int, help="Older missed slots expire."),
    click.option("--effects", type=EFFECTS, help="What a run does outside; decides how a heal may prove its fix."),
    click.option("--verify", "verify_command", help="A command that proves the job works, without side effects."),
    click.option("--cleanup", "cleanup_command", help="A command to run after each run, however it ended."),
    click.option("--success-when", multiple=True, help="A condition beyond exit code 0."),
    click.option("--expect-within", "expect_within_secs", type=int, help="Tell when a slot has no green run so long."),
    click.option("--tag", "tags", multiple=True, help="A label."),
    click.option("--no-healing", is_flag=True, help="Do not repair this job."),
    click.option("--require-approval", is_flag=True, help="Ask before each run."),
    click.option("--deliver-to", help="Where the output goes."),
]


def fields(command: F) -> F:
    for option in reversed(FIELDS):
        command = option(command)
    return command


@click.group()
def jobs() -> None:
    """Jobs: what runs, and when."""


@jobs.command("list")
@json_option
def list_jobs(*, as_json: bool) -> None:
    """List all jobs."""
    rows = Client().call("GET", "/cron/jobs", query={"limit": 10_000})
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda job: job["id"]),
        ("NAME", lambda job: job["name"]),
        ("STATE", _state),
        ("SCHEDULE", lambda job: job["scheduleText"] or job["schedule"] or f"once {local(job['runAt'])}"),
        ("LAST RUN", lambda job: job["lastRun"]["status"] if job["lastRun"] else "never"),
        ("NEXT RUN", lambda job: local(job["nextRunAt"])),
    ]
    print_table(rows, columns, "No jobs yet. Make one: cronmend jobs add --name NAME --command CMD --schedule WHEN")


def _state(job: dict[str, Any]) -> str:
    if job["isActive"]:
        return "active"
    if job["pausedBy"]:
        return f"paused ({job['pausedBy']})"
    return f"blocked: {job['blockedReason']}" if job.get("blockedReason") else "done"


@jobs.command()
@click.argument("job_id", type=int)
@json_option
def show(job_id: int, *, as_json: bool) -> None:
    """Show one job."""
    job = Client().call("GET", f"/cron/jobs/{job_id}")
    print_json(job) if as_json else print_facts(job)


@jobs.command()
@fields
@click.option("--offline", is_flag=True, help="Write to the database of an app that does not run.")
@json_option
def add(*, offline: bool, as_json: bool, **given: Any) -> None:
    """Make a job; prints its id."""
    body = _body(given)
    job = _add_offline(body) if offline else Client().call("POST", "/cron/jobs", body)
    print_json(job) if as_json else print(job["id"])


@jobs.command()
@click.argument("text")
@json_option
def draft(text: str, *, as_json: bool) -> None:
    """Read a sentence as a job, and print the command that would make it.  Nothing is saved."""
    found = Client().call("POST", "/cron/jobs/draft", {"text": text})
    if as_json:
        print_json(found)
        return
    options = [f"{DRAFT_OPTIONS[name]} {shlex.quote(value)}" for name, value in found["draft"].items()]
    print("cronmend jobs add " + " ".join(options))
    for note in found["notes"]:
        print(note, file=sys.stderr)


@jobs.command()
@click.argument("job_id", type=int)
@fields
@click.option("--healing", is_flag=True, help="Repair this job again.")
@json_option
def edit(job_id: int, *, healing: bool, as_json: bool, **given: Any) -> None:
    """Change the named fields of a job."""
    body = _body(given)
    if healing:
        body["healingEnabled"] = True
    if not body:
        raise Invalid("field", "field: name at least one to change, as in --schedule 'every 30m'.")
    job = Client().call("PATCH", f"/cron/jobs/{job_id}", body)
    print_json(job) if as_json else print(job["id"])


def _body(given: dict[str, Any]) -> dict[str, Any]:
    """The options as the JSON fields of a job; what was not given is left out."""
    body = {_camel(name): value for name, value in given.items() if value not in (None, (), False)}
    if "env" in body:
        body["env"] = dict(_pair(text) for text in body["env"])
    for name in ("tags", "successWhen", "retryOn"):
        if name in body:
            body[name] = list(body[name])
    if body.pop("noHealing", False):
        body["healingEnabled"] = False
    if "project" in body and not str(body["project"]).isdigit():
        body["project"] = str(Path(body["project"]).expanduser().absolute())
    if "cwd" in body and (folder := Path(body["cwd"]).expanduser()).is_dir():
        body["cwd"] = str(folder.absolute())
    return body


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid("env", f"env: {text!r} is not NAME=VALUE.")
    return name, value


def _add_offline(body: dict[str, Any]) -> dict[str, Any]:
    from desktop.offline import add_job  # noqa: PLC0415 - opens the database itself, which a running app spares

    return add_job(body)


@jobs.command()
@click.argument("job_id", type=int)
@click.option("--until", help="Resume by itself at this time.")
@json_option
def pause(job_id: int, until: str | None, *, as_json: bool) -> None:
    """Pause a job's schedule."""
    body = {"isActive": False, **({"until": until} if until else {})}
    job = Client().call("POST", f"/cron/jobs/{job_id}/toggle", body)
    print_json(job) if as_json else print(f"Job {job_id} is {_state(job)}.")


@jobs.command()
@click.argument("job_id", type=int)
@json_option
def resume(job_id: int, *, as_json: bool) -> None:
    """Resume a job's schedule; a heal at work on it is stopped."""
    job = Client().call("POST", f"/cron/jobs/{job_id}/toggle", {"isActive": True})
    print_json(job) if as_json else print(f"Job {job_id} is {_state(job)}.")


@jobs.command()
@click.argument("job_id", type=int)
@click.option("--detach", is_flag=True, help="Print the run's id and do not wait.")
@json_option
def run(job_id: int, *, detach: bool, as_json: bool) -> int:
    """Run a job now; streams its output and exits with its code."""
    client = Client()
    started = client.call("POST", f"/cron/jobs/{job_id}/run", query={"wait": 0})
    if detach:
        print_json(started) if as_json else print(started["runId"])
        return 0
    if not as_json:
        ended = follow(client, started["runId"], {"out": sys.stdout.buffer, "err": sys.stderr.buffer})
        print(f"run {ended['id']}: {ended['status']}{_why(ended)}", file=sys.stderr)
        return exit_code_of(ended)
    ended = follow(client, started["runId"], {})
    print_json(ended)
    return exit_code_of(ended)


def _why(ended: dict[str, Any]) -> str:
    reason = ended["cause"] or ended["error"]
    return f" ({reason})" if reason else ""


@jobs.command()
@click.argument("job_ids", type=int, nargs=-1)
@click.option("--name", "names", multiple=True, help="Jobs of this name; * stands for anything.")
@click.option("--tag", "tags", multiple=True, help="Jobs with this label.")
@click.option("--context", help="Why: the run reads it in CRONMEND_WAKE_CONTEXT, a prompt in its text.")
@click.option("--skip-if-running", is_flag=True, help="Leave jobs alone that are running.")
@json_option
def wake(job_ids: tuple[int, ...], *, as_json: bool, skip_if_running: bool, **asked: Any) -> int:
    """Start jobs by id, name or label, with a reason; prints job and run, and does not wait."""
    body = {"ids": [str(job_id) for job_id in job_ids], "skipIfRunning": skip_if_running}
    body |= {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items() if value}
    woken = Client().call("POST", "/cron/wake", body)
    if as_json:
        print_json(woken)
    else:
        columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
            ("JOB", lambda one: one["jobId"]),
            ("RUN", lambda one: one["runId"] or one["error"]["message"]),
        ]
        print_table(woken, columns, "No job has that name or label.")
    return 0 if woken and all(one["runId"] for one in woken) else 1


@jobs.command("rm")
@click.argument("job_id", type=int)
@json_option
def remove(job_id: int, *, as_json: bool) -> None:
    """Remove a job with its history."""
    answer = Client().call("DELETE", f"/cron/jobs/{job_id}")
    print_json(answer) if as_json else print(f"Job {job_id} is removed.")


@jobs.command()
@click.argument("job_id", type=int)
@click.argument("at")
@json_option
def why(job_id: int, at: str, *, as_json: bool) -> None:
    """Why a job did, or did not, or will run at a time ('2026-12-01 09:00', 'tomorrow 09:00')."""
    answer = Client().call("GET", f"/cron/jobs/{job_id}/why", query={"at": at})
    print_json(answer) if as_json else print(answer["sentence"])


@jobs.command("next")
@click.argument("job_id", type=int, required=False)
@click.option("--schedule", help="Any schedule, in place of a job.")
@click.option("--timezone", help="IANA name; this machine's by default.")
@click.option("--from", "start", help="Count from this time on.")
@click.option("--count", type=click.IntRange(1, 1_000), default=10, show_default=True)
@json_option
def next_runs(*, as_json: bool, **asked: Any) -> None:
    """The coming instants, as the engine will fire them."""
    if (asked["job_id"] is None) == (asked["schedule"] is None):
        raise Invalid("schedule", "schedule: give either a job's id or --schedule.")
    if asked["job_id"] is None:
        rows = _of_schedule(asked)
    else:
        query = {"from": asked["start"], "count": asked["count"]}
        rows = Client().call("GET", f"/cron/jobs/{asked['job_id']}/next", query=query)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(row["local"] + (f"   {row['note']}" if row["note"] else ""))


def _of_schedule(asked: dict[str, Any]) -> list[dict[str, Any]]:
    from scheduler.instants import parse_instant  # noqa: PLC0415 - cron arithmetic; no other command needs it
    from scheduler.schedule import Schedule  # noqa: PLC0415
    from scheduler.zones import local_timezone  # noqa: PLC0415
    from store.clock import iso, now  # noqa: PLC0415

    zone = asked["timezone"] or local_timezone()
    schedule = Schedule.parse(asked["schedule"], zone)
    start = parse_instant(asked["start"], zone, now(), field="from") if asked["start"] else now()
    coming = schedule.upcoming(start, asked["count"])
    return [{"at": iso(one.at), "local": one.local, "note": one.note} for one in coming]


@jobs.command("export")
def export_jobs() -> None:
    """Print all jobs as JSON that `jobs import` reads."""
    keep = set(_PORTABLE)
    rows = Client().call("GET", "/cron/jobs", query={"limit": 10_000})
    print_json([_portable({key: value for key, value in job.items() if key in keep}, job) for job in rows])


_PORTABLE = (
    "name",
    "command",
    "prompt",
    "cwd",
    "env",
    "timezone",
    "overlap",
    "catchUp",
    "catchUpMaxAgeSecs",
    "jitterSecs",
    "timeoutSecs",
    "retries",
    "retryBackoffSecs",
    "retryOn",
    "pool",
    "effects",
    "verifyCommand",
    "cleanupCommand",
    "successWhen",
    "expectWithinSecs",
    "healingEnabled",
    "requireApproval",
    "tags",
)


def _portable(fields_: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    when = {"schedule": job["scheduleText"] or job["schedule"]} if job["schedule"] else {"runAt": job["runAt"]}
    return {key: value for key, value in {**fields_, **when}.items() if value is not None}


@jobs.command("import")
@click.argument("file", type=click.File("r"))
@json_option
def import_jobs(file: Any, *, as_json: bool) -> None:
    """Make the jobs of a file that `jobs export` wrote; prints their ids."""
    try:
        drafts = json.load(file)
    except ValueError as error:
        raise Invalid("file", f"file: is not JSON ({error}).") from error
    if not isinstance(drafts, list):
        raise Invalid("file", "file: must hold a list of jobs.")
    client = Client()
    made = [client.call("POST", "/cron/jobs", draft) for draft in drafts]
    print_json(made) if as_json else print("\n".join(str(job["id"]) for job in made))
