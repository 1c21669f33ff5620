"""Closing an unfixed heal: its token is void, its run and worker are gone, its files are back, then the job goes on."""

import logging
import threading
from datetime import datetime

from sqlalchemy.orm import Session

from heal import moves
from heal.attending import Attending
from heal.files import HealFiles, folder_of, record_undo
from scheduler.runs import Runs
from store import heals, runs
from store.database import Database
from store.errors import Conflict
from store.heals import Heal
from store.runs import ACTIVE

log = logging.getLogger("CronHeal")

RUN_ENDS_SECS = 20.0


class Closings:
    """A worker of desktop.loops: finishes every heal whose closing has a reason (step 1 is moves.request_close)."""

    def __init__(self, database: Database, runs_: Runs, attending: Attending, files: HealFiles) -> None:
        self._database = database
        self._runs = runs_
        self._attending = attending
        self._files = files
        self._one_at_a_time = threading.Lock()

    def step(self) -> bool:
        with self._database.read() as session:
            waiting = [heal.id for heal in heals.all_open(session) if heal.closing_reason is not None]
        for heal_id in waiting:
            self.finish(heal_id)
        return bool(waiting)

    def next_at(self) -> datetime | None:
        return None

    def close_archived(self, heal: Heal) -> None:
        """The person put its session away before it resumed the schedule."""
        self._database.write(lambda session: moves.request_close(session, heal.id, moves.NO_RESUME, "person"))
        self.finish(heal.id)
        log.info(
            "[CronHeal] Session %s archived without resume — heal %d abandoned, job %d restored to active",
            heal.session_id,
            heal.id,
            heal.job_id,
        )

    def finish(self, heal_id: int) -> None:
        """Steps 2 and 3 of a requested closing.  Each can be repeated after a kill at any point."""
        with self._one_at_a_time:
            with self._database.read() as session:
                heal = heals.get(session, heal_id)
                folder = folder_of(session, heal)
            if heal.status not in heals.OPEN or heal.closing_reason is None:
                return
            self._end_run(heal)
            self._attending.end_worker(heal)
            restored = self._files.restore(heal_id, folder) if folder is not None and folder.is_dir() else None

            def change(session: Session) -> bool:
                if restored is not None and (restored.restored or restored.kept):
                    record_undo(session, heals.get(session, heal_id), restored, "heal")
                return moves.abandon(session, heal_id)

            if self._database.write(change, urgent=True):
                log.info("[CronHeal] heal %d is abandoned: %s", heal_id, heal.closing_reason)

    def _end_run(self, heal: Heal) -> None:
        with self._database.read() as session:
            alive = [run for run in runs.active_of(session, heal.job_id) if run.heal_id == heal.id]
        for run in alive:
            try:
                self._runs.abort(run.id, "its heal was closed", actor="heal")
            except Conflict:
                continue  # it ended by itself meanwhile
            left = self._runs.wait(run.id, RUN_ENDS_SECS)
            if left.status in ACTIVE:
                raise TimeoutError(f"run {run.id} of heal {heal.id} does not end")
