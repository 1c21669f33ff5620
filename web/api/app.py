"""The CLI server: JSON over loopback HTTP for the command line and for heal sessions."""

import logging
from typing import Any

from flask import Flask, jsonify
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from store.errors import Conflict, Forbidden, Invalid, NotFound, Refusal
from store.storage_trouble import Unwritable, trouble_of
from web.api import access, heals, inbox, jobs, openapi, projects, runs, sessions, settings, status
from web.desk import EXTENSION, Desk

log = logging.getLogger("engine")

MOST_BODY_BYTES = 1024 * 1024

_STATUS = {Invalid: 422, NotFound: 404, Conflict: 409, Forbidden: 403}
_STATUS_OF_CODE = {
    "unauthorized": 401,
    "malformed": 400,
    "not_running": 503,
    "keeper_unreachable": 503,
    "unwritable": 503,
}


def create_app(desk: Desk) -> Flask:
    """The server's WSGI app."""
    app = Flask("cronmend.api", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY_BYTES
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.extensions[EXTENSION] = desk
    app.before_request(access.admit)
    for part in (status, jobs, runs, heals, inbox, sessions, projects, settings, openapi):
        app.register_blueprint(part.blueprint)
    app.register_error_handler(Refusal, _refused)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _crashed)
    return app


def _body(code: str, message: str, field: str | None = None) -> ResponseReturnValue:
    error: dict[str, Any] = {"code": code, "message": message}
    if field is not None:
        error["field"] = field
    return jsonify({"error": error})


def _refused(error: Refusal) -> ResponseReturnValue:
    number = _STATUS.get(type(error)) or _STATUS_OF_CODE.get(error.code, 409)
    return _body(error.code, error.message, error.field), number  # type: ignore[return-value]


def _http_error(error: HTTPException) -> ResponseReturnValue:
    code = (error.name or "error").lower().replace(" ", "_")
    return _body(code, error.description or ""), error.code or 500  # type: ignore[return-value]


def _crashed(error: Exception) -> ResponseReturnValue:
    log.error("[engine] a request failed", exc_info=error)
    if (trouble := trouble_of(error)) is not None:
        return _refused(Unwritable(trouble))
    return _body("internal", "Something went wrong inside Cronmend; app.log has the details."), 500  # type: ignore[return-value]
