"""A project's page: its jobs and the heals in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, make_response, request
from flask.typing import ResponseReturnValue

from scheduler.drafts import existing_folder
from store import heals, jobs, projects, sessions
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.sessions import Conversation
from web import words
from web.desk import desk
from web.shell import page, part, toast
from web.words import State

blueprint = Blueprint("projects", __name__)

RECENT_HEALS = 20


@dataclass(frozen=True)
class ProjectView:
    project: Project
    is_there: bool
    jobs: Sequence[tuple[Job, State]]
    heals: Sequence[Heal]
    sessions: Sequence[Conversation]


@blueprint.get("/projects/<int:project_id>")
def show_project(project_id: int) -> ResponseReturnValue:
    view = _view(project_id)
    return page("projects/project.html", view, view.project.name)


@blueprint.get("/projects/<int:project_id>/panel")
def project_panel(project_id: int) -> ResponseReturnValue:
    return part("projects/_panel.html", _view(project_id))


@blueprint.get("/projects/new")
def new_project() -> ResponseReturnValue:
    return part("projects/_new.html", "")


@blueprint.post("/projects")
def add_project() -> ResponseReturnValue:
    folder = existing_folder("folder", request.form.get("folder", "").strip() or "?")
    project = desk().database.write(lambda session: projects.add(session, folder))
    answer = make_response(toast(f"{project.name} is a project now."))
    answer.headers["HX-Redirect"] = f"/projects/{project.id}"
    return answer


def _view(project_id: int) -> ProjectView:
    with desk().database.read() as session:
        project = projects.get(session, project_id)
        own = [job for job in jobs.listing(session, limit=10_000) if _belongs(job, project)]
        ids = {job.id for job in own}
        past = [heal for heal in heals.listing(session, limit=500) if heal.job_id in ids][:RECENT_HEALS]
        talks = [one for one in sessions.listing(session, project_id=project_id, limit=100) if one.origin != "heal"]
    states = [(job, words.state_of_job(job, is_running=False)) for job in own]
    return ProjectView(project, Path(project.folder_path).is_dir(), states, past, talks[:RECENT_HEALS])


def _belongs(job: Job, project: Project) -> bool:
    return job.project_id == project.id or (project.is_workspace and job.project_id is None)
