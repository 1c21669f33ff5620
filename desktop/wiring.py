"""The parts list of the product: every object is made here and handed on."""

import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.credentials import Access
from agent.sessions import Office, Sessions
from agent.tokens import SessionTokens
from delivery.toast import Failure as ToastedFailure
from delivery.toast import Toaster, show
from desktop.app import App, Handle, Parts
from desktop.loops import Loop, Threads
from desktop.paths import Paths
from desktop.version import VERSION
from desktop.watch import Watch
from desktop.web_server import WebServer
from heal.attending import WORKER, Attending, Surgery
from heal.by_hand import ByHand
from heal.closings import Closings
from heal.evidence import Failure, examine
from heal.files import HealFiles
from heal.guards import Rules
from heal.medic import Medic
from heal.reconciler import StrayWatch
from heal.treatment import Clinic, Treatment
from heal.undo import UndoFolder
from scheduler.alarm import Alarm
from scheduler.deadlines import Deadlines
from scheduler.dispatcher import Dispatcher
from scheduler.ends import Examined, Failed
from scheduler.environment import Surroundings, login_environment
from scheduler.keeper_link import KeeperLink, runtime_dir
from scheduler.logs import LogCap, LogFolder
from scheduler.recorder import Recorder
from scheduler.retention import Retention
from scheduler.runs import Runs
from scheduler.session_runs import SessionRuns
from store import settings
from store.clock import iso
from store.database import Database
from store.errors import Secondary
from store.settings import Value
from web.api.app import create_app
from web.desk import Desk, Engine, Keychain
from web.feed import Feed
from web.pages import create_pages

API_THREADS = 16
PAGE_THREADS = 32

KEEPER = (sys.executable, "-P", "-m", "scheduler.keeper")

WAKES = {
    "run.claimed": ("dispatcher",),
    "run.awaiting": ("dispatcher",),
    "run.completed": ("dispatcher", "medic"),
    "run.failed": ("dispatcher", "medic"),
    "run.timeout": ("dispatcher", "medic"),
    "run.aborted": ("dispatcher", "medic"),
    "run.abort_requested": ("dispatcher",),
    "job.created": ("dispatcher",),
    "job.updated": ("dispatcher",),
    "job.paused": ("dispatcher",),
    "job.resumed": ("dispatcher",),
    "heal.decided": ("medic",),
    "heal.opened": ("medic",),
    "heal.spawned": ("medic", "attending"),
    "heal.went": ("attending",),
    "heal.closing": ("closings",),
    "heal.fixed": ("dispatcher",),
    "heal.abandoned": ("dispatcher", "medic"),
    "session.message": ("sessions",),
}
"""Which loop has work after a commit that recorded an event of this kind."""


@dataclass(frozen=True)
class _Ground:
    """What most parts stand on."""

    paths: Paths
    environment: Mapping[str, str]
    threads: Threads
    database: Database
    logs: LogFolder
    surroundings: Surroundings
    access: Access
    control_token: str
    tokens: SessionTokens
    settings: Callable[[], Mapping[str, Value]]

    def secrets(self) -> tuple[str, ...]:
        """Values that nothing written or sent may hold."""
        return (*self.access.secrets, self.control_token)

    @property
    def is_secondary(self) -> bool:
        return bool(self.paths.instance)


