"""The pages: Flask over the same parts as the CLI server, on a port of their own."""

import logging
from pathlib import Path

from flask import Flask, g, jsonify, redirect, render_template, request
from flask.typing import ResponseReturnValue
from jinja2 import StrictUndefined
from werkzeug.exceptions import HTTPException

from store import settings as stored_settings
from store.errors import Conflict, Forbidden, Invalid, NotFound, Refusal
from store.storage_trouble import Unwritable, trouble_of
from web import app_log, audit, guard, heals, inbox, jobs, projects, runs, sessions, settings, shell, streams, words
from web.desk import EXTENSION, Desk, desk

log = logging.getLogger("engine")

ROOT = Path(__file__).resolve().parent.parent
MOST_BODY_BYTES = 1024 * 1024
_STATUS = {Invalid: 422, NotFound: 404, Conflict: 409, Forbidden: 403, Unwritable: 503}


def create_pages(desk_: Desk) -> Flask:
    """The pages' WSGI app."""
    app = Flask("cronmend", root_path=str(ROOT), static_folder="static", template_folder="templates")
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY_BYTES
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals["words"] = words
    app.extensions[EXTENSION] = desk_
    app.before_request(guard.admit)
    app.after_request(guard.harden)
    for module in (jobs, runs, heals, inbox, sessions, projects, settings, app_log, audit, streams):
        app.register_blueprint(module.blueprint)
    app.add_url_rule("/", "home", lambda: redirect("/jobs"))
    app.add_url_rule("/health", "health", lambda: jsonify({"status": "ok"}))
    app.add_url_rule("/shell", "shell", _shell)
    app.add_url_rule("/alive", "alive", _alive, methods=["POST"])
    app.add_url_rule("/close", "close", _close, methods=["POST"])
    app.register_error_handler(Refusal, _refused)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _crashed)
    return app


def _shell() -> ResponseReturnValue:
    """The sidebar, fetched again when something in it changed."""
    return render_template("_sidebar.html", shell=shell.build_shell())


def _alive() -> ResponseReturnValue:
    """The page has painted: a window that never says so is dead."""
    desk().running().painted.set()
    return "", 204


def _close() -> ResponseReturnValue:
    """What the person said when the window was closed: keep jobs running, or quit; and whether always."""
    choice = request.form.get("choice", "keep")
    if request.form.get("always"):
        desk().database.write(lambda session: stored_settings.store(session, "CRONMEND_CLOSE", choice))
    engine = desk().running()
    (engine.quit if choice == "quit" else engine.hide)()
    return "", 204


def _refused(error: Refusal) -> ResponseReturnValue:
    status = 401 if error.code == "unauthorized" else _STATUS.get(type(error), 409)
    return _say(error.message, status)


def _http_error(error: HTTPException) -> ResponseReturnValue:
    if error.code in (301, 302, 303, 307, 308):
        return error
    return _say("There is no such page." if error.code == 404 else error.description or "", error.code or 500)


def _crashed(error: Exception) -> ResponseReturnValue:
    log.error("[engine] a page failed", exc_info=error)
    if (trouble := trouble_of(error)) is not None:
        return _refused(Unwritable(trouble))
    return _say("Something went wrong inside Cronmend. The log in Settings has the details.", 500)


def _say(message: str, status: int) -> ResponseReturnValue:
    """A toast where only a part was asked for (what is on the page stays), else a page that keeps the sidebar."""
    if request.headers.get("HX-Request"):
        return shell.toast(message, "bad"), status
    if not hasattr(g, "guard"):
        return render_template("closed.html", message=message), status
    return shell.page("error.html", message, "Not possible"), status
