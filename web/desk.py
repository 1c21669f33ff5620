"""Everything the web layer reaches, handed over by the composition root."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flask import current_app
from sqlalchemy.orm import Session

from agent.sessions import Sessions
from agent.tokens import SessionTokens
from heal.by_hand import ByHand
from heal.files import HealFiles
from heal.treatment import Treatment
from scheduler.logs import LogFolder
from scheduler.runs import Runs
from store.database import Database
from store.errors import NotRunning, Secondary
from web.door import Door
from web.feed import Feed

EXTENSION = "cronmend"
T = TypeVar("T")


@dataclass(frozen=True)
class Keychain:
    """The model key in the system's keychain: `store` raises Refusal with a sentence; `test` asks the model."""

    store: Callable[[str], None]
    test: Callable[[], str]


@dataclass(frozen=True)
class Engine:
    """What only a running app has."""

    runs: Runs
    treatment: Treatment
    by_hand: ByHand
    sessions: Sessions
    feed: Feed
    keychain: Keychain
    activate: Callable[[], bool]
    """Raises the window; False where there is none."""

    hide: Callable[[], None]
    quit: Callable[[], None]
    pages_url: Callable[[], str]
    painted: threading.Event = field(default_factory=threading.Event)
    """Set once a page has painted."""


@dataclass(frozen=True)
class Desk:
    """`engine` is None when the command line reads the database of an app that does not run."""

    database: Database
    logs: LogFolder
    files: HealFiles
    version: str
    control_token: str
    tokens: SessionTokens = field(default_factory=SessionTokens)
    door: Door = field(default_factory=Door)
    engine: Engine | None = None
    is_secondary: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    facts: Callable[[], dict[str, Any]] = dict
    """What the app knows of itself beyond the database: scheduler state, last tick, settings with their origin."""

    def login_url(self) -> str:
        """An address that opens the pages once, within a minute."""
        return f"{self.running().pages_url()}/?k={self.door.mint()}"

    def running(self) -> Engine:
        """The engine; raises Refusal `not_running`."""
        if self.engine is None:
            raise NotRunning
        return self.engine

    def acting(self) -> Engine:
        """The engine that runs and heals; raises Refusal `not_running`, Conflict `secondary`."""
        if self.is_secondary:
            raise Secondary
        return self.running()

    def decide(self, change: Callable[[Session], T]) -> T:
        """Database.write for a person's decision; raises Conflict `secondary`."""
        if self.is_secondary:
            raise Secondary
        return self.database.write(change)

    @property
    def feed(self) -> Feed:
        return self.running().feed


def desk() -> Desk:
    """The desk of the app that answers this request."""
    found: Desk = current_app.extensions[EXTENSION]
    return found
