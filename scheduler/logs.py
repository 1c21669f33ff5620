"""The logs of runs: one raw file a stream, written by the process itself."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TAIL_BYTES = 262_144

Stream = Literal["out", "err"]


@dataclass(frozen=True)
class RunLogs:
    """Where the two streams of a run are."""

    out: Path
    err: Path

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in (self.out, self.err) if path.exists())

    def tail(self, stream: Stream, most: int = TAIL_BYTES) -> bytes:
        """The last `most` bytes of a stream; empty when there is none."""
        return self._read(stream, -most, most)

    def length(self, stream: Stream) -> int:
        """How many bytes a stream has so far."""
        path = self.out if stream == "out" else self.err
        return path.stat().st_size if path.exists() else 0

    def slice(self, stream: Stream, offset: int, most: int) -> bytes:
        """At most `most` bytes of a stream from `offset` on; empty past its end."""
        return self._read(stream, offset, most)

    def _read(self, stream: Stream, offset: int, most: int) -> bytes:
        path = self.out if stream == "out" else self.err
        try:
            with path.open("rb") as file:
                file.seek(offset if offset >= 0 else max(0, path.stat().st_size + offset))
                return file.read(most)
        except FileNotFoundError:
            return b""


class LogFolder:
    """`logs/` of the data directory: logs/<job>/<run>.out and .err, readable by the person alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[int] = set()

    def of(self, job_id: int, run_id: int) -> RunLogs:
        folder = self._root / str(job_id)
        if job_id not in self._made:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._made.add(job_id)
        return RunLogs(folder / f"{run_id}.out", folder / f"{run_id}.err")

    def remove(self, job_id: int, run_id: int) -> None:
        """Both streams of a run."""
        for stream in ("out", "err"):
            (self._root / str(job_id) / f"{run_id}.{stream}").unlink(missing_ok=True)

    def jobs(self) -> set[int]:
        """The jobs that have logs."""
        return {int(folder.name) for folder in self._root.glob("[0-9]*") if folder.name.isdigit()}

    def remove_job(self, job_id: int) -> None:
        """All logs of a job."""
        self._made.discard(job_id)
        shutil.rmtree(self._root / str(job_id), ignore_errors=True)
