"""The keeper's journal: what it knows of each run, kept in preallocated files so that a full disk loses nothing.

Written for the death of the keeper or the app, not of the machine: another boot voids every unfinished run anyway,
so nothing is synced.
"""

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SEGMENT_BYTES = 4 * 1024 * 1024

Key = tuple[int, int]
"""Run and attempt."""

_CARRIED = {"carried": True}


class Journal:
    """Entries by (run, attempt), each the merge of its records; `write` appends records, `forget` ends entries.

    One file is written, one spare lies ready.  When the file is full its live entries move to the spare.
    """

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._segment_bytes = segment_bytes
        self.entries: dict[Key, dict[str, Any]] = {}
        self.is_full = False
        self._spare: Path | None = None
        self._open()

    def write(self, records: Iterable[tuple[Key, dict[str, Any]]]) -> None:
        """Merges each record into its entry, then appends them.  Room failing, memory still holds them."""
        written = list(records)
        for key, record in written:
            self.entries.setdefault(key, {}).update(record)
        self._append(b"".join(_line({"key": key, **record}) for key, record in written))

    def forget(self, keys: Iterable[Key]) -> None:
        """The app has recorded these: their entries end."""
        known = [key for key in keys if self.entries.pop(key, None) is not None]
        self._append(b"".join(_line({"key": key, "forgotten": True}) for key in known))

    def close(self) -> None:
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        if self._offset + len(data) > self._size:
            # The move writes every entry as it now is, which holds the new records already.
            self._move_on()
            return
        os.pwrite(self._file, data, self._offset)
        self._offset += len(data)

    def _move_on(self) -> None:
        carried = b"".join(_line({"key": key, **entry}) for key, entry in self.entries.items()) + _line(_CARRIED)
        spare = self._room_for(len(carried) * 2)
        if spare is None:
            self.is_full = True
            return
        old = self._path
        os.close(self._file)
        self._take(spare, 0)
        os.pwrite(self._file, carried, 0)
        self._offset = len(carried)
        old.unlink(missing_ok=True)
        self._spare = None
        self._prepare_spare()

    def _room_for(self, needed: int) -> Path | None:
        if self._spare is not None and self._spare.stat().st_size >= needed:
            return self._spare
        return self._allocate(self._next_path(), max(self._segment_bytes, needed))

    def _prepare_spare(self) -> None:
        if self._spare is None:
            self._spare = self._allocate(self._next_path(), self._segment_bytes)
        self.is_full = self._spare is None

    def retry_spare(self) -> None:
        """Tries again to have a spare after the disk was full."""
        if self.is_full:
            self._prepare_spare()

    def _next_path(self) -> Path:
        return self._folder / f"{int(self._path.stem) + 1:08d}.log"

    def _allocate(self, path: Path, size: int) -> Path | None:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.posix_fallocate(file, 0, size)
            finally:
                os.close(file)
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return path

    def _take(self, path: Path, offset: int) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR)
        self._offset = offset
        self._size = path.stat().st_size

    def _open(self) -> None:
        current, rest = self._find()
        for other in rest:
            other.unlink(missing_ok=True)
        if current is None:
            current = self._allocate(self._folder / "00000001.log", self._segment_bytes)
            if current is None:
                raise OSError(f"no room for the journal in {self._folder}")
        self._take(current, self._load(current))
        self._prepare_spare()

    def _find(self) -> tuple[Path | None, list[Path]]:
        """The newest complete file, and the others: an unfinished move, or what a finished one left."""
        files = sorted(self._folder.glob("*.log"), reverse=True)
        for path in files:
            is_oldest = path == files[-1]
            if is_oldest or _CARRIED in _records(path):
                return path, [other for other in files if other != path]
        return None, []

    def _load(self, path: Path) -> int:
        for record in _records(path):
            if "key" not in record:
                continue
            key = (record["key"][0], record["key"][1])
            if record.get("forgotten"):
                self.entries.pop(key, None)
            else:
                self.entries.setdefault(key, {}).update({k: v for k, v in record.items() if k != "key"})
        return len(_whole_lines(path))


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _whole_lines(path: Path) -> bytes:
    data = path.read_bytes()
    written = data[: data.find(b"\0")] if b"\0" in data else data
    return written[: written.rfind(b"\n") + 1]


def _records(path: Path) -> list[dict[str, Any]]:
    records = []
    for line in _whole_lines(path).splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records
