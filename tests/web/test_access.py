"""What a heal session's token opens: running and resuming its own job while its heal is open, and nothing else."""

import http.client
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy.orm import Session

from agent.tokens import SessionTokens
from desktop.app import App
from desktop.paths import Paths, make_home
from desktop.serve import prepare_database
from desktop.wiring import build
from heal import moves
from heal.moves import Spawned
from scheduler import jobs
from scheduler.keeper_link import runtime_dir
from store import heals, projects
from store.runs import Run
from store.sessions import Conversation

pytestmark = pytest.mark.mission("O6")

NOT_YOURS = "session not authorized for this job"


@dataclass
class Office:
    """A running app in this process, with an open heal of job 1, and job 2 beside it."""

    app: App
    tokens: SessionTokens
    heal_id: int
    session_id: int

    def call(self, path: str, body: Any = None, *, session: int | None = None, method: str = "POST") -> tuple[int, Any]:
        token = self.tokens.mint(session or self.session_id, "heal:1", 60)
        connection = http.client.HTTPConnection(urlsplit(self.app.parts.api.url).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body or {}), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found

    def change(self, **columns: Any) -> None:
        def write(session: Session) -> None:
            heal = heals.get(session, self.heal_id)
            for name, value in columns.items():
                setattr(heal, name, value)

        self.app.parts.database.write(write)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    paths = Paths(tmp_path / "data")
    make_home(paths)
    prepare_database(paths)
    app = build(paths, {"CRONMEND_HEALER": "off"})
    app.start()
    (tmp_path / "project").mkdir()
    heal_id, session_id = app.parts.database.write(lambda session: open_heal(session, tmp_path / "project"))
    yield Office(app, app.parts.desk.tokens, heal_id, session_id)
    app.stop()
    assert app.parts.keeper.pid
    os.kill(app.parts.keeper.pid, signal.SIGTERM)
    for file in runtime_dir(paths.keeper).iterdir():
        file.unlink()
    runtime_dir(paths.keeper).rmdir()


def open_heal(session: Session, folder: Path) -> tuple[int, int]:
    project = projects.add(session, folder)
    made = [
        jobs.create(
            session,
            {"name": name, "command": "echo ran", "schedule": "0 0 1 1 *", "projectId": project.id, "effects": "none"},
        )
        for name in ("broken", "other")
    ]
    run = Run(job_id=made[0].id, status="failed", triggered_by="schedule", heal_decision="healed")
    session.add(run)
    conversation = Conversation(project_id=project.id, origin="heal", job_id=made[0].id, title="Heal broken")
    session.add(conversation)
    session.flush()
    heal = moves.insert(session, run, made[0], is_manual=False)
    moves.mark_spawned(session, heal.id, Spawned(conversation.id, 0, 0, "no boot"))
    return heal.id, conversation.id


def test_it_may_run_and_resume_its_own_job(office: Office) -> None:
    status, ran = office.call("/cron/jobs/1/run")
    assert (status, ran["stdout"]) == (200, "ran\n")

    status, job = office.call("/cron/jobs/1/toggle", {"isActive": True, "rootCause": "r", "fix": "f"})

    assert (status, job["isActive"], job["pausedBy"]) == (200, True, None)
    with office.app.parts.database.read() as session:
        assert heals.get(session, office.heal_id).status == "fixed"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/cron/jobs/2/run"),
        ("POST", "/cron/jobs/2/toggle"),
        ("POST", "/cron/jobs/2/verify"),
        ("POST", "/cron/jobs/999/run"),
        ("GET", "/cron/jobs"),
        ("POST", "/cron/jobs"),
        ("PATCH", "/cron/jobs/1"),
        ("DELETE", "/cron/jobs/1"),
        ("GET", "/cron/runs"),
        ("POST", "/cron/runs/1/abort"),
        ("GET", "/cron/status"),
        ("GET", "/cron/audit"),
        ("GET", "/cron/heals"),
        ("POST", "/cron/jobs/1/heal"),
        ("POST", "/cron/heals/1/undo"),
        ("GET", "/inbox"),
        ("POST", "/cron/jobs/1/wake"),
        ("GET", "/sessions"),
        ("GET", "/projects"),
        ("GET", "/settings"),
        ("PUT", "/settings/CRONMEND_HEALER"),
    ],
)
def test_everything_else_is_refused(office: Office, method: str, path: str) -> None:
    status, answer = office.call(path, {"isActive": True}, method=method)

    assert (status, answer["error"]["message"]) == (403, NOT_YOURS)


def test_another_session_may_not_run_the_job(office: Office) -> None:
    status, answer = office.call("/cron/jobs/1/run", session=office.session_id + 1)

    assert (status, answer["error"]["message"]) == (403, NOT_YOURS)


def test_it_may_not_pause(office: Office) -> None:
    status, _ = office.call("/cron/jobs/1/toggle", {"isActive": False})

    assert status == 403


def test_it_may_not_resume_without_a_proof(office: Office) -> None:
    status, answer = office.call("/cron/jobs/1/toggle", {"isActive": True})

    assert (status, answer["error"]["code"]) == (409, "no_verification")
    with office.app.parts.database.read() as session:
        assert heals.get(session, office.heal_id).status == "spawned"


def test_a_job_with_effects_outside_is_not_run(office: Office) -> None:
    office.app.parts.database.write(lambda session: jobs.edit(session, 1, {"effects": "external"}))

    status, answer = office.call("/cron/jobs/1/run")

    assert (status, answer["error"]["code"]) == (409, "side_effects")


def test_a_changed_definition_voids_the_proof(office: Office) -> None:
    assert office.call("/cron/jobs/1/run")[0] == 200
    office.app.parts.database.write(lambda session: jobs.edit(session, 1, {"command": "true"}))

    status, answer = office.call("/cron/jobs/1/toggle", {"isActive": True})

    assert (status, answer["error"]["code"]) == (409, "no_verification")


@pytest.mark.parametrize("change", [{"closing_reason": "hung session"}, {"status": "abandoned"}, {"status": "fixed"}])
def test_a_heal_that_is_closing_or_over_opens_nothing(office: Office, change: dict[str, Any]) -> None:
    office.change(**change)

    status, answer = office.call("/cron/jobs/1/run")

    assert (status, answer["error"]["message"]) == (403, NOT_YOURS)
