"""The state machine under any order of moves: terminal states are never left, the first one wins, each move is told."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import select
from sqlalchemy.orm import Session

from desktop.loops import Threads
from heal import medic, moves
from heal.guards import CAP, Rules
from heal.moves import Spawned
from scheduler import claims, ends, jobs
from scheduler.ends import End, Examined
from store import heals, projects
from store.database import Database
from store.errors import Conflict
from store.events import Event
from store.heals import Heal
from store.jobs import Job
from store.runs import ACTIVE, Run
from store.sessions import Conversation
from store.upgrade import upgrade

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TERMINAL = ("completed", "failed", "timeout", "aborted")
EVIDENCE = Examined({"hits": []}, "script-error", "it broke")
REASONS = st.sampled_from([moves.APP_RESTART, "gave up: no", "waiting: rain", moves.STOPPED_BY_USER, moves.HUNG])


class Machine(RuleBasedStateMachine):
    """One job with retries, driven through every move by the product's own functions on a real database."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        path = Path(self.folder.name) / "cronmend.db"
        upgrade(path, Path(self.folder.name) / "backups")
        self.database = Database(path)
        self.database.start(Threads().spawn)
        self.ended: dict[int, str] = {}
        self.closed: dict[int, str] = {}
        self.tick = 0

    @initialize(retries=st.integers(0, 2))
    def make_job(self, retries: int) -> None:
        body = {"name": "j", "command": "true", "schedule": "hourly", "timezone": "UTC"}
        fields = {**body, "retries": retries, "retryBackoffSecs": 0}
        self.job_id = self.database.write(lambda session: jobs.create(session, fields).id)

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()

    def _write(self, change: Callable[[Session], Any]) -> Any:
        self.tick += 1
        try:
            return self.database.write(change)
        except Conflict:
            return None

    def _at(self) -> datetime:
        return AT + timedelta(seconds=self.tick)

    def _runs(self, *states: str) -> list[Run]:
        with self.database.read() as session:
            return list(session.scalars(select(Run).where(Run.status.in_(states)).order_by(Run.id)))

    def _heals(self) -> list[Heal]:
        with self.database.read() as session:
            return list(session.scalars(select(Heal).order_by(Heal.id)))

    @rule(by=st.sampled_from(["manual", "wake", "heal"]))
    def claim(self, by: str) -> None:
        self._write(lambda session: claims.claim_by_hand(session, self.job_id, by))

    @rule()
    def start(self) -> None:
        runs = self._runs("pending")
        if runs:
            run = runs[0]
            row = {"run": run.id, "tried": run.attempt, "at": self._at(), "new_pid": 1, "new_start": 1, "new_boot": "b"}
            self._write(lambda session: ends.start_runs(session, [row]))

    @rule(status=st.sampled_from(TERMINAL), which=st.integers(0, 3), late=st.booleans())
    def end(self, status: str, which: int, late: bool) -> None:
        runs = self._runs(*(TERMINAL if late else ACTIVE))
        if runs:
            run = runs[which % len(runs)]
            examined = EVIDENCE if status in ("failed", "timeout") else None
            over = End(run.id, run.attempt, status, self._at(), examined=examined)
            won = self._write(lambda session: ends.end_runs(session, [over]))
            assert won == ([] if late else [run.id])

    @rule()
    def retry(self) -> None:
        for run in self._runs("failed", "timeout"):
            if run.retry_due_at is not None:
                self._write(partial(claims.claim_retry, source_id=run.id, at=self._at()))

    @rule(healer=st.sampled_from(["auto", "off"]))
    def decide(self, healer: str) -> None:
        rules = Rules(healer, most_automatic=3)
        for run in self._runs("failed", "timeout"):
            if run.retry_due_at is None:
                self._write(partial(medic.decide, run_id=run.id, rules=rules))

    def _on_last_heal(self, change: Callable[[Session, Heal], Any]) -> None:
        known = self._heals()
        if known:
            self._write(lambda session: change(session, heals.get(session, known[-1].id)))

    @rule()
    def spawn(self) -> None:
        def change(session: Session, heal: Heal) -> None:
            project = projects.add(session, Path(self.folder.name))
            conversation = Conversation(project_id=project.id, origin="heal", title="t")
            session.add(conversation)
            session.flush()
            moves.mark_spawned(session, heal.id, Spawned(conversation.id, 1, 1, "b"))

        self._on_last_heal(change)

    @rule(reason=REASONS)
    def close(self, reason: str) -> None:
        self._on_last_heal(lambda session, heal: moves.request_close(session, heal.id, reason))

    @rule()
    def abandon(self) -> None:
        def change(session: Session, heal: Heal) -> None:
            if heal.closing_reason is not None:
                moves.abandon(session, heal.id)

        self._on_last_heal(change)

    @rule()
    def fix(self) -> None:
        self._on_last_heal(lambda session, heal: moves.fix(session, heal, "run", None, None))

    @invariant()
    def first_terminal_state_wins(self) -> None:
        for run in self._runs(*TERMINAL):
            assert self.ended.setdefault(run.id, run.status) == run.status
        assert not set(self.ended) & {run.id for run in self._runs(*ACTIVE)}

    @invariant()
    def a_closed_heal_stays_closed(self) -> None:
        for heal in self._heals():
            if heal.id in self.closed:
                assert heal.status == self.closed[heal.id]
            elif heal.status in ("fixed", "abandoned"):
                self.closed[heal.id] = heal.status

    @invariant()
    def every_move_has_its_event(self) -> None:
        with self.database.read() as session:
            told = [(event.kind, event.run_id, event.heal_id) for event in session.scalars(select(Event))]
        for run_id, status in self.ended.items():
            assert [kind for kind, run, _ in told if run == run_id and kind.split(".")[1] in TERMINAL] == [
                f"run.{status}"
            ]
        for heal_id, status in self.closed.items():
            assert [kind for kind, _, heal in told if heal == heal_id and kind in ("heal.fixed", "heal.abandoned")] == [
                f"heal.{status}"
            ]

    @invariant()
    def a_pause_by_a_heal_means_that_it_lives(self) -> None:
        with self.database.read() as session:
            job = session.get(Job, self.job_id) if hasattr(self, "job_id") else None
        if job is not None and job.paused_heal_id is not None:
            (heal,) = [heal for heal in self._heals() if heal.id == job.paused_heal_id]
            assert heal.status == "spawned"

    @invariant()
    def no_more_heals_in_a_row_than_the_cap(self) -> None:
        with self.database.read() as session:
            job = session.get(Job, self.job_id) if hasattr(self, "job_id") else None
        if job is not None:
            assert 0 <= job.consecutive_heal_failures <= CAP
        assert sum(heal.status in ("pending", "spawned") for heal in self._heals()) <= 1


TestStates = pytest.mark.mission("B1", "O4", "O7")(Machine.TestCase)
TestStates.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
