"""The list of jobs as the pages show it: filtered, in order and cut by the database, whatever its length."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Integer, case, func, or_, select, text
from sqlalchemy.orm import Session

from store import jobs
from store.heals import OPEN, Heal
from store.jobs import Job
from store.projects import Project
from store.runs import FAILED, IS_ACTIVE_SQL, LIVE, Run

FAILING: ColumnElement[bool] = Job.last_run_status.in_(FAILED) & Job.paused_heal_id.is_(None)
HEALING: ColumnElement[bool] = Job.id.in_(select(Heal.job_id).where(Heal.status.in_(OPEN)))
_SHOWS: dict[str, ColumnElement[bool]] = {
    "failing": FAILING,
    "healing": HEALING,
    "paused": Job.person_paused_at.is_not(None),
    "running": Job.id.in_(select(Run.job_id).where(text(IS_ACTIVE_SQL), Run.status.in_(LIVE))),
}
SHOWS = ("all", *_SHOWS)

_LAST_RUNS = text(
    "SELECT runs.job_id, runs.id, runs.status FROM json_each(:jobs) AS wanted"
    " JOIN cron_runs AS runs ON runs.id IN (SELECT id FROM cron_runs"
    " WHERE job_id = wanted.value AND status != 'skipped' ORDER BY id DESC LIMIT :count) ORDER BY runs.id DESC"
)


@dataclass(frozen=True)
class Found:
    """A part of the list; `counts` by what may be shown, `total`: of all jobs there are."""

    jobs: Sequence[Job]
    counts: dict[str, int]
    total: int


def search(session: Session, show: str, sought: str, limit: int) -> Found:
    """The first `limit` jobs that match: what failed first, then what is healed, then by name."""
    matching = select(Job.id).outerjoin(Project, Project.id == Job.project_id)
    if sought:
        said = Job.name + " " + func.coalesce(Job.command, Job.prompt, "") + " " + func.coalesce(Project.name, "")
        # SQLite folds the case of plain letters alone; what is typed in the right case is found in any alphabet.
        matching = matching.where(
            or_(func.lower(said).contains(sought.lower(), autoescape=True), said.contains(sought, autoescape=True))
        )
    counted = [func.coalesce(func.sum(case((one, 1), else_=0)), 0).cast(Integer) for one in _SHOWS.values()]
    shown = select(func.count(), *counted).select_from(Job)
    query = select(Job)
    if sought:
        shown, query = shown.where(Job.id.in_(matching)), query.where(Job.id.in_(matching))
    if show in _SHOWS:
        query = query.where(_SHOWS[show])
    rank = case((or_(Job.blocked_reason.is_not(None), FAILING), 0), (HEALING, 1), else_=2)
    found = session.scalars(query.order_by(rank, func.lower(Job.name), Job.id).limit(limit)).all()
    counts = dict(zip(SHOWS, session.execute(shown).one(), strict=True))
    total = counts["all"] if not sought else session.scalar(select(func.count()).select_from(Job)) or 0
    return Found(found, counts, total)


def last_runs(session: Session, job_ids: Sequence[int], count: int) -> dict[int, list[tuple[int, str]]]:
    """Id and status of the newest executions of each job, newest first."""
    found: dict[int, list[tuple[int, str]]] = {}
    wanted = {"jobs": f"[{','.join(map(str, job_ids))}]", "count": count}
    for job_id, run_id, status in session.execute(_LAST_RUNS, wanted):
        found.setdefault(job_id, []).append((run_id, status))
    return found


@dataclass(frozen=True)
class Summary:
    """What the sidebar says of all jobs."""

    failing: int
    next_run_of: Job | None


def summarize(session: Session) -> Summary:
    failing = session.scalar(select(func.count()).select_from(Job).where(FAILING)) or 0
    return Summary(failing, jobs.next_to_run(session))
