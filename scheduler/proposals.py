"""Proposals of a session: a new job, or a project to forget.  Nothing happens until the person approves."""

from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from scheduler import jobs as use_cases
from store import cards, events, projects
from store.cards import CREATE, REMOVAL, Card
from store.errors import Conflict, Invalid
from store.heals import Heal
from store.jobs import Job
from store.sessions import Conversation


def propose_job(session: Session, body: dict[str, Any], session_id: int) -> Card:
    """The card of a job that a session would like to have.  Raises Invalid as for a person, Conflict when it is asked.

    The draft is tried out first: a person is not asked about what could not be made.
    """
    with session.begin_nested() as trial:
        name = use_cases.create(session, dict(body)).name
        trial.rollback()
    card = Card(
        action_kind=CREATE,
        target=f"session:{session_id}:{name}",
        title=f"New job: {name}?",
        preview=str(body.get("command") or body.get("prompt") or "")[:500],
        payload={"draft": body, "sessionId": session_id},
    )
    return _post(session, card)


def propose_removal(session: Session, project_id: int, why: str, session_id: int) -> Card:
    """The card of a project that a session would like to have forgotten.  Raises NotFound, Conflict."""
    project = projects.get(session, project_id)
    card = Card(
        action_kind=REMOVAL,
        target=f"project:{project_id}",
        title=f"Forget the project {project.name}?",
        preview=why[:500],
        payload={
            "projectId": project_id,
            "name": project.name,
            "folder": project.folder_path,
            "jobs": _count(session, Job, project_id),
            "sessions": _count(session, Conversation, project_id),
            "why": why[:2_000],
            "sessionId": session_id,
        },
    )
    return _post(session, card)


def _post(session: Session, card: Card) -> Card:
    if not cards.post(session, card):
        raise Conflict("This is proposed already, and waits for the person.", code="already_proposed")
    return card


def _count(session: Session, table: type[Job] | type[Conversation], project_id: int) -> int:
    return session.scalar(select(func.count()).select_from(table).where(table.project_id == project_id)) or 0


def decide_job(session: Session, card: Card, kind: str, reason: str | None) -> Card:
    """Makes the job, or does not.  Raises Conflict `already_resolved`, `draft_invalid`."""
    decided = cards.resolve(session, card.id, kind, reason)
    if kind == "approve":
        try:
            decided.job_id = use_cases.create(session, dict(card.payload["draft"])).id
        except Invalid as problem:
            raise Conflict(f"This job can no longer be made. {problem.message}", code="draft_invalid") from problem
    return decided


def decide_removal(session: Session, card: Card, kind: str, reason: str | None) -> Card:
    """Forgets the project with its jobs and sessions, or does not; its folder stays.

    Raises Conflict `already_resolved`, `run_active`, `heal_open`, `session_busy`.
    """
    decided = cards.resolve(session, card.id, kind, reason)
    if kind == "approve":
        _forget(session, int(card.payload["projectId"]))
    return decided


def _forget(session: Session, project_id: int) -> None:
    project = projects.get(session, project_id)
    for job_id in session.scalars(select(Job.id).where(Job.project_id == project_id)).all():
        use_cases.remove(session, job_id)
    own = select(Conversation.id).where(Conversation.project_id == project_id)
    if session.scalar(own.where(Conversation.status == "running").limit(1)) is not None:
        raise Conflict("A session is at work in this project; stop it first.", code="session_busy")
    session.execute(update(Heal).where(Heal.session_id.in_(own)).values(session_id=None))
    session.execute(delete(Conversation).where(Conversation.project_id == project_id))
    events.record(session, "project.removed", "person", changes={"name": project.name, "folder": project.folder_path})
    session.delete(project)
    session.flush()
