"""The inbox in the browser: escalations, approvals, proposals, stillness, and two windows that answer one card."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from support.browsing import Seat

pytestmark = [pytest.mark.mission("O14"), pytest.mark.timeout(180)]


def plant(seat: Seat, kind: str, target: str, payload: dict[str, Any], title: str | None = None) -> str:
    """A card as a session, or an older version, would have left it; its id."""
    seat.app.alter(
        "INSERT INTO cli_pending_actions (action_kind, target, title, preview, payload, status, created_at)"
        " VALUES (?, ?, ?, 'p', ?, 'pending', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
        *(kind, target, title or target, json.dumps(payload)),
    )
    return next(str(card["id"]) for card in seat.app.json("inbox", "list") if card["title"] == (title or target))


def card(seat: Seat, number: str) -> dict[str, Any]:
    found: dict[str, Any] = seat.app.json("inbox", "show", number)
    return found


def open_card(seat: Seat, number: str) -> Page:
    page = seat.go(f"/inbox/{number}")
    page.wait_for_load_state()
    return page


def add(seat: Seat, name: str, *more: str, command: str = "exit 7") -> str:
    words = ("--name", name, "--command", command, "--schedule", "0 0 1 1 *", *more)
    return seat.app.run("jobs", "add", *words).out.strip()


def escalated(seat: Seat, name: str) -> tuple[str, str]:
    """A job whose three heals have failed, and its escalation card."""
    job = add(seat, name)
    seat.app.alter("UPDATE cron_jobs SET consecutive_heal_failures = 3 WHERE id = ?", job)
    seat.app.run("jobs", "run", job)
    found = seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if one["jobId"] == int(job)])
    assert len(found) == 1
    return job, str(found[0]["id"])


@pytest.mark.mission("O10", "O12")
def test_an_escalation_goes_away_by_itself_when_the_job_is_green_again(seat: Seat) -> None:
    job, number = escalated(seat, "came back")
    page = open_card(seat, number)
    expect(page.locator("#pane-title")).to_have_text("This cron job needs your attention")
    expect(page.locator("#pane")).to_contain_text("came back needs human attention")
    expect(page.locator("#pane")).to_contain_text("3 failed self-heals — last category: unknown")
    page.evaluate("window.kept = true")

    seat.app.run("jobs", "edit", job, "--command", "true")
    seat.app.run("jobs", "run", job)

    expect(page.locator("#pane [role=status]")).to_contain_text("the job succeeded", timeout=15_000)
    expect(page.locator("[data-testid=card]", has_text="came back")).to_have_count(0)
    assert page.evaluate("window.kept"), "without a reload"
    assert seat.app.json("jobs", "show", job)["consecutiveHealFailures"] == 0
    assert card(seat, number)["resolution"] == "auto"


@pytest.mark.mission("O10")
def test_the_escalation_pane_has_three_verbs_and_starts_one_heal(seat: Seat) -> None:
    job, number = escalated(seat, "three verbs")
    page = open_card(seat, number)
    expect(page.locator("#pane footer :is(button, a.button)")).to_have_text(
        ["Fix it F", "View details O", "Dismiss Enter"]
    )
    expect(page.locator("#pane header #snooze")).to_be_visible()
    page.locator("body").press("o")
    page.wait_for_url(f"**/jobs/{job}")
    expect(page.locator("#nav-jobs")).to_have_attribute("aria-current", "page")
    page = open_card(seat, number)

    page.locator("body").press("f")
    page.locator("dialog.question .primary").dblclick()

    seat.app.until(lambda: seat.app.json("heals", "list", "--job", job))
    heals = seat.app.json("heals", "list", "--job", job)
    assert [heal["isManual"] for heal in heals] == [True]
    seat.app.until(lambda: seat.app.json("jobs", "show", job)["isActive"])
    assert seat.app.json("jobs", "show", job)["consecutiveHealFailures"] == 3, "a fix by hand never counts"


def test_another_window_answers_first(seat: Seat) -> None:
    number = plant(seat, "cron.create", "s:twice", {"draft": {"name": "twice", "command": "true"}, "sessionId": 1})
    page = open_card(seat, number)
    held: list[Route] = []
    page.route("**/resolve", lambda route, _: held.append(route))
    page.click("#reject-open")
    page.locator("#reason").press_sequentially("no!")
    page.click("#reject")
    expect(page.locator("#pane")).to_have_attribute("aria-busy", "true")
    page.locator("body").press("Escape")
    page.locator("body").press("Enter")
    expect(page.locator("#pane")).to_have_attribute("aria-busy", "true")

    assert seat.app.run("inbox", "resolve", number, "reject", "--reason", "first").code == 0
    held[0].continue_()

    expect(page.locator("#pane [role=status]")).to_contain_text("Already decided: rejected")
    assert card(seat, number)["reason"] == "first"
    assert len(held) == 1, "one answer at a time"


def test_a_proposed_job_is_made_when_it_is_approved(seat: Seat) -> None:
    draft = {"name": "proposed", "command": "echo tidy", "schedule": "daily at 9am"}
    number = plant(seat, "cron.create", "s:proposed", {"draft": draft, "sessionId": 1})
    page = open_card(seat, number)
    expect(page.locator("#pane")).to_contain_text("echo tidy")
    expect(page.locator("#pane")).to_contain_text("Next runs:")

    page.locator("body").press("Enter")

    made = seat.app.until(lambda: [one for one in seat.app.json("jobs", "list") if one["name"] == "proposed"])
    assert card(seat, number)["jobId"] == made[0]["id"]
    assert made[0]["scheduleText"] == "daily at 9am"


def test_a_draft_that_has_become_impossible_stays_open_and_says_why(seat: Seat) -> None:
    draft = {"name": "gone", "command": "true", "schedule": "daily at 9am", "project": "/nowhere/at/all"}
    number = plant(seat, "cron.create", "s:gone", {"draft": draft, "sessionId": 1})
    page = open_card(seat, number)

    page.locator("body").press("Enter")

    expect(page.locator("#toasts")).to_contain_text("project: there is no folder /nowhere/at/all")
    assert card(seat, number)["status"] == "pending"


def test_a_project_is_forgotten_with_its_jobs_and_keeps_its_files(seat: Seat, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("here")
    job = add(seat, "leaves", "--project", str(tmp_path), command="true")
    project = seat.app.json("jobs", "show", job)["projectId"]
    payload = {"projectId": project, "name": "p", "folder": str(tmp_path), "jobs": 1, "sessions": 0, "why": "over"}
    number = plant(seat, "project.delete", f"project:{project}", {**payload, "sessionId": 1})
    page = open_card(seat, number)
    expect(page.locator("#pane")).to_contain_text(
        "1 job with their history and 0 sessions go. The folder and its files"
    )

    page.locator("body").press("Enter")

    seat.app.until(lambda: card(seat, number)["status"] == "approved")
    assert str(project) not in [str(one["id"]) for one in seat.app.json("projects", "list")]
    assert seat.app.run("jobs", "show", job).code == 3
    assert (tmp_path / "kept.txt").read_text() == "here"


def test_new_cards_never_push_the_one_that_is_read(seat: Seat) -> None:
    job = add(seat, "first alert", "--no-healing")
    seat.app.run("jobs", "run", job)
    first = seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if "first alert" in one["title"]])[0]
    page = open_card(seat, str(first["id"]))
    row = page.locator(f"#card-{first['id']}")
    before = row.bounding_box()

    seat.app.run("jobs", "run", add(seat, "second alert", "--no-healing"))

    expect(page.locator("#fresh")).to_have_text("1 new ↑", timeout=15_000)
    expect(page.locator("[data-testid=card]", has_text="second alert")).to_have_count(0)
    expect(page.locator("#pane-title")).to_have_text("first alert failed")
    assert before is not None
    page.click("#fresh")
    expect(page.locator("[data-testid=card]", has_text="second alert")).to_be_visible()
    expect(page.locator("#pane-title")).to_have_text("first alert failed")


def test_after_a_decision_the_next_card_has_the_focus(seat: Seat) -> None:
    for name in ("one goes", "next comes"):
        seat.app.run("jobs", "run", add(seat, name, "--no-healing"))
    number = seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if "one goes" in one["title"]])[0]
    page = open_card(seat, str(number["id"]))

    page.locator("body").press("Enter")

    expect(page.locator("#decided")).to_contain_text("one goes failed")
    expect(page.locator("#pane-title")).to_be_focused()
    assert seat.wrong == []


@pytest.mark.mission("O11")
def test_auto_fix_flips_in_place_and_view_job_navigates(seat: Seat) -> None:
    job = add(seat, "flip me", "--no-healing")
    seat.app.run("jobs", "run", job)
    found = seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if "flip me" in one["title"]])[0]
    page = open_card(seat, str(found["id"]))

    page.locator("body").press("a")

    expect(page.locator("#toasts")).to_contain_text("Self-Healing is on for flip me.")
    expect(page.locator("#healing-switch")).to_have_attribute("aria-checked", "true")
    assert f"/inbox/{found['id']}" in page.url
    assert seat.app.json("jobs", "show", job)["healingEnabled"]
    page.locator("body").press("o")
    page.wait_for_url(f"**/jobs/{job}")


@pytest.mark.mission("O11")
def test_typing_in_a_reason_triggers_nothing(seat: Seat) -> None:
    number = plant(seat, "cron.create", "s:typed", {"draft": {"name": "typed", "command": "true"}, "sessionId": 1})
    page = open_card(seat, number)
    page.click("#reject-open")

    page.locator("#reason").press_sequentially("fohaernz? jk gi")

    assert page.url.endswith(f"/inbox/{number}")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#reason")).to_have_value("fohaernz? jk gi")
    assert card(seat, number)["status"] == "pending"


def test_an_approval_of_a_job_that_changed_is_not_offered(seat: Seat) -> None:
    job = seat.app.run(
        *("jobs", "add", "--name", "changed", "--command", "true", "--at", "in 1s", "--require-approval"),
    ).out.strip()
    found = seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if "Run changed?" in one["title"]])[0]
    page = open_card(seat, str(found["id"]))
    expect(page.locator("#approve")).to_be_visible()

    seat.app.run("jobs", "edit", job, "--command", "rm -r everything")

    expect(page.locator("#pane")).to_contain_text("The job was changed since this was asked", timeout=15_000)
    expect(page.locator("#approve")).to_have_count(0)
    seat.app.alter("UPDATE cron_runs SET approval_expires_at = '2026-12-01T09:00:00.000Z' WHERE id = ?", found["runId"])
    seat.app.run("jobs", "edit", job, "--tag", "wake")
    expect(page.locator("#pane")).to_contain_text("without an answer. The run was skipped.", timeout=45_000)
    expect(page.locator("#pane footer")).to_have_count(0)
