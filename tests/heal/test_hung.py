"""Heal sessions that hang: three minutes without a sign of life, or a quarter of an hour in all."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import make
import pytest
from conftest import spawn_thread
from sqlalchemy.orm import Session
from support.claude_server import ClaudeServer, Fault, text

from heal import moves
from heal.attending import WORKER, Attending, Surgery
from heal.files import HealFiles
from heal.guards import Rules
from heal.medic import Medic
from heal.undo import UndoFolder
from scheduler.environment import Surroundings
from store import heals, jobs, settings
from store.database import Database
from store.heals import Heal
from store.runs import Run
from store.settings import Value

pytestmark = pytest.mark.mission("O7")


@dataclass
class Ward:
    """A heal session with a real worker before a model that takes its time, and a clock that the test turns."""

    database: Database
    folder: Path
    environment: dict[str, str]
    at: float = 1_000.0
    attending: Attending = field(init=False)
    medic: Medic = field(init=False)

    def __post_init__(self) -> None:
        office = make.office(self.environment, self.settings)
        surroundings = Surroundings({"PATH": os.environ["PATH"], "HOME": str(self.folder)}, lambda: 60)
        files = HealFiles(self.database, UndoFolder(self.folder / "undo"))
        surgery = Surgery(WORKER, office, self.folder / "workspace")
        self.attending = Attending(self.database, files, surroundings, surgery, spawn_thread, lambda: self.at)
        self.medic = Medic(self.database, self.attending, files, lambda: Rules("claude", 3))

    def settings(self) -> dict[str, Value]:
        with self.database.read() as session:
            return settings.read(session, self.environment)

    def open(self, *, is_manual: bool = False, is_busy: bool = False) -> int:
        """A heal whose session is at work, or parked while an older run of its job lives; its id."""
        project = self.folder / "project"
        project.mkdir()
        job = make.job(self.database, project=str(project))

        def change(session: Session) -> int:
            run = Run(job_id=job.id, status="failed", triggered_by="schedule", heal_decision="healed")
            session.add(run)
            if is_busy:
                session.add(Run(job_id=job.id, status="running", triggered_by="manual"))
            session.flush()
            return moves.insert(session, run, job, is_manual=is_manual).id

        heal_id = self.database.write(change)
        self.medic.step()
        self.medic.step()
        assert self.heal(heal_id).status == "spawned"
        return heal_id

    def heal(self, heal_id: int) -> Heal:
        with self.database.read() as session:
            return heals.get(session, heal_id)

    def pass_secs(self, secs: float) -> None:
        self.at += secs
        self.attending.step()


@pytest.fixture
def claude() -> Iterator[ClaudeServer]:
    with ClaudeServer([Fault(slow_secs=60), [text("done")]]) as server:
        yield server


@pytest.fixture
def ward(database: Database, tmp_path: Path, claude: ClaudeServer) -> Iterator[Ward]:
    made = Ward(database, tmp_path, {"ANTHROPIC_API_KEY": "sk-ant-canary-1", "ANTHROPIC_BASE_URL": claude.url})
    yield made
    made.attending.end_all()


def until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_three_minutes_of_silence_close_a_heal(ward: Ward, claude: ClaudeServer) -> None:
    heal_id = ward.open()
    until(lambda: claude.requests)
    ward.pass_secs(179)
    assert ward.heal(heal_id).closing_reason is None

    ward.pass_secs(2)

    assert ward.heal(heal_id).closing_reason == "hung session"


def test_one_that_talks_is_closed_after_a_quarter_of_an_hour(ward: Ward) -> None:
    heal_id = ward.open()
    session_id = ward.heal(heal_id).session_id or 0
    for _ in range(9):
        ward.pass_secs(99)
        ward.attending.touch(session_id)
    assert ward.heal(heal_id).closing_reason is None

    ward.pass_secs(10)

    assert ward.heal(heal_id).closing_reason == "hung session"


def test_one_that_waits_for_a_run_to_end_is_not_hung(ward: Ward) -> None:
    heal_id = ward.open(is_busy=True)

    ward.pass_secs(3_600)

    heal = ward.heal(heal_id)
    assert (heal.went_at, heal.closing_reason) == (None, None)


@pytest.mark.mission("O8")
@pytest.mark.parametrize(("is_manual", "failures"), [(True, 0), (False, 1)])
def test_a_hung_heal_counts_unless_it_is_by_hand(ward: Ward, *, is_manual: bool, failures: int) -> None:
    heal_id = ward.open(is_manual=is_manual)
    ward.pass_secs(181)

    ward.database.write(lambda session: moves.abandon(session, heal_id))

    heal = ward.heal(heal_id)
    assert (heal.abandoned_reason, heal.counts_as_failure) == ("hung session", not is_manual)
    with ward.database.read() as session:
        assert jobs.get(session, heal.job_id).consecutive_heal_failures == failures
