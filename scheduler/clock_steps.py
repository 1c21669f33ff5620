"""Bringing the ledger in line with a clock that was set back, and with new rules of the time zones.

A clock that ran ahead has spent slots whose time has not come.  What becomes of them is cron's rule: within three
hours jobs at fixed times do not run twice and jobs that follow elapsed time go on; beyond that the clock was simply
wrong, and everything runs at its time (cron.c of cronie, the cases of a clock that is set back).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from scheduler import jobs as use_cases
from scheduler.cronline import REBOOT
from scheduler.firings import is_elapsed
from scheduler.schedule import Schedule
from store import cards, events
from store.cards import NOTICE, Card
from store.errors import Invalid
from store.jobs import Job
from store.payloads import shape_of
from store.runs import FAILED, Run

STEP = timedelta(seconds=5)
"""Clocks are slewed and read late; more than this is a step."""

NEAR = timedelta(hours=3)


def newest_seen(session: Session) -> datetime | None:
    """The latest time that the database knows to have been."""
    claimed = session.scalar(select(Run.claimed_at).order_by(Run.id.desc()).limit(1))
    changed = session.scalar(select(func.max(Job.updated_at)))
    return max((at for at in (claimed, changed) if at is not None), default=None)


def take_back(session: Session, at: datetime) -> int:
    """After the clock was set back to `at`: gives slots of the future back and plans every job anew.

    Returns how many slots were given back.
    """
    given_back = 0
    for job in session.scalars(select(Job).where(Job.schedule.is_not(None), Job.schedule != REBOOT)):
        ahead = session.scalars(select(Run).where(Run.job_id == job.id, Run.slot_at > at)).all()
        kept = max((run.slot_at for run in ahead if run.slot_at and _stays(run, job, at)), default=at)
        freed = [run for run in ahead if run.slot_at is not None and run.slot_at > kept]
        given_back += len(freed)
        for run in freed:
            if run.status == "skipped":
                session.delete(run)  # it tells of a time that has not come
            else:
                run.slot_at = None
        session.flush()
        if job.next_run_at is not None and job.next_run_at > kept:  # what is due already stays due
            _plan_anew(session, job, kept)
        if kept == at:
            _shorten(session, job, at)
    _bring_forward(session, at)
    if given_back:
        events.record(session, "clock.set_back", "engine", reason=f"{given_back} slots will come again")
    return given_back


def _stays(run: Run, job: Job, at: datetime) -> bool:
    is_near = run.slot_at is not None and run.slot_at - at <= NEAR
    return run.status != "skipped" and is_near and not is_elapsed(job.schedule or "")


def _plan_anew(session: Session, job: Job, after: datetime) -> bool:
    """Moves the job to its first slot after `after`; whether that is another one than before."""
    try:
        coming = Schedule(job.schedule or "", "", job.timezone).next_after(after)
    except Invalid:
        return False  # its zone is gone: the dispatcher blocks it when it is due
    if coming == job.next_run_at:
        return False
    events.record(session, "job.moved", "engine", job_id=job.id, reason=f"{job.next_run_at} became {coming}")
    job.next_run_at = coming
    return True


def _shorten(session: Session, job: Job, at: datetime) -> None:
    """Rows for several slots no longer stand for those that are to come again."""
    for run in session.scalars(
        select(Run).where(Run.job_id == job.id, Run.slot_at <= at, Run.slots_covered > 1, Run.completed_at > at)
    ):
        if run.slot_at is not None:
            later = Schedule(job.schedule or "", "", job.timezone).between(run.slot_at, at)
            run.slots_covered = min(run.slots_covered, 1 + sum(1 for _ in later))


def _bring_forward(session: Session, at: datetime) -> None:
    """Waits that were reckoned from a time that has not been: they are as long from now on."""
    backoff = select(Job.retry_backoff_secs).where(Job.id == Run.job_id).scalar_subquery()
    waiting = select(Run, backoff).where(Run.status.in_(FAILED), Run.retry_due_at > at, Run.retry_run_id.is_(None))
    for run, secs in session.execute(waiting):
        run.retry_due_at = min(run.retry_due_at, at + timedelta(seconds=secs))
    for run in session.scalars(select(Run).where(Run.status == "pending", Run.not_before > at, Run.claimed_at > at)):
        if run.not_before is not None:
            run.not_before = at + (run.not_before - run.claimed_at)


@dataclass(frozen=True)
class Rules:
    """What decides what a wall-clock time means here: release of the zone data, and the machine's own zone."""

    tzdata: str
    local_zone: str


def follow_rules(session: Session, now: Rules, before: Rules, at: datetime) -> None:
    """At start: plans jobs anew when the zones have new rules, and tells once that the machine is in another zone."""
    if now.tzdata != before.tzdata:
        _use_new_data(session, now, at)
    if now.local_zone != before.local_zone:
        _tell_of_journey(session, now.local_zone, before.local_zone)


def _use_new_data(session: Session, now: Rules, at: datetime) -> None:
    planned = session.scalars(
        select(Job).where(Job.schedule.is_not(None), Job.schedule != REBOOT, Job.next_run_at > at)
    ).all()
    moved = [job for job in planned if _plan_anew(session, job, at)]
    if moved:
        said = f"The time zone data {now.tzdata} has other rules for {_named(moved)}: the next runs are as shown now."
        card = Card(
            action_kind=NOTICE,
            target=f"zone data {now.tzdata}",
            title="Time zones have new rules",
            preview=said,
            payload={"jobs": [job.id for job in moved]},
        )
        cards.post(session, card)


def _tell_of_journey(session: Session, here: str, before: str) -> None:
    count = session.scalar(
        select(func.count()).select_from(Job).where(Job.timezone == before, Job.schedule.is_not(None))
    )
    if not count:
        return
    are = "1 job keeps" if count == 1 else f"{count} jobs keep"
    card = Card(
        action_kind=NOTICE,
        target="zone",
        title=f"This computer is in {here} now",
        preview=f"{are} the time of {before}. They run at the same moments as before.",
        payload={"zoneFrom": before, "zoneTo": here},
    )
    cards.post(session, card)


def decide_journey(session: Session, card: Card, kind: str, reason: str | None) -> Card:
    """Closes a notice; one that tells of another zone moves the jobs of the old one when it is approved."""
    decided = cards.resolve(session, card.id, kind, reason)
    if kind == "approve" and shape_of(card.action_kind, card.payload) == "journey":
        use_cases.move_zone(session, card.payload["zoneFrom"], card.payload["zoneTo"])
    return decided


def _named(moved: Sequence[Job]) -> str:
    names = ", ".join(job.name for job in moved[:3])
    return names if len(moved) <= 3 else f"{names} and {len(moved) - 3} more"
