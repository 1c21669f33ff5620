"""Runs a yardstick of many schedulers with Cronmend beside them, in one call: ratios, never seconds.

.venv/bin/python bench/yardstick.py FOLDER [--n 1000] [--reps 5] [--systems floor-all,cronmend,cron]
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSTEMS = "floor-all,proto,cronmend,apscheduler-tuned,yacron,cronstable,supercronic,cron"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--systems", default=SYSTEMS)
    asked = parser.parse_args()
    if not Path(asked.folder, "burst.py").exists():
        print(f"bench: there is no yardstick (burst.py) in {asked.folder}.", file=sys.stderr)
        sys.exit(2)
    yardstick = Path(asked.folder).resolve()
    plugins = ["--plugin", str(yardstick / "proto.py"), "--plugin", str(HERE / "adapter.py"), "--systems"]
    measure = [sys.executable, str(yardstick / "burst.py"), *plugins, asked.systems, "--quiet", "20"]
    print("P1, P2, P4: all due at one instant", flush=True)
    subprocess.run([*measure, "--n", str(asked.n), "--reps", str(asked.reps)], check=True)
    print("\nP3: 100 jobs of 2 s", flush=True)
    subprocess.run([*measure, "--n", "100", "--job-seconds", "2", "--reps", str(min(3, asked.reps))], check=True)
    print("\nP10: one job, nothing else", flush=True)
    low = [sys.executable, str(yardstick / "lowload.py"), "--plugin", str(HERE / "adapter.py")]
    subprocess.run([*low, "--systems", "floor,cronmend", "--samples", "5"], check=True)


if __name__ == "__main__":
    main()
