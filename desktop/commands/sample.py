"""cronmend sample: a project with a script that is really broken, and a job on it."""

from pathlib import Path

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, print_json
from store.errors import Refusal

FOLDER = "cronmend-sample"
SCRIPT = "count_words.sh"

# Saved by an editor that ends its lines with CR and LF: the kernel then looks for an interpreter named "/bin/sh\r".
BROKEN = """\
#!/bin/sh
# Counts the words of every text in this folder.
for text in *.txt; do
    printf '%s: ' "$text"
    wc -w < "$text"
done
""".replace("\n", "\r\n")

TEXT = "The quick brown fox jumps over the lazy dog.\n"


@click.command()
@click.option("--folder", help=f"Where to make it; ~/{FOLDER} by default.")
@json_option
def sample(folder: str | None, *, as_json: bool) -> None:
    """Make a project with a broken script and a job on it, to see a heal happen."""
    client = Client()
    project = Path(folder).expanduser().absolute() if folder else Path.home() / FOLDER
    client.call("GET", "/cron/status")
    _write_files(project)
    body = {
        "name": "sample: count words",
        "command": f"./{SCRIPT}",
        "project": str(project),
        "schedule": "every minute",
        "effects": "none",
    }
    job = client.call("POST", "/cron/jobs", body)
    run = client.call("POST", f"/cron/jobs/{job['id']}/run", query={"wait": 0})
    if as_json:
        print_json({"job": job, "runId": run["runId"], "folder": str(project)})
        return
    print(f"Made {project} and job {job['id']}; its script is broken and has just been started.")
    print(f"Watch it go red, be healed and turn green:  cronmend runs list --job {job['id']}")
    print("See what was repaired:                      cronmend heals list")
    print(f"When you have seen enough:                  cronmend jobs rm {job['id']}")


def _write_files(project: Path) -> None:
    script = project / SCRIPT
    if script.exists():
        raise Refusal(f"folder: {project} has a sample already; name another with --folder.", code="exists")
    project.mkdir(parents=True, exist_ok=True)
    (project / "fox.txt").write_text(TEXT)
    script.write_bytes(BROKEN.encode())
    script.chmod(0o755)
