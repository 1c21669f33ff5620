"""What a heal changed, kept so that it can be shown and put back: before-images, the copy aside, the patch."""

import contextlib
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heal.states import ABSENT, inside, is_outside_undo, state_of
from store.heals import HealEdit

MOST_FILE_BYTES = 1024 * 1024
MOST_ASIDE_BYTES = 200 * 1024 * 1024
MOST_SHOWN_BYTES = 512 * 1024
NOT_COPIED = (".git", "node_modules")


@dataclass(frozen=True)
class Restored:
    """What putting back did: files as before again, and files that were changed since and stay."""

    restored: tuple[str, ...]
    kept: tuple[str, ...]


class UndoFolder:
    """`undo/` of the data directory: one folder a heal."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def save_before(self, heal_id: int, project: Path, relative: str) -> str:
        """Copies the file as it is now, before it is touched; its state.  Raises ValueError outside the project."""
        source = inside(project, relative)
        if source is None:
            raise ValueError(f"{relative} is not inside the project")
        return self._keep(source, self._of(heal_id) / "before" / relative)

    def save_from_aside(self, heal_id: int, relative: str) -> str:
        """The before-image of a file that a command has changed, from the copy aside; its state."""
        return self._keep(self._of(heal_id) / "aside" / relative, self._of(heal_id) / "before" / relative)

    def copy_aside(self, heal_id: int, project: Path, forbidden: Sequence[Path] = ()) -> bool:
        """Copies the project's regular files once; False when the project is too large for that."""
        target = self._of(heal_id) / "aside"
        if target.exists():
            return True
        total = 0
        half_done = target.with_name("aside.part")
        shutil.rmtree(half_done, ignore_errors=True)
        half_done.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder, names, files in os.walk(project):
            names[:] = [name for name in names if not _is_left_out(Path(folder, name), forbidden)]
            copy = half_done / Path(folder).relative_to(project)
            copy.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in files:
                total += self._copy_one(Path(folder, name), copy / name)
                if total > MOST_ASIDE_BYTES:
                    shutil.rmtree(half_done, ignore_errors=True)
                    return False
        half_done.rename(target)
        return True

    def restore(self, heal_id: int, project: Path, edits: Iterable[HealEdit]) -> Restored:
        """Puts back every file that still is as the heal left it.  Repeating it changes nothing.

        A file whose `after` is not known was being changed when the app died: it is put back, and what was there
        is kept beside the before-images.
        """
        restored: list[str] = []
        kept: list[str] = []
        # Deepest first, so that a folder that the heal made is empty when its turn comes.
        for edit in sorted(edits, key=lambda edit: edit.path, reverse=True):
            target = inside(project, edit.path)
            if target is None or edit.before is None or is_outside_undo(edit.path):
                continue
            present = state_of(target)
            if present == edit.before:
                continue
            if edit.after is not None and present != edit.after:
                kept.append(edit.path)
                continue
            self._keep(target, self._of(heal_id) / "replaced" / edit.path)
            done = _put(self._of(heal_id) / "before" / edit.path, target, edit.before)
            (restored if done else kept).append(edit.path)
        return Restored(tuple(sorted(restored)), tuple(sorted(kept)))

    def write_patch(self, heal_id: int, project: Path, edits: Sequence[HealEdit]) -> None:
        """Keeps the diff as it is now: called before the files may change again."""
        path = self._of(heal_id) / "patch.diff"
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(self._compare(heal_id, project, edits))

    def diff(self, heal_id: int, project: Path, edits: Sequence[HealEdit]) -> bytes:
        """The heal's changes as a unified diff: the kept one, or live while it works."""
        path = self._of(heal_id) / "patch.diff"
        return path.read_bytes() if path.exists() else self._compare(heal_id, project, edits)

    def _of(self, heal_id: int) -> Path:
        return self._root / f"heal-{heal_id}"

    def _keep(self, source: Path, copy: Path) -> str:
        state = state_of(source)
        if state.startswith("file:"):
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(source, copy)
        return state

    def _copy_one(self, source: Path, copy: Path) -> int:
        facts = source.lstat()
        if source.is_symlink() or not source.is_file():
            return 0
        if facts.st_size > MOST_FILE_BYTES:
            return MOST_ASIDE_BYTES + 1
        shutil.copy2(source, copy)
        return facts.st_size

    def _compare(self, heal_id: int, project: Path, edits: Sequence[HealEdit]) -> bytes:
        before = self._of(heal_id) / "before"
        text = "".join(_diff_one(edit, before / edit.path, project / edit.path) for edit in edits)
        return text.encode(errors="surrogateescape")


def _is_left_out(folder: Path, forbidden: Sequence[Path]) -> bool:
    return folder.name in NOT_COPIED or (folder / "pyvenv.cfg").exists() or folder in forbidden


def _put(saved: Path, target: Path, state: str) -> bool:
    """Makes `target` what `state` says, in one step that leaves no half file."""
    if state == ABSENT:
        with contextlib.suppress(OSError):
            target.rmdir() if target.is_dir() and not target.is_symlink() else target.unlink()
        return not target.exists()
    if state == "dir":
        target.mkdir(parents=True, exist_ok=True)
        return True
    if not state.startswith("file:") or not saved.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    file, name = tempfile.mkstemp(dir=target.parent, prefix=".cronmend-")
    os.close(file)
    shutil.copy2(saved, name)
    Path(name).chmod(int(state.split(":")[1], 8))
    Path(name).replace(target)
    return True


def _diff_one(edit: HealEdit, saved: Path, present: Path) -> str:
    before, after = edit.before or ABSENT, state_of(present)
    if before == after:
        return ""
    head = f"diff --git a/{edit.path} b/{edit.path}\n"
    if after == "dir" or before == "dir":
        return head + ("new folder\n" if after == "dir" else "deleted folder\n")
    modes = _mode_lines(before, after)
    if before.rpartition(":")[2] == after.rpartition(":")[2]:
        return head + modes
    old, new = _lines(saved, before), _lines(present, after)
    if old is None or new is None:
        return head + modes + f"Binary files a/{edit.path} and b/{edit.path} differ\n"
    names = (
        "/dev/null" if before == ABSENT else f"a/{edit.path}",
        "/dev/null" if after == ABSENT else f"b/{edit.path}",
    )
    body = difflib.unified_diff(old, new, *names)
    return (
        head
        + modes
        + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body)
    )


def _mode_lines(before: str, after: str) -> str:
    if ABSENT in (before, after):
        mode = (after if before == ABSENT else before).split(":")[1:2]
        word = "new file" if before == ABSENT else "deleted file"
        return f"{word} mode 100{mode[0] if mode else '644'}\n"
    old, new = before.split(":")[1:2], after.split(":")[1:2]
    return f"old mode 100{old[0]}\nnew mode 100{new[0]}\n" if old and new and old != new else ""


def _lines(path: Path, state: str) -> list[str] | None:
    """The file's lines, None when it is not text."""
    if state == ABSENT:
        return []
    if not state.startswith("file:") or not path.exists() or path.stat().st_size > MOST_SHOWN_BYTES:
        return None
    data = path.read_bytes()
    if b"\0" in data:
        return None
    # Only \n ends a line: \r is often what a heal is about, and must stay visible.
    text = data.decode(errors="surrogateescape")
    return [line for line in re.split(r"(?<=\n)", text) if line]
