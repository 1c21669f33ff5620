"""The sample: a project with a script that is really broken, and a job on it."""

import itertools
from pathlib import Path
from typing import Any

from store.errors import Refusal

FOLDER = "cronmend-sample"
SCRIPT = "count_words.sh"

# Saved by an editor that ends its lines with CR and LF: the kernel then looks for an interpreter named "/bin/sh\r".
_BROKEN = """\
#!/bin/sh
# Counts the words of every text in this folder.
for text in *.txt; do
    printf '%s: ' "$text"
    wc -w < "$text"
done
""".replace("\n", "\r\n")

_TEXT = "The quick brown fox jumps over the lazy dog.\n"


def sample_folder() -> Path:
    """A folder of the person's home that holds no sample yet."""
    names = itertools.chain([FOLDER], (f"{FOLDER}-{number}" for number in itertools.count(2)))
    return next(folder for name in names if not (folder := Path.home() / name).exists())


def write_sample(project: Path) -> dict[str, Any]:
    """Makes the project's files; the fields of its job.  Raises Refusal when there is a sample already."""
    script = project / SCRIPT
    if script.exists():
        raise Refusal(f"folder: {project} has a sample already; name another with --folder.", code="exists")
    project.mkdir(parents=True, exist_ok=True)
    (project / "fox.txt").write_text(_TEXT)
    script.write_bytes(_BROKEN.encode())
    script.chmod(0o755)
    return {
        "name": "sample: count words",
        "command": f"./{SCRIPT}",
        "project": str(project),
        "schedule": "every minute",
        "effects": "none",
    }
