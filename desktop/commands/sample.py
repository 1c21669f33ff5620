"""cronmend sample: a project with a script that is really broken, and a job on it."""

from pathlib import Path

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, print_json
from scheduler.sample import FOLDER, sample_folder, write_sample


@click.command()
@click.option("--folder", help=f"Where to make it; ~/{FOLDER} by default.")
@json_option
def sample(folder: str | None, *, as_json: bool) -> None:
    """Make a project with a broken script and a job on it, to see a heal happen."""
    client = Client()
    client.need_running()
    project = Path(folder).expanduser().absolute() if folder else sample_folder()
    job = client.call("POST", "/cron/jobs", write_sample(project))
    run = client.call("POST", f"/cron/jobs/{job['id']}/run", query={"wait": 0})
    if as_json:
        print_json({"job": job, "runId": run["runId"], "folder": str(project)})
        return
    print(f"Made {project} and job {job['id']}; its script is broken and has just been started.")
    print(f"Watch it go red, be healed and turn green:  cronmend runs list --job {job['id']}")
    print("See what was repaired:                      cronmend heals list")
    print(f"When you have seen enough:                  cronmend jobs rm {job['id']}")
