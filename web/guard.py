"""Before each request of the pages: this machine, this origin, this session, and for changes the page's own token."""

import hmac
from urllib.parse import urlsplit

from flask import Response, g, redirect, request
from flask.typing import ResponseReturnValue

from store.errors import Forbidden, Refusal
from web.desk import desk

TOKEN = "X-CSRF-Token"  # noqa: S105 - the header's name
OPEN_PATHS = ("/static/", "/health")
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
LOOPBACK = ("127.0.0.1", "localhost")


def admit() -> ResponseReturnValue | None:
    """Raises Forbidden, Refusal `unauthorized`; a good key becomes a cookie and a clean address."""
    _check_origin()
    if request.path.startswith(OPEN_PATHS):
        return None
    key = request.args.get("k")
    if key is not None and request.method == "GET":
        return _log_in(key)
    session = request.cookies.get(_cookie(), "")
    if not desk().door.knows(session):
        raise Refusal("This page needs a login. Open Cronmend with its command: cronmend", code="unauthorized")
    g.session, g.guard = session, desk().door.guard_of(session)
    g.seen = desk().feed.newest()  # before anything is read: what changes while the page is made is told again
    if request.method not in SAFE:
        sent = request.headers.get(TOKEN) or request.form.get("csrf", "")
        if not hmac.compare_digest(sent.encode(), g.guard.encode()):
            raise Forbidden("This page is out of date; reload it and try again.")
    return None


def _check_origin() -> None:
    allowed = {f"{name}:{request.environ['SERVER_PORT']}" for name in LOOPBACK}
    if request.host not in allowed:
        raise Forbidden("This address answers only to this machine.")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise Forbidden("Another site may not use this page.")
    if origin is None and request.method not in SAFE:
        raise Forbidden("A change must say which page it comes from.")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        raise Forbidden("Another site may not use this page.")


def _cookie() -> str:
    """Browsers keep one set of cookies for all ports of an address, and there may be two instances."""
    return f"cronmend_session_{request.environ['SERVER_PORT']}"


def _log_in(key: str) -> ResponseReturnValue:
    session = desk().door.redeem(key)
    if session is None:
        raise Refusal("This login link has been used or is too old. Run cronmend again.", code="unauthorized")
    answer = redirect(request.path)
    answer.set_cookie(_cookie(), session, httponly=True, samesite="Strict")
    return answer


def harden(answer: Response) -> Response:
    """Headers of every answer."""
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    # With no-referrer WebKit sends Origin: null, also for the page's own changes.
    answer.headers["Referrer-Policy"] = "same-origin"
    if not request.path.startswith("/static/"):
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["Vary"] = "HX-Request, HX-Request-Type"
    return answer
