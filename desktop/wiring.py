"""The parts list of the product: every object is made here and handed on."""

import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.credentials import read_credentials
from agent.tokens import SessionTokens
from desktop.api_server import ApiServer
from desktop.app import App, Parts
from desktop.loops import Loop, Threads
from desktop.paths import Paths
from desktop.version import VERSION
from heal.attending import WORKER, Attending, Surgery
from heal.closings import Closings
from heal.evidence import Failure, examine
from heal.files import HealFiles
from heal.guards import Rules
from heal.medic import Medic
from heal.treatment import Treatment
from heal.undo import UndoFolder
from scheduler.alarm import Alarm
from scheduler.dispatcher import Dispatcher
from scheduler.ends import Examined, Failed
from scheduler.environment import Surroundings, login_environment
from scheduler.keeper_link import KeeperLink, runtime_dir
from scheduler.logs import LogFolder
from scheduler.recorder import Recorder
from scheduler.runs import Runs
from store import settings
from store.clock import iso
from store.database import Database
from store.settings import Value
from web.api.app import create_app
from web.api.desk import Desk, Engine

KEEPER = (sys.executable, "-P", "-m", "scheduler.keeper")

WAKES = {
    "run.claimed": ("dispatcher",),
    "run.completed": ("dispatcher", "medic"),
    "run.failed": ("dispatcher", "medic"),
    "run.timeout": ("dispatcher", "medic"),
    "run.aborted": ("dispatcher", "medic"),
    "run.abort_requested": ("dispatcher",),
    "job.created": ("dispatcher",),
    "job.updated": ("dispatcher",),
    "job.resumed": ("dispatcher",),
    "heal.decided": ("medic",),
    "heal.opened": ("medic",),
    "heal.spawned": ("medic", "attending"),
    "heal.went": ("attending",),
    "heal.closing": ("closings",),
    "heal.fixed": ("dispatcher",),
    "heal.abandoned": ("dispatcher", "medic"),
}
"""Which loop has work after a commit that recorded an event of this kind."""


def build(paths: Paths, environment: Mapping[str, str], port: int = 0) -> App:
    """Makes the app; nothing runs yet."""
    threads = Threads()
    database = Database(paths.database)
    control_token = secrets.token_urlsafe(32)
    tokens = SessionTokens()
    credentials = read_credentials(environment)

    def present_settings() -> Mapping[str, Value]:
        with database.read() as session:
            return settings.read(session, environment)

    surroundings = Surroundings(login_environment(), lambda: present_settings()["SANDBOX_TIMEOUT_SECS"].value)
    logs = LogFolder(paths.logs)
    keeper = KeeperLink(paths.keeper, KEEPER, threads.spawn)
    dispatcher = Dispatcher(database, keeper, logs, surroundings)
    known_secrets = (*credentials.secrets, control_token)
    recorder = Recorder(database, keeper, logs, _examiner(known_secrets), surroundings)
    runs = Runs(database, keeper, dispatcher)

    is_secondary = bool(environment.get("CRONMEND_INSTANCE_ID"))
    files = HealFiles(database, UndoFolder(paths.undo))
    api = ApiServer(port)
    surgery = Surgery(
        command=WORKER,
        api_url=lambda: api.url,
        credentials=credentials,
        tokens=tokens,
        secrets=(control_token,),
        private=_private(paths),
        workspace=paths.workspace,
        settings=present_settings,
    )
    attending = Attending(database, files, surroundings, surgery, threads.spawn)
    closings = Closings(database, runs, attending, files)

    def rules() -> Rules:
        values = present_settings()
        return Rules(
            values["CRONMEND_HEALER"].value, values["MAX_CONCURRENT_AUTO_HEALS"].value, is_secondary=is_secondary
        )

    medic = Medic(database, attending, files, rules)
    treatment = Treatment(database, runs, files, attending, closings, medic, surroundings, known_secrets)

    alarm = Alarm(lambda: loops["dispatcher"].nudge())
    loops = {
        "dispatcher": Loop("dispatcher", dispatcher, alarm.set),
        "recorder": Loop("recorder", recorder),
        "medic": Loop("medic", medic),
        "closings": Loop("closings", closings),
        "attending": Loop("attending", attending),
    }

    def facts() -> dict[str, Any]:
        values = present_settings()
        return {
            "schedulerState": "secondary" if is_secondary else "running",
            "lastTickAt": iso(alarm.last_tick_at) if alarm.last_tick_at else None,
            "keeperPid": keeper.pid,
            "modelKey": credentials.origin,
            "path": surroundings.login.get("PATH", ""),
            "settings": {name: {"value": value.value, "origin": value.origin} for name, value in values.items()},
        }

    desk = Desk(database, logs, VERSION, control_token, tokens, Engine(runs, treatment), facts)
    api.serve(create_app(desk))
    parts = Parts(
        database, keeper, dispatcher, recorder, attending, alarm, api, loops, threads, is_secondary, control_token
    )
    app = App(parts)
    recorder.nudge = loops["recorder"].nudge
    keeper.on_reports = recorder.take
    keeper.on_lost = app.find_keeper_again
    database.writer.on_commit = _waker(loops, runs)
    return app


def _waker(loops: Mapping[str, Loop], runs: Runs) -> Callable[[frozenset[str]], None]:
    def wake(kinds: frozenset[str]) -> None:
        for name in {name for kind in kinds for name in WAKES.get(kind, ())}:
            loops[name].nudge()
        if any(kind.startswith("run.") for kind in kinds):
            runs.ended()

    return wake


def _private(paths: Paths) -> tuple[Path, ...]:
    """What no session may see.  The workspace project lies beside these, in the same folder."""
    own = [paths.database, paths.logs, paths.undo, paths.backups, paths.keeper, paths.address, paths.app_log]
    return (*own, runtime_dir(paths.keeper))


def _examiner(known_secrets: tuple[str, ...]) -> Callable[[Failed], Examined]:
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
                secrets=known_secrets,
            )
        )
        return Examined(evidence.to_json(), evidence.category, evidence.cause)

    return look
