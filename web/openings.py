"""How a person's session begins and is stopped, and a job is sketched, from a page or the command line."""

from scheduler.sketches import FillIn, Sketch, sketch
from scheduler.zones import local_timezone
from store import heals, projects, sessions
from store.clock import now
from store.errors import Invalid
from web.desk import desk

MOST_CHARS = 100_000
TITLE_CHARS = 80


def start_session(prompt: str, *, project_id: int | None = None, job_id: int | None = None) -> int:
    """The id of a new session: in a project (the workspace without one), or one that repairs a job by hand.

    Raises Invalid, Refusal `no_model_key`, NotFound, Conflict.
    """
    if len(prompt) > MOST_CHARS:
        raise Invalid("prompt", f"prompt: is longer than {MOST_CHARS:,} characters; put it into a file of the project.")
    by_hand = desk().acting().by_hand
    if job_id is not None:
        return by_hand.repair(job_id, prompt)
    return by_hand.start_session(project_id, " ".join(prompt.split())[:TITLE_CHARS], prompt)


def reader() -> FillIn | None:
    """The model that fills in forms; None without a key, or where nothing may be started."""
    engine = desk().engine
    if engine is None or desk().is_secondary or not engine.sessions.has_key:
        return None
    return engine.sessions.fill_in


def make_sketch(text: str, zone: str = "") -> Sketch:
    """The fields of a job that a sentence means; nothing is saved.  Raises Invalid "text"."""
    with desk().database.read() as session:
        known = projects.listing(session)
    return sketch(text, reader(), known, zone or local_timezone(), now())


def stop_session(session_id: int) -> None:
    """Ends what is at work in the session.  Raises NotFound, Conflict `not_running`."""
    with desk().database.read() as session:
        sessions.get(session, session_id)
        heal = heals.of_session(session, session_id)
    if heal is not None and heal.status in heals.OPEN:
        desk().acting().treatment.resume_by_person(heal.job_id)
    else:
        desk().acting().sessions.stop(session_id)
