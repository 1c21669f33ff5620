"""Health, counters and the audit trail over HTTP."""

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from store import events, heals, jobs, runs
from store.clock import iso
from web.api import access, asked, shapes
from web.desk import desk

blueprint = Blueprint("status", __name__)


@blueprint.get("/health")
def health() -> ResponseReturnValue:
    """Whether the app answers; needs no token and tells nothing else."""
    return jsonify({"status": "ok"})


@blueprint.get("/cron/status")
def show_status() -> ResponseReturnValue:
    """Counters of jobs, runs and heals, and the state of the scheduler."""
    access.person_or_own_session()
    with desk().database.read() as session:
        counters = _counters(session)
    return jsonify({"version": desk().version, "schedulerState": "stopped", **counters, **desk().facts()})


def _counters(session: Session) -> shapes.Shape:
    total, active = jobs.counts(session)
    by_status, by_trigger = runs.tally(session, "status"), runs.tally(session, "triggered_by")
    upcoming = jobs.earliest_slot(session)
    newest = runs.listing(session, limit=1)
    return {
        "lastTickAt": None,
        "monitorLastCycleAt": None,
        "jobCount": total,
        "activeJobs": active,
        "activeRunCount": sum(by_status.get(status, 0) for status in runs.LIVE),
        "queuedRunCount": by_status.get("pending", 0),
        "failedRunCount": sum(by_status.get(status, 0) for status in runs.FAILED),
        "retryRunCount": by_trigger.get("retry", 0),
        "suppressedSlotCount": by_status.get("skipped", 0),
        "staleRecoveryCount": runs.system_marked(session),
        "openHealCount": len(heals.all_open(session)),
        "runStatusCounts": by_status,
        "triggerCounts": by_trigger,
        "nextRunAt": iso(upcoming) if upcoming else None,
        "lastRunAt": iso(newest[0].claimed_at) if newest else None,
    }


@blueprint.post("/app/activate")
def activate() -> ResponseReturnValue:
    """Raises the window; where there is none, a login address of the pages."""
    access.only_the_person()
    raised = desk().running().activate()
    return jsonify({"raised": raised, "url": None if raised else desk().login_url()})


@blueprint.get("/cron/audit")
def show_audit() -> ResponseReturnValue:
    """Events, newest first; of one job, of a kind."""
    access.only_the_person()
    with desk().database.read() as session:
        rows = events.listing(session, kind=request.args.get("kind"), job_id=asked.number("job"), limit=asked.limit())
    return jsonify([shapes.event(row) for row in rows])
