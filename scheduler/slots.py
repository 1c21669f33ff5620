"""What becomes of the slots of a job that are due: which one runs, and what the others say."""

import itertools
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.schedule import Schedule
from store.jobs import Job

LATE = timedelta(seconds=90)
"""A slot later than this was missed (app closed, machine asleep), not merely late."""

MOST_SLOTS = 50_000
"""Missed slots of one job that are counted: five weeks of a minutely one.  Of more, the newest are looked at."""

MOST_CAUGHT_UP = 10
LONGEST_AGE = timedelta(hours=24)


@dataclass(frozen=True)
class SlotRow:
    """One run row to write: an execution (`skip_reason` None), or a slot, or a range of slots, that does not run."""

    slot_at: datetime
    triggered_by: str = "schedule"
    skip_reason: str | None = None
    slots_covered: int = 1


@dataclass(frozen=True)
class Plan:
    """What to write for one job, valid only while the job still looks as it did."""

    job_id: int
    seen_next_run_at: datetime
    seen_updated_at: datetime
    rows: tuple[SlotRow, ...]
    next_run_at: datetime | None
    jitter_secs: int
    overlap: str


def plan(job: Job, at: datetime, up_since: datetime) -> Plan:
    """The plan for a job whose `next_run_at` is at or before `at`.  Pure; costs one step a missed slot."""
    if job.next_run_at is None:
        raise ValueError("the job has no slot")
    first = job.next_run_at
    if job.schedule is None:
        slots, following = [first], None
        period = LONGEST_AGE
    else:
        schedule = Schedule(job.schedule, job.schedule, job.timezone)
        slots = [first, *itertools.islice(schedule.between(first, at), MOST_SLOTS)]
        if len(slots) > MOST_SLOTS:
            recent = timedelta(seconds=job.catch_up_max_age_secs) if job.catch_up_max_age_secs else LONGEST_AGE
            slots += deque(schedule.between(max(slots[-1], at - recent), at), maxlen=MOST_SLOTS)
        following = schedule.next_after(at)
        period = schedule.period(at) if at - first > LATE else LATE
    rows = _rows(job, slots, at, up_since, period)
    return Plan(job.id, first, job.updated_at, tuple(rows), following, job.jitter_secs, job.overlap)


def _rows(job: Job, slots: list[datetime], at: datetime, up_since: datetime, period: timedelta) -> list[SlotRow]:
    timely = [slot for slot in slots if at - slot <= LATE]
    missed = slots[: len(slots) - len(timely)]
    if timely and job.catch_up == "once":
        rows = _range(missed, "merged")  # the newest of them all runs anyway
    else:
        rows = _caught_up(job, missed, at, up_since, period)
    if timely:
        rows += _range(timely[:-1], "merged")
        rows.append(SlotRow(timely[-1]))
    return rows


def _caught_up(job: Job, missed: list[datetime], at: datetime, up_since: datetime, period: timedelta) -> list[SlotRow]:
    if not missed:
        return []
    oldest = timedelta(seconds=job.catch_up_max_age_secs) if job.catch_up_max_age_secs else min(period, LONGEST_AGE)
    if job.catch_up == "skip":
        closed = [slot for slot in missed if slot < up_since]
        return _range(closed, "appClosed") + _range(missed[len(closed) :], "sleep")
    fresh = [slot for slot in missed if at - slot <= max(oldest, LATE)]
    fresh = fresh[-1:] if job.catch_up == "once" else fresh[-MOST_CAUGHT_UP:]
    stale = missed[: len(missed) - len(fresh)]
    reason = "merged" if fresh else "expired"
    return _range(stale, reason) + [SlotRow(slot, "catch_up") for slot in fresh]


def _range(slots: list[datetime], reason: str) -> list[SlotRow]:
    return [SlotRow(slots[0], skip_reason=reason, slots_covered=len(slots))] if slots else []