def build(paths: Paths, environment: Mapping[str, str], port: int = 0, *, is_beside: bool = False) -> App:
    """Makes the app; nothing runs yet.  `is_beside`: another one works on the data, so this one only reads them.

    Raises OSError when the port is taken.
    """
    ground = _lay_ground(paths, environment, is_beside=is_beside)
    database, threads = ground.database, ground.threads
    keeper = KeeperLink(paths.keeper, KEEPER, threads.spawn)
    api, pages = WebServer(0, API_THREADS), WebServer(port, PAGE_THREADS)
    office = _office(ground, api)
    sessions = Sessions(database, office, threads.spawn)
    session_runs = SessionRuns(database, sessions, ground.logs, paths.workspace)
    dispatcher = Dispatcher(database, keeper, ground.logs, ground.surroundings, session_runs)
    recorder = Recorder(database, keeper, ground.logs, _examiner(ground.secrets), ground.surroundings)
    runs = Runs(database, dispatcher)

    feed = Feed(database)
    files = HealFiles(database, UndoFolder(paths.undo))
    attending = Attending(database, files, ground.surroundings, Surgery(WORKER, office, paths.workspace), threads.spawn)
    closings = Closings(database, runs, attending, files)
    medic = Medic(database, attending, files, lambda: _rules(ground))
    clinic = Clinic(
        database=database,
        runs=runs,
        files=files,
        attending=attending,
        closings=closings,
        medic=medic,
        sessions=sessions,
        surroundings=ground.surroundings,
        secrets=ground.secrets,
        private=_private(paths),
        workspace=paths.workspace,
    )

    toaster = _toaster(ground, medic)

    alarm = Alarm(lambda: loops["dispatcher"].nudge())  # noqa: PLW0108 - the loop is made below
    loops = {
        "dispatcher": Loop("dispatcher", dispatcher, alarm.set),
        "recorder": Loop("recorder", recorder),
        "medic": Loop("medic", medic),
        "closings": Loop("closings", closings),
        "attending": Loop("attending", attending),
        "sessions": Loop("sessions", sessions),
        "stray watch": Loop("stray watch", StrayWatch(database)),
        "toasts": Loop("toasts", toaster),
        "deadlines": Loop("deadlines", Deadlines(database)),
        "log cap": Loop("log cap", LogCap(database, ground.logs, ground.surroundings.most_log_bytes)),
        "retention": Loop("retention", Retention(database, ground.logs, lambda: _keep(ground))),
    }
    watch = Watch(
        alarm,
        loops,
        lambda said: show("Cronmend runs no jobs", said),
        trouble=lambda: database.find_trouble() or dispatcher.trouble,
    )
    handle, painted = Handle(), threading.Event()
    desk = Desk(
        database=database,
        logs=ground.logs,
        files=files,
        version=VERSION,
        control_token=ground.control_token,
        tokens=ground.tokens,
        environment=ground.environment,
        is_secondary=ground.is_secondary,
        engine=Engine(
            runs=runs,
            treatment=Treatment(clinic),
            by_hand=ByHand(clinic),
            sessions=sessions,
            feed=feed,
            keychain=Keychain(ground.access.store, ground.access.test),
            activate=lambda: handle.activate(),  # noqa: PLW0108 - a window may come later
            hide=lambda: handle.hide(),  # noqa: PLW0108
            quit=lambda: handle.quit(),  # noqa: PLW0108
            pages_url=lambda: pages.url,
            painted=painted,
        ),
        facts=lambda: {
            **_facts(ground, alarm, keeper, feed),
            "stall": database.writer.trouble or dispatcher.trouble or watch.stall,
            "hasPainted": painted.is_set(),
            "toasts": toaster.state,
        },
    )
    api.serve(create_app(desk))
    pages.serve(create_pages(desk))
    app = App(
        Parts(
            database=database,
            keeper=keeper,
            dispatcher=dispatcher,
            recorder=recorder,
            attending=attending,
            sessions=sessions,
            session_runs=session_runs,
            alarm=alarm,
            watch=watch,
            api=api,
            pages=pages,
            desk=desk,
            handle=handle,
            loops=loops,
            threads=threads,
            is_secondary=ground.is_secondary,
        )
    )
    recorder.nudge, toaster.nudge = loops["recorder"].nudge, loops["toasts"].nudge
    recorder.on_refused, keeper.on_reports, keeper.on_lost = dispatcher.refused, recorder.take, app.find_keeper_again
    database.writer.on_commit = _waker(loops, runs, feed)
    return app


