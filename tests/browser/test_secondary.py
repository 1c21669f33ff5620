"""A second instance: it shows everything, and schedules, heals, decides and dismisses nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from support.serving import Served

pytestmark = [pytest.mark.mission("O12"), pytest.mark.timeout(180)]

REFUSED = "This is a second instance: it shows, and runs, heals and decides nothing."
TABLES = ("cron_jobs", "cron_runs", "cron_heal_attempts", "cli_pending_actions", "events", "boots", "settings")


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    served.start()
    yield served
    served.close()


@pytest.fixture
def look(tmp_path: Path, chromium: Browser) -> Iterator[Callable[[], Page]]:
    """Starts a second instance on the same data, and opens a logged-in window before it."""
    served = Served(tmp_path, {"CRONMEND_INSTANCE_ID": "second"})
    context = chromium.new_context(viewport={"width": 1280, "height": 800})

    def start() -> Page:
        page = context.new_page()
        page.goto(served.start())
        return page

    yield start
    context.close()
    assert served.stop() == 0


def state(served: Served) -> list[Any]:
    return [served.ask(f"SELECT * FROM {table}") for table in TABLES]


def failed_job(served: Served) -> str:
    words = ("--name", "seen by two", "--command", "echo no disk >&2; exit 7", "--schedule", "0 0 1 1 *")
    job = served.run("jobs", "add", *words, "--no-healing").out.strip()
    served.run("jobs", "run", job)
    served.until(lambda: served.json("inbox", "list"))
    return job


def test_beside_the_first_one_it_shows_and_changes_nothing(first: Served, look: Callable[[], Page]) -> None:
    job = failed_job(first)
    address = first.address
    page = look()
    before = state(first)
    expect(page.locator(".engine")).to_contain_text("Second instance: it only shows")
    base = page.url.split("/jobs")[0].rstrip("/")

    for path, button in (("/inbox", "#dismiss"), (f"/jobs/{job}", "#run"), ("/inbox", "#healing-switch")):
        page.goto(base + path)
        page.wait_for_load_state()
        page.click(button)
        expect(page.locator("#toasts")).to_contain_text(REFUSED)

    assert state(first) == before
    assert first.address == address, "the command line goes on finding the first one"
    page.goto(f"{base}/jobs/{job}")
    expect(page.locator("main")).to_contain_text("seen by two")
    first.run("jobs", "run", job)
    expect(page.locator("[id^=run-row-]")).to_have_count(2, timeout=15_000)
    assert (first.home / "app-second.log").exists()


def test_alone_it_starts_nothing(tmp_path: Path, look: Callable[[], Page]) -> None:
    served = Served(tmp_path)
    served.start()
    failed_job(served)
    served.run("jobs", "add", "--name", "due", "--command", "touch ran", "--cwd", str(tmp_path), "--at", "in 2s")
    served.kill()
    page = look()
    due = served.json("jobs", "list")[0]["nextRunAt"]

    page.wait_for_timeout(4_000)

    assert due is not None
    assert not (tmp_path / "ran").exists()
    assert served.json("status")["schedulerState"] == "secondary"
    assert [run["status"] for run in served.json("runs", "list")] == ["failed"]
    for words in (
        ("jobs", "run", "1"),
        ("inbox", "resolve", "1", "dismiss"),
        ("heals", "start", "1"),
        ("sessions", "start", "hello"),
    ):
        refused = served.run(*words)
        assert (refused.code, REFUSED in refused.err) == (2, True)
    served.close()


def test_its_name_must_be_a_name(tmp_path: Path) -> None:
    served = Served(tmp_path, {"CRONMEND_INSTANCE_ID": "../other"})

    refused = served.run("serve")

    assert (refused.code, "CRONMEND_INSTANCE_ID: use at most 40 letters" in refused.err) == (2, True)
