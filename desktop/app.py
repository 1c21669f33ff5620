"""The running app: how its parts start, end, and come back when the keeper dies."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session
from tzdata import IANA_VERSION

from agent.sessions import Sessions, recover
from desktop.loops import Loop, Threads
from desktop.version import VERSION
from desktop.watch import Watch
from desktop.web_server import WebServer
from heal import reconciler
from heal.attending import Attending
from scheduler import claims, process_tree
from scheduler.alarm import Alarm
from scheduler.clock_steps import Rules, follow_rules
from scheduler.dispatcher import Dispatcher
from scheduler.keeper_link import KeeperLink, KeeperUnreachable
from scheduler.recorder import Recorder, adopt
from scheduler.session_runs import SessionRuns
from scheduler.zones import local_timezone
from store import boots
from store.boots import Begun
from store.clock import now
from store.database import Database
from web.desk import Desk

log = logging.getLogger("engine")

THREAD_ENDS_SECS = 5.0
AGAIN_SECS = 5.0


class Handle:
    """What the pages may do with the app as a whole; set by whoever runs it."""

    activate: Callable[[], bool] = staticmethod(lambda: False)
    hide: Callable[[], None] = staticmethod(lambda: None)
    quit: Callable[[], None] = staticmethod(lambda: None)


@dataclass(frozen=True)
class Parts:
    """What the app starts and stops."""

    database: Database
    keeper: KeeperLink
    dispatcher: Dispatcher
    recorder: Recorder
    attending: Attending
    sessions: Sessions
    session_runs: SessionRuns
    alarm: Alarm
    watch: Watch
    api: WebServer
    pages: WebServer
    desk: Desk
    handle: "Handle"
    loops: Mapping[str, Loop]
    threads: Threads
    is_secondary: bool


class App:
    """One start of Cronmend.  `start` and `stop` are called once each, from the main thread."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._boot_id = 0
        self._is_stopping = False

    def start(self) -> bool:
        """Everything runs when this returns.  Returns whether the app's last stop was a clean one.

        Raises KeeperUnreachable when runs could not be started.
        """
        parts = self.parts
        was_clean = parts.database.is_read_only or self._begin()
        if not parts.is_secondary:
            self._connect_keeper()
            # Only now: a heal cut short may have a run that the keeper has just told us of.
            reconciler.reconcile(parts.database)
            parts.database.write(recover)
            parts.dispatcher.rehearse()
            parts.alarm.start()
            parts.threads.spawn("watch", parts.watch.run)
            for name, loop in parts.loops.items():
                parts.threads.spawn(name, loop.run)
        parts.threads.spawn("cli server", parts.api.run)
        parts.threads.spawn("pages", parts.pages.run)
        return was_clean

    def _begin(self) -> bool:
        database = self.parts.database
        database.start(self.parts.threads.spawn)
        begun = database.write(self._begin_boot, urgent=True)
        self._boot_id = begun.boot_id
        return begun.was_clean

    def _begin_boot(self, session: Session) -> Begun:
        """The boot and the runs of jobs that run at a start of the machine are one commit: never lost, never twice."""
        rules = Rules(IANA_VERSION, local_timezone())
        begun = boots.begin(
            session,
            version=VERSION,
            pid=os.getpid(),
            machine_boot_id=process_tree.boot_id(),
            tzdata=rules.tzdata,
            local_zone=rules.local_zone,
        )
        if begun.rules_before is not None and not self.parts.is_secondary:
            follow_rules(session, rules, Rules(*begun.rules_before), now())
        if begun.is_first_of_machine and not self.parts.is_secondary:
            claims.claim_reboot(session, now())
        return begun

    def stop(self) -> None:
        """Ends cleanly; runs go on with the keeper, heals are closed at the next start."""
        parts = self.parts
        self._is_stopping = True
        parts.watch.stop()
        parts.desk.feed.stop()
        parts.api.stop()
        parts.pages.stop()
        for loop in parts.loops.values():
            loop.stop()
        if not parts.is_secondary:
            parts.alarm.stop()
            parts.attending.end_all()
            parts.sessions.end_all()
            parts.keeper.close()
        left = parts.threads.join(THREAD_ENDS_SECS, besides=("writer",))
        if not parts.database.is_read_only:
            parts.database.write(lambda session: boots.end(session, self._boot_id))
        parts.database.close()
        if left:
            log.warning("[engine] these threads did not end in time: %s", ", ".join(left))

    def find_keeper_again(self) -> None:
        """The keeper is gone: a new one takes over what still runs and says what it can of the rest."""
        while not self._is_stopping:
            log.warning("[engine] the process that runs jobs is gone; another one takes over")
            try:
                self._connect_keeper()
                return
            except KeeperUnreachable as error:
                log.error("[engine] no job can run: %s", error)  # noqa: TRY400 - the sentence says it all
                time.sleep(AGAIN_SECS)

    def _connect_keeper(self) -> None:
        parts = self.parts
        known = parts.keeper.connect(self._boot_id)
        living = parts.session_runs.living()
        parts.dispatcher.knows(adopt(parts.database, known, parts.recorder, living))
        parts.loops["dispatcher"].nudge()
