"""At start: heals that a stop of the app has cut short are closed, pauses without a heal are lifted."""

import logging

from sqlalchemy import select
from sqlalchemy.orm import Session

from heal import moves
from heal.medic import is_aged
from store import events, heals
from store.database import Database
from store.jobs import Job

log = logging.getLogger("CronHeal")


def reconcile(database: Database) -> None:
    """Requests the closings that Closings then finishes; pending heals that are young are spawned by the medic."""
    closed, lifted = database.write(_reconcile, urgent=True)
    for heal_id, reason in closed:
        log.info("[CronHeal] heal %d is closed at start: %s", heal_id, reason)
    for job_id in lifted:
        log.warning("[CronHeal] job %d was paused by a heal that is over; it is active again", job_id)


def _reconcile(session: Session) -> tuple[list[tuple[int, str]], list[int]]:
    closed = []
    for heal in heals.all_open(session):
        reason = _reason(heal)
        if reason is not None and moves.request_close(session, heal.id, reason, "app"):
            closed.append((heal.id, reason))
    return closed, lift_strays(session)


def _reason(heal: heals.Heal) -> str | None:
    if heal.status == "spawned":
        return moves.APP_RESTART
    return moves.TTL_EXPIRED if is_aged(heal) else None


def lift_strays(session: Session) -> list[int]:
    """Paused by a heal means a live heal; any other such pause is lifted and told."""
    live = {heal.id for heal in heals.all_open(session)}
    lifted = []
    for job in session.scalars(select(Job).where(Job.paused_heal_id.is_not(None))):
        if job.paused_heal_id not in live:
            events.record(session, "job.resumed", "app", job_id=job.id, reason="its heal is over")
            job.paused_heal_id = None
            lifted.append(job.id)
    return lifted
