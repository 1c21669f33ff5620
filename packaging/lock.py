"""Pins every dependency with hashes and without registry addresses.  Needs uv.

make lock
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILE = [
    *("uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"),
]


def main() -> None:
    for name, extra in (("app", []), ("dev", ["--group", "dev"]), ("qt", ["--group", "qt"])):
        target = ROOT / "requirements" / f"{name}.txt"
        subprocess.run([*COMPILE, *extra, "-o", str(target)], check=True, cwd=ROOT)
        lines = target.read_text().splitlines()
        strange = [line for line in lines if "://" in line or re.match(r"--", line)]
        if strange:
            sys.exit(f"{target.name} carries an address or an option: {strange[0]}")


if __name__ == "__main__":
    main()
