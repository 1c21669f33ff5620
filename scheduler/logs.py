"""The logs of runs: one raw file a stream, written by the process itself."""

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from store import runs
from store.database import Database

TAIL_BYTES = 262_144

BLOCK = 4_096
LEAST_FREED = 1024 * 1024
LEAST_ROOM = 64 * 1024
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

Stream = Literal["out", "err"]
STREAMS: tuple[Stream, Stream] = ("out", "err")


@dataclass(frozen=True)
class Part:
    """A piece of a stream, and the offset at which the rest begins."""

    data: bytes
    next: int


@dataclass(frozen=True)
class RunLogs:
    """Where the two streams of a run are.  The middle of a long one may have been let go; a small file says which."""

    out: Path
    err: Path

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in (self.out, self.err) if path.exists())

    def path(self, stream: Stream) -> Path:
        return self.out if stream == "out" else self.err

    def length(self, stream: Stream) -> int:
        """How many bytes a stream has had so far."""
        path = self.path(stream)
        return path.stat().st_size if path.exists() else 0

    def tail(self, stream: Stream, most: int = TAIL_BYTES) -> bytes:
        """The last `most` bytes of a stream, less where those were let go; empty when there is none."""
        begins = max(0, self.length(stream) - most)
        gap = self.gap(stream)
        return self._read(stream, max(begins, gap[1] if gap else 0), most)

    def read(self, stream: Stream, offset: int, most: int) -> Part:
        """At most `most` bytes from `offset` on; nothing past the end.  What was let go is one line that says so."""
        gap = self.gap(stream)
        if gap is not None and gap[0] <= offset < gap[1]:
            return Part(f"\n[… {gap[1] - gap[0]:,} bytes were left out here …]\n".encode(), gap[1])
        if gap is not None and offset < gap[0]:
            most = min(most, gap[0] - offset)
        data = self._read(stream, offset, most)
        return Part(data, offset + len(data))

    def gap(self, stream: Stream) -> tuple[int, int] | None:
        """The bytes of a stream that were let go, from and to."""
        try:
            begin, end = map(int, self._gap_file(stream).read_text().split())
        except (OSError, ValueError):
            return None
        return begin, end

    def cap(self, stream: Stream, most: int) -> bool:
        """Lets the middle of a stream go when it is longer than `most`: its head and its tail stay, of half each.

        The file keeps its length and its offsets, and whoever writes it goes on (Linux; True when space was freed).
        """
        size, half = self.length(stream), most // 2 // BLOCK * BLOCK
        if not most or size <= most:
            return False
        begin, end = half, (size - half) // BLOCK * BLOCK
        known = self.gap(stream)
        if known is not None and end - known[1] < LEAST_FREED:
            return False
        # Told before it is done: a reader never takes the hole for what the command printed.
        new = self._gap_file(stream).with_suffix(".new")
        new.write_text(f"{begin} {end}")
        new.replace(self._gap_file(stream))
        if _punch(self.path(stream), begin, end - begin):
            return True
        self._gap_file(stream).unlink(missing_ok=True)
        return False

    def remove(self) -> None:
        """Both streams, and what is known of them."""
        for stream in STREAMS:
            self.path(stream).unlink(missing_ok=True)
            self._gap_file(stream).unlink(missing_ok=True)

    def _gap_file(self, stream: Stream) -> Path:
        path = self.path(stream)
        return path.with_name(f"{path.name}.gap")

    def _read(self, stream: Stream, offset: int, most: int) -> bytes:
        try:
            with self.path(stream).open("rb") as file:
                file.seek(offset)
                return file.read(most)
        except FileNotFoundError:
            return b""


def _punch(path: Path, offset: int, length: int) -> bool:
    """Gives the blocks of a part of the file back to the disk (fallocate(2))."""
    if sys.platform != "linux":
        return False
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    with path.open("r+b") as file:
        done: int = fallocate(file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(length))
    return done == 0


class LogFolder:
    """`logs/` of the data directory: logs/<job>/<run>.out and .err, readable by the person alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[int] = set()
        """Jobs whose folder is known to be there: looking takes longer than all else that a start needs."""

        self._cut: set[int] = set()

    def make(self, job_id: int, run_id: int) -> RunLogs:
        """Where a run that is about to start shall write.  Raises OSError."""
        if job_id not in self._made:
            (self._root / str(job_id)).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._made.add(job_id)
        return self.of(job_id, run_id)

    def look_again(self) -> None:
        """Something was in the way: folders are looked for before the next start."""
        self._made.clear()

    def of(self, job_id: int, run_id: int) -> RunLogs:
        folder = self._root / str(job_id)
        return RunLogs(folder / f"{run_id}.out", folder / f"{run_id}.err")

    def note_room(self, run_ids: Iterable[int]) -> None:
        """Remembers that there was no room for what these runs print, if that is so now."""
        facts = os.statvfs(self._root if self._root.exists() else self._root.parent)
        if facts.f_bavail * facts.f_frsize < LEAST_ROOM:
            self._cut.update(run_ids)

    def is_cut(self, run_id: int) -> bool:
        """Whether the disk was full while the run was at work: its log may end too early."""
        self.note_room([run_id])
        return run_id in self._cut

    def jobs(self) -> set[int]:
        """The jobs that have logs."""
        return {int(folder.name) for folder in self._root.glob("[0-9]*") if folder.name.isdigit()}

    def remove_job(self, job_id: int) -> None:
        """All logs of a job."""
        self._made.discard(job_id)
        shutil.rmtree(self._root / str(job_id), ignore_errors=True)


class LogCap:
    """A worker of desktop.loops: looks now and then at what runs, and lets the middle of long logs go."""

    def __init__(self, database: Database, logs: LogFolder, most: Callable[[], int]) -> None:
        self._database = database
        self._logs = logs
        self._most = most

    def next_at(self) -> datetime | None:
        return None  # the loop's own sweep is often enough

    def step(self) -> bool:
        with self._database.read() as session:
            alive = [run for run in runs.all_active(session) if run.status in runs.LIVE]
        most = self._most() if alive else 0
        if alive:
            self._logs.note_room(run.id for run in alive)
        for run in alive:
            for stream in STREAMS:
                self._logs.of(run.job_id, run.id).cap(stream, most)
        return False
