"""Projects: folders the person works in."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, Session, mapped_column

from store.clock import now
from store.errors import Conflict
from store.lookup import find
from store.types import AUTOINCREMENT, Base


class Project(Base):
    __tablename__ = "projects"
    __table_args__ = AUTOINCREMENT

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    folder_path: Mapped[str] = mapped_column(unique=True)
    is_workspace: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(default=now)


def get(session: Session, project_id: int) -> Project:
    """The project; raises NotFound."""
    return find(session, Project, "project", project_id)


def listing(session: Session) -> Sequence[Project]:
    return session.scalars(select(Project).order_by(Project.name, Project.id)).all()


def at_folder(session: Session, folder: Path) -> Project | None:
    return session.scalar(select(Project).where(Project.folder_path == str(folder)))


def add(session: Session, folder: Path, name: str | None = None, *, is_workspace: bool = False) -> Project:
    """The project of `folder`, made when there is none yet."""
    known = at_folder(session, folder)
    if known is not None:
        return known
    project = Project(name=name or folder.name or str(folder), folder_path=str(folder), is_workspace=is_workspace)
    session.add(project)
    session.flush()
    return project


def remove(session: Session, project_id: int) -> None:
    """Forgets the project.  Raises NotFound, Conflict while a job or session still names it."""
    project = get(session, project_id)
    try:
        session.delete(project)
        session.flush()
    except IntegrityError as error:
        raise Conflict(
            f"Project {project.name} has jobs or sessions; remove its jobs first.", code="project_in_use"
        ) from error
