"""The files of a heal: recorded before they are touched, compared afterwards, put back on demand."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from heal.states import inside, is_outside_undo, state_of
from heal.undo import Restored, UndoFolder
from store import events, heals, projects
from store.clock import now
from store.database import Database
from store.heals import Heal, HealEdit
from store.sessions import Conversation


class HealFiles:
    """Intent before effect: the row and the before-image are there before the worker may write."""

    def __init__(self, database: Database, undo: UndoFolder) -> None:
        self._database = database
        self._undo = undo

    def intend(self, heal_id: int, project: Path, paths: Sequence[str], by: str = "tool") -> None:
        """Saves the files as they are and records that the heal is about to change them.  Raises ValueError."""
        known = {edit.path for edit in self.edits(heal_id)}
        rows = [
            HealEdit(heal_id=heal_id, path=path, before=self._undo.save_before(heal_id, project, path), by=by)
            for path in dict.fromkeys(paths)
            if path not in known
        ]
        again = [path for path in paths if path in known]
        self._database.write(lambda session: _store(session, rows, heal_id, again))

    def note_changed(self, heal_id: int, project: Path, paths: Iterable[str]) -> None:
        """Records what a shell command has changed, with the before-images of the copy aside."""
        known = {edit.path for edit in self.edits(heal_id)}
        rows = []
        for path in paths:
            target = inside(project, path)
            if path not in known and target is not None:
                before = self._undo.save_from_aside(heal_id, path)
                rows.append(HealEdit(heal_id=heal_id, path=path, before=before, after=state_of(target), by="shell"))
        self._database.write(lambda session: _store(session, rows, heal_id, []))
        self.note_after(heal_id, project)

    def note_after(self, heal_id: int, project: Path) -> None:
        """Records how the files look after the worker's last step."""
        found = {}
        for edit in self.edits(heal_id):
            target = inside(project, edit.path)
            if target is not None:
                found[edit.path] = state_of(target)

        def change(session: Session) -> None:
            for edit in heals.edits(session, heal_id):
                edit.after = found.get(edit.path, edit.after)

        if found:
            self._database.write(change)

    def edits(self, heal_id: int) -> Sequence[HealEdit]:
        with self._database.read() as session:
            return heals.edits(session, heal_id)

    def digest(self, heal_id: int, project: Path) -> dict[str, str]:
        """The present state of every file that the heal set out to change."""
        states = {}
        for edit in self.edits(heal_id):
            target = inside(project, edit.path)
            if target is not None and not is_outside_undo(edit.path):
                states[edit.path] = state_of(target)
        return states

    def prepare_shell(self, heal_id: int, project: Path, forbidden: Sequence[Path]) -> bool:
        """Copies the project aside; whether commands may change it."""
        return self._undo.copy_aside(heal_id, project, forbidden)

    def restore(self, heal_id: int, project: Path) -> Restored:
        """Keeps the patch, then puts the files back."""
        edits = self.edits(heal_id)
        self._undo.write_patch(heal_id, project, edits)
        return self._undo.restore(heal_id, project, edits)

    def keep_patch(self, heal_id: int, project: Path) -> None:
        self._undo.write_patch(heal_id, project, self.edits(heal_id))

    def diff(self, heal_id: int, project: Path) -> bytes:
        return self._undo.diff(heal_id, project, self.edits(heal_id))


def folder_of(session: Session, heal: Heal) -> Path | None:
    """The folder that the heal works in; None while it has no session."""
    if heal.session_id is None:
        return None
    conversation = session.get_one(Conversation, heal.session_id)
    return Path(projects.get(session, conversation.project_id).folder_path)


def record_undo(session: Session, heal: Heal, restored: Restored, actor: str) -> None:
    """The event of a roll-back, and when it was."""
    if restored.restored:
        session.get_one(Heal, heal.id).undone_at = now()
    events.record(
        session,
        "heal.undone",
        actor,
        job_id=heal.job_id,
        run_id=heal.run_id,
        heal_id=heal.id,
        session_id=heal.session_id,
        changes={"restored": list(restored.restored), "kept": list(restored.kept)},
    )


def _store(session: Session, rows: list[HealEdit], heal_id: int, again: Sequence[str]) -> None:
    session.add_all(rows)
    for edit in heals.edits(session, heal_id):
        if edit.path in again:
            edit.after = None
    for row in rows:
        events.record(session, "heal.edit", "heal", heal_id=heal_id, reason=row.path)
