"""kill -9 of the app around the commits of cards and of what a person starts: nothing stranded, counted twice, lost."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import make
import pytest
from sqlalchemy.orm import Session
from support.claude_server import ClaudeServer, call, text
from support.serving import Served

from desktop.loops import Threads
from store import cards
from store.cards import ESCALATION, Card
from store.clock import now
from store.database import Database
from store.jobs import Job
from store.runs import Run
from store.upgrade import upgrade

pytestmark = [pytest.mark.mission("O8", "O9", "O10", "O12", "O13"), pytest.mark.timeout(300)]

HOOK = Path(__file__).parent / "hook"
KEY = "sk-ant-canary-0123456789abcdef"

POINTS = (
    "card.resolved",  # first: the drain of a legacy request at start
    "run.claimed",
    "run.started",
    "run.failed",
    "run.completed",
    "heal.cleared",  # the green run, its counter and its card
    "heal.decided",
    "card.opened",  # the escalation
    "session.opened",
    "session.message",
    "heal.opened",  # the heal by hand, before its pause
    "heal.spawned",
    "heal.went",
    "heal.closing",
    "heal.abandoned",
    "job.paused",  # the hand fix
    "session.ended",
    "job.resumed",
    "session.archived",
    "toast.unavailable",
)
"""Every kind of commit of the scenario; the first test here fails when there is another one."""


def answer(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A heal gives up; a person's session answers."""
    is_heal = any(tool["name"] == "give_up" for tool in body["tools"])
    return [call("give_up", reason="no idea")] if is_heal else [text("I would change the command.")]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Served]:
    """One job at the cap that fails, one at the cap that is green again, one to fix by hand, one to fix with AI."""
    with ClaudeServer([answer]) as claude:
        served = Served(tmp_path, {"PYTHONPATH": str(HOOK), "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": claude.url})
        served.home.mkdir(mode=0o700)
        upgrade(served.home / "cronmend.db", served.home / "backups")
        database = Database(served.home / "cronmend.db")
        database.start(Threads().spawn)
        soon = now() - timedelta(seconds=2)
        capped, unhealed = {"consecutive_heal_failures": 3}, {"healing_enabled": False}
        for name, command, columns, due in (
            ("capped", "sleep 0.3; exit 7", capped, soon),
            ("green", "sleep 0.3", capped, soon),
            ("by hand", "exit 7", unhealed, None),
            ("with AI", "exit 7", unhealed, None),
        ):
            folder = tmp_path / name
            folder.mkdir()
            body = {"name": name, "command": command, "schedule": "0 0 1 1 *", "project": str(folder)}
            make.job(database, due=due, columns=columns, **body)
        database.write(plant)
        database.close()
        yield served
        served.close()


def plant(session: Session) -> None:
    for job_id in (3, 4):
        session.add(Run(job_id=job_id, status="failed", triggered_by="schedule", heal_decision="guard:healing_off"))
    for target, job_id, payload in (
        ("heal:99", 3, {"healAttemptId": 99}),
        ("job:2", 2, {"escalation": True, "jobId": 2}),
    ):
        card = Card(action_kind=ESCALATION, target=target, job_id=job_id, title="t", preview="p", payload=payload)
        cards.post(session, card)
    assert session.get_one(Job, 2).name == "green"


def drive(served: Served) -> bool:
    """The person's next step; True when there is none left."""
    tables = served.ask("SELECT count(*) FROM sqlite_master WHERE name = 'cron_heal_attempts'")
    if not tables[0][0] or not (served.home / "cli.json").exists():
        return False
    talks = served.ask("SELECT id, status FROM sessions WHERE origin = 'manual' AND job_id = 4 ORDER BY id")
    if not served.ask("SELECT id FROM cron_heal_attempts WHERE job_id = 3"):
        served.run("heals", "start", "3")
    elif not talks:
        served.run("sessions", "start", "Fix it.", "--job", "4")
    elif talks[-1][1] not in ("running", "archived"):
        served.run("sessions", "archive", str(talks[-1][0]))
    return bool(talks) and talks[-1][1] == "archived"


UNSETTLED = """
SELECT (SELECT count(*) FROM cron_runs WHERE status IN ('pending', 'running'))
     + (SELECT count(*) FROM cron_runs WHERE status = 'failed' AND heal_decision IS NULL)
     + (SELECT count(*) FROM cron_heal_attempts WHERE status IN ('pending', 'spawned'))
     + (SELECT count(*) < 2 FROM cron_runs WHERE slot_at IS NOT NULL)
"""


def settle(served: Served) -> None:
    """The person goes on until all is done, and the app has come to rest."""
    served.until(lambda: drive(served) and served.ask(UNSETTLED) == [(0,)])


def check(served: Served) -> None:
    """What must hold whatever happened."""
    paused = "SELECT id FROM cron_jobs WHERE paused_heal_id IS NOT NULL OR paused_session_id IS NOT NULL"
    assert served.ask(paused) == [], "no job is stranded"
    counters = served.ask("SELECT name, consecutive_heal_failures FROM cron_jobs ORDER BY id")
    assert dict(counters) == {"capped": 3, "green": 0, "by hand": 0, "with AI": 0}, "no counter moved twice"
    escalations = served.ask(
        "SELECT job_id, status, dispatched_at IS NOT NULL FROM cli_pending_actions ORDER BY job_id, id"
    )
    assert escalations == [(1, "pending", 0), (2, "dismissed", 0), (3, "approved", 1)]
    heals = served.ask("SELECT job_id, status, is_manual, counts_as_failure FROM cron_heal_attempts")
    assert heals == [(3, "abandoned", 1, 0)]
    assert served.ask("SELECT id FROM sessions WHERE status = 'running'") == []
    for kind in ("heal.opened", "heal.abandoned", "heal.cleared"):
        assert len(served.ask("SELECT id FROM events WHERE kind = ?", kind)) == 1, kind


def test_the_list_of_points_is_complete(scene: Served, tmp_path: Path) -> None:
    scene.environment["COMMITS_TO"] = str(tmp_path / "commits")

    scene.start()
    settle(scene)

    check(scene)
    seen = set((tmp_path / "commits").read_text().split())
    assert seen == set(POINTS)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", POINTS)
def test_a_kill_there_strands_nothing(scene: Served, kind: str, when: str) -> None:
    scene.environment["KILL_POINT"] = f"{when}:{kind}"
    scene.start_and_expect_kill(lambda: drive(scene))
    del scene.environment["KILL_POINT"]

    scene.start()
    settle(scene)

    check(scene)
