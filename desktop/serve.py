"""Headless serve: one app on one data directory, until a signal."""

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import filelock

from desktop.app import App
from desktop.app_log import open_log
from desktop.paths import Paths, make_home
from desktop.privacy import hide_process, take_from_environment
from desktop.showing import show_window
from desktop.version import VERSION
from desktop.wiring import build
from store.clock import iso, now
from store.database import Damaged, back_up, backups, check, set_aside
from store.errors import Conflict, Refusal
from store.upgrade import HEAD, upgrade, version_of

log = logging.getLogger("engine")

BACKUP_EVERY_SECS = 24 * 3_600
SECRET_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def serve(paths: Paths, *, port: int = 0, fresh: bool = False, in_window: bool = False) -> None:
    """Runs until SIGTERM, SIGINT or Quit.  Raises Refusal with a sentence when it cannot.

    `in_window`: shows the pages in a window where there is a screen, else in the browser.
    """
    make_home(paths)
    hide_process()
    environment = {**os.environ, **take_from_environment(SECRET_VARIABLES)}
    with _place(paths) as is_beside:
        open_log(paths.app_log, environment.get("CRONMEND_LOG_LEVELS", ""))
        if is_beside:
            _need_same_schema(paths)
        else:
            prepare_database(paths, fresh=fresh)
        try:
            app = build(paths, environment, port, is_beside=is_beside)
        except OSError as error:
            if error.filename is not None:
                raise
            raise Refusal(f"--port: {port} cannot be used ({error.strerror}).", code="port", field="port") from error
        # The command line goes on finding the one that works.
        published = contextlib.nullcontext() if is_beside else _published(app, paths)
        _run(app, paths, published, in_window=in_window)


@contextlib.contextmanager
def _place(paths: Paths) -> Iterator[bool]:
    """The data lock; a secondary instance may find it held, and is then beside the one that holds it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(data_lock(paths))
        except Conflict:
            if not paths.instance:
                raise
            yield True
        else:
            yield False


def _need_same_schema(paths: Paths) -> None:
    if (version := version_of(paths.database)) != HEAD:
        raise Refusal(
            f"The running Cronmend is of another version (schema {version}, this one knows {HEAD}); "
            "start both from the same installation.",
            code="database_version",
        )


def _run(app: App, paths: Paths, published: AbstractContextManager[None], *, in_window: bool) -> None:
    ending = threading.Event()
    handle = app.parts.handle
    handle.quit = ending.set
    _end_on_signal(lambda: handle.quit())  # noqa: PLW0108 - a window changes what quitting is
    was_clean = app.start()
    with published:
        print(f"Cronmend is running at {app.parts.desk.login_url()}", flush=True)
        log.info("[engine] started, version %s, at %s", VERSION, app.parts.pages.url)
        if not was_clean:
            app.parts.threads.spawn("check", lambda: _check_after_crash(paths))
        if not (in_window and show_window(app, paths)):
            ending.wait()
        print("Ending; jobs that run go on.", file=sys.stderr, flush=True)
    app.stop()
    log.info("[engine] ended cleanly")


def _end_on_signal(end: Callable[[], None]) -> None:
    """By handler and by pipe: some windows' loops keep Python from the one, others from the other."""
    readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(readable, True)
    signal.set_wakeup_fd(writable)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=end, daemon=True).start())

    def hear() -> None:
        while os.read(readable, 1):
            end()

    threading.Thread(target=hear, name="signals", daemon=True).start()


@contextlib.contextmanager
def data_lock(paths: Paths) -> Iterator[None]:
    """The one lock of every entry point that changes data.  Raises Conflict `already_running`."""
    lock = filelock.FileLock(paths.lock, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise Conflict(f"Cronmend is running already on {paths.home}.", code="already_running") from None
    try:
        yield
    finally:
        lock.release()


def prepare_database(paths: Paths, *, fresh: bool = False) -> None:
    """Checks, backs up daily and upgrades the file.  A damaged one is set aside and the way back is named."""
    aside = sorted(paths.home.glob(f"{paths.database.name}.damaged-*"))
    if not paths.database.exists() and aside and not fresh:
        raise _lost(paths, aside[-1])
    if paths.database.exists():
        try:
            check(paths.database)
        except Damaged as error:
            moved = set_aside(paths.database)
            log.error("[engine] %s", error)  # noqa: TRY400 - the sentence says it all
            raise _lost(paths, moved) from error
        _back_up_daily(paths)
    before = version_of(paths.database)
    upgrade(paths.database, paths.backups)
    if before != HEAD:
        log.info("[engine] the database has schema %s now, it had %s", HEAD, before or "none")


def _lost(paths: Paths, moved: Path) -> Refusal:
    newest = next(iter(backups(paths.backups)), None)
    way = (
        f"The newest backup is {newest.name}: restore it with 'cronmend restore', or begin"
        if newest
        else "There is no backup; begin"
    )
    return Refusal(
        f"The database was damaged and has been set aside as {moved}. {way} empty with 'cronmend serve --fresh'.",
        code="database_damaged",
    )


def _back_up_daily(paths: Paths) -> None:
    newest = next(iter(backups(paths.backups)), None)
    if newest is None or time.time() - newest.stat().st_mtime > BACKUP_EVERY_SECS:
        back_up(paths.database, paths.backups, "daily")


def _check_after_crash(paths: Paths) -> None:
    try:
        check(paths.database, thorough=True)
        log.info("[engine] the last stop was not a clean one; the database is whole")
    except Damaged as error:
        log.error(  # noqa: TRY400 - the sentence says it all
            "[engine] %s Stop Cronmend and restore a backup: cronmend restore", error
        )


@contextlib.contextmanager
def _published(app: App, paths: Paths) -> Iterator[None]:
    """cli.json while the app answers: how the command line finds it."""
    facts = {
        "url": app.parts.api.url,
        "controlToken": app.parts.desk.control_token,
        "pid": os.getpid(),
        "startedAt": iso(now()),
        "version": VERSION,
    }
    _write_privately(paths.address, facts)
    try:
        yield
    finally:
        paths.address.unlink(missing_ok=True)


def _write_privately(path: Path, facts: Mapping[str, object]) -> None:
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(facts, file)
    new.replace(path)
