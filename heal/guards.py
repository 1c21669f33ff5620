"""The six guards: who, if anybody, is kept from healing this failure.  The first that hits is the decision."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from store import heals, runs
from store.jobs import Job
from store.runs import Run

CAP = 3
"""Failed heals in a row after which a person is asked instead."""

ALERTING = frozenset(
    {"healer_off", "guard:healing_off", "guard:session_job", "guard:system_marked", "guard:one_off", "guard:fleet_cap"}
)
"""Decisions after which the alert card is considered: nobody heals, so somebody is told."""


@dataclass(frozen=True)
class Rules:
    """What the settings and the instance say about healing."""

    healer: str
    most_automatic: int
    is_secondary: bool = False


@dataclass(frozen=True)
class _Case:
    session: Session
    run: Run
    job: Job
    rules: Rules


_BEFORE: tuple[tuple[str, Callable[[_Case], bool]], ...] = (
    ("secondary", lambda case: case.rules.is_secondary),
    ("heal_run", lambda case: case.run.triggered_by == "heal"),
    ("superseded", lambda case: runs.ended_later(case.session, case.run)),
    ("healer_off", lambda case: case.rules.healer == "off"),
)
_GUARDS: tuple[tuple[str, Callable[[_Case], bool]], ...] = (
    ("guard:healing_off", lambda case: not case.job.healing_enabled),
    ("guard:session_job", lambda case: case.job.target_type == "session"),
    (
        "guard:system_marked",
        lambda case: case.run.system_marked_failure and case.run.failure_evidence_json is None,
    ),
    ("guard:one_off", lambda case: case.job.run_mode == "one_off"),
    ("guard:cap", lambda case: case.job.consecutive_heal_failures >= CAP),
    ("guard:open_heal", lambda case: heals.open_for(case.session, case.job.id) is not None),
    ("guard:fleet_cap", lambda case: heals.open_automatic(case.session) >= case.rules.most_automatic),
)


def decide(session: Session, run: Run, job: Job, rules: Rules) -> str:
    """The heal decision of a final failure: `healed`, or why not."""
    case = _Case(session, run, job, rules)
    return next((name for name, hits in (*_BEFORE, *_GUARDS) if hits(case)), "healed")