def _lay_ground(paths: Paths, environment: Mapping[str, str], *, is_beside: bool) -> _Ground:
    database = Database(paths.database, refuse_writes=Secondary if is_beside else None)

    def present_settings() -> Mapping[str, Value]:
        with database.read() as session:
            return settings.read(session, environment)

    return _Ground(
        paths=paths,
        environment=environment,
        threads=Threads(),
        database=database,
        logs=LogFolder(paths.logs),
        surroundings=Surroundings(
            login_environment(),
            hard_timeout=lambda: present_settings()["SANDBOX_TIMEOUT_SECS"].value,
            most_at_once=lambda: present_settings()["MAX_PARALLEL_JOBS"].value,
            pools=lambda: present_settings()["CRONMEND_POOLS"].value,
            most_log_bytes=lambda: present_settings()["CRONMEND_LOG_MB"].value * 1024 * 1024,
        ),
        access=Access(environment),
        control_token=secrets.token_urlsafe(32),
        tokens=SessionTokens(),
        settings=present_settings,
    )


def _office(ground: _Ground, api: WebServer) -> Office:
    return Office(
        api_url=lambda: api.url,
        access=ground.access,
        tokens=ground.tokens,
        secrets=ground.secrets,
        private=_private(ground.paths),
        settings=ground.settings,
        path=lambda: ground.surroundings.login.get("PATH", ""),
    )


def _toaster(ground: _Ground, medic: Medic) -> Toaster:
    toaster = Toaster(ground.database, lambda: str(ground.settings()["CRONMEND_QUIET_HOURS"].value))
    medic.on_failure = lambda job, run: toaster.tell(
        ToastedFailure(job.id, run.id, job.name, run.cause or run.error or "")
    )
    return toaster


def _rules(ground: _Ground) -> Rules:
    values = ground.settings()
    return Rules(
        healer=values["CRONMEND_HEALER"].value,
        most_automatic=values["MAX_CONCURRENT_AUTO_HEALS"].value,
        is_secondary=ground.is_secondary,
    )


def _keep(ground: _Ground) -> int:
    value: int = ground.settings()["CRONMEND_KEEP_RUNS"].value
    return value


def _facts(ground: _Ground, alarm: Alarm, keeper: KeeperLink, feed: Feed) -> dict[str, Any]:
    values = ground.settings()
    return {
        "schedulerState": "secondary" if ground.is_secondary else "running",
        "lastTickAt": iso(alarm.last_tick_at) if alarm.last_tick_at else None,
        "keeperPid": keeper.pid,
        "openStreams": feed.open_streams,
        "modelKey": ground.access.present.origin,
        "home": str(ground.paths.home),
        "path": ground.surroundings.login.get("PATH", ""),
        "settings": {name: {"value": value.value, "origin": value.origin} for name, value in values.items()},
    }


def _waker(loops: Mapping[str, Loop], runs: Runs, feed: Feed) -> Callable[[frozenset[str]], None]:
    def wake(kinds: frozenset[str]) -> None:
        for name in {name for kind in kinds for name in WAKES.get(kind, ())}:
            loops[name].nudge()
        if any(kind.startswith("run.") for kind in kinds):
            runs.ended()
        feed.woken()

    return wake


def _private(paths: Paths) -> tuple[Path, ...]:
    """What no session may see.  The workspace project lies beside these, in the same folder."""
    own = [paths.database, paths.logs, paths.undo, paths.backups, paths.keeper, paths.address, paths.app_log]
    return (*own, runtime_dir(paths.keeper))


def _examiner(secrets: Callable[[], tuple[str, ...]]) -> Callable[[Failed], Examined]:
    """The bridge between the scheduler, which ends runs, and heal, which reads why they failed."""

    def look(failed: Failed) -> Examined:
        evidence = examine(
            Failure(
                command=failed.job.command or "",
                schedule=failed.job.schedule_text or failed.job.schedule or "",
                exit_code=failed.exit_code,
                signal=failed.signal,
                spawn_error=failed.spawn_error,
                stopped=failed.stopped,
                timeout_secs=failed.timeout_secs,
                stdout=failed.stdout,
                stderr=failed.stderr,
                cwd=failed.cwd,
                project=failed.project,
                path=failed.path,
                secrets=secrets(),
            )
        )
        return Examined(evidence.to_json(), evidence.category, evidence.cause)

    return look
