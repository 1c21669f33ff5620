"""Who may call what: loopback, exact Host and Origin, a token; and for a heal session its own job alone."""

import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import g, request

from agent.sessions import MANUAL_SCOPE
from store import heals
from store.errors import Forbidden, Refusal
from store.heals import Heal
from web.desk import desk

NOT_YOURS = "session not authorized for this job"
OPEN_PATHS = ("/health",)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Caller:
    """The person (`session_id` None) or a session with the scope of its token."""

    session_id: int | None
    scope: str = ""


def admit() -> None:
    """Before each request.  Raises Refusal `unauthorized`, Forbidden."""
    _check_origin()
    if request.path in OPEN_PATHS:
        return
    g.caller = _identify()


def _check_origin() -> None:
    # A page of another site that is opened in the person's browser can reach loopback: its Host or Origin tells.
    allowed = {f"{name}:{request.environ['SERVER_PORT']}" for name in LOOPBACK}
    origin = request.headers.get("Origin")
    if request.host not in allowed or (origin is not None and urlsplit(origin).netloc != request.host):
        raise Forbidden("This address answers only to this machine's own programs.")


def _identify() -> Caller:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme == "Bearer" and token:
        if hmac.compare_digest(token.encode(), desk().control_token.encode()):
            return Caller(None)
        claim = desk().tokens.verify(token)
        if claim is not None:
            return Caller(claim.session_id, claim.scope)
    raise Refusal("A valid token is needed: Authorization: Bearer <token>.", code="unauthorized")


def caller() -> Caller:
    found: Caller = g.caller
    return found


def only_the_person() -> None:
    """Raises Forbidden for every session."""
    if caller().session_id is not None:
        raise Forbidden(NOT_YOURS)


def person_or_own_session() -> int | None:
    """None for the person, the id of a session of theirs.  Raises Forbidden for heals and jobs that are prompts."""
    found = caller()
    if found.session_id is not None and found.scope != MANUAL_SCOPE:
        raise Forbidden(NOT_YOURS)
    return found.session_id


def heal_of(job_id: int) -> Heal | None:
    """None for the person; for a session its open heal of this job.  Raises Forbidden for all others."""
    session_id = caller().session_id
    if session_id is None:
        return None
    with desk().database.read() as session:
        heal = heals.of_session(session, session_id)
    if heal is None or heal.job_id != job_id or heal.status != "spawned" or heal.closing_reason is not None:
        raise Forbidden(NOT_YOURS)
    desk().running().treatment.hear(heal)
    return heal
