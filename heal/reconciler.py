"""At start: heals that a stop of the app has cut short are closed, pauses without a heal are lifted."""

import logging
import time
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from heal import moves
from heal.medic import is_aged
from store import cards, events, heals
from store.clock import now
from store.database import Database
from store.jobs import Job
from store.payloads import shape_of

log = logging.getLogger("CronHeal")

LOOK_EVERY_SECS = 60.0


def reconcile(database: Database) -> None:
    """Requests the closings that Closings then finishes; pending heals that are young are spawned by the medic."""
    closed, lifted = database.write(_reconcile, urgent=True)
    reasons = [reason for _, reason in closed]
    log.info(
        "[CronHeal] Reconciler abandoned %d spawned + %d aged-out pending heal_attempts on startup",
        *(reasons.count(moves.APP_RESTART), reasons.count(moves.TTL_EXPIRED)),
    )
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
    _drain_legacy(session)
    return closed, lift_strays(session)


def _drain_legacy(session: Session) -> None:
    """Requests of the time when a heal waited for approval: what is pending is spawned by the medic, so they close.

    Marked as dispatched in the same write, so that no restart starts them twice; escalations are left alone.
    """
    for card in cards.listing(session, limit=1_000):
        if shape_of(card.action_kind, card.payload) == "legacy":
            card.dispatched_at = now()
            cards.resolve(session, card.id, "approve", "started by itself; no approval is needed any more")


def _reason(heal: heals.Heal) -> str | None:
    if heal.status == "spawned":
        return moves.APP_RESTART
    return moves.TTL_EXPIRED if is_aged(heal) else None


def find_strays(session: Session) -> list[Job]:
    """Paused by a heal means a live heal; these jobs are paused by one that is over."""
    live = {heal.id for heal in heals.all_open(session)}
    paused = session.scalars(select(Job).where(Job.paused_heal_id.is_not(None)))
    return [job for job in paused if job.paused_heal_id not in live]


def lift_strays(session: Session) -> list[int]:
    """Lifts and tells such pauses; the jobs they were on."""
    lifted = []
    for job in find_strays(session):
        events.record(session, "job.resumed", "app", job_id=job.id, reason="its heal is over")
        job.paused_heal_id = None
        lifted.append(job.id)
    return lifted


class StrayWatch:
    """A worker of desktop.loops: looks every minute whether a job stayed paused by a heal that is over."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looked = 0.0

    def step(self) -> bool:
        if time.monotonic() - self._looked < LOOK_EVERY_SECS:
            return False
        self._looked = time.monotonic()
        with self._database.read() as session:
            strays = find_strays(session)
        if strays:
            for job_id in self._database.write(lift_strays):
                log.warning("[CronHeal] job %d was paused by a heal that is over; it is active again", job_id)
        return bool(strays)

    def next_at(self) -> datetime | None:
        return now() + timedelta(seconds=LOOK_EVERY_SECS)
