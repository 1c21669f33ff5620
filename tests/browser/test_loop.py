"""The whole loop in the browser: a job is made in the editor, breaks, heals and turns green without a reload."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browsing import Seat

pytestmark = [pytest.mark.mission("O1", "O4", "O5"), pytest.mark.timeout(180)]


def test_a_job_made_in_the_editor_breaks_and_heals_before_ones_eyes(seat: Seat, tmp_path: Path) -> None:
    script = tmp_path / "work.sh"
    script.write_bytes(b"#!/bin/sh\r\necho well\r\n")
    script.chmod(0o755)
    page = seat.go("/jobs")
    page.click("#new-job, #first-job")
    page.fill("#f-name", "night work")
    page.select_option("#f-project", "folder")
    page.fill("#f-folder", str(tmp_path))
    page.fill("#f-command", "./work.sh")
    page.fill("#f-schedule", "0 0 1 1 *")
    page.select_option("#f-effects", "none")
    page.click("#save")
    row = page.locator("[data-testid=job-row]", has_text="night work")
    expect(row).to_contain_text("New")
    page.evaluate("window.kept = true")

    row.get_by_role("button", name="Run now").click()

    expect(row).to_contain_text("Healthy", timeout=30_000)
    assert page.evaluate("window.kept"), "the page was not reloaded"
    assert script.read_bytes() == b"#!/bin/sh\necho well\n"
    row.get_by_role("link", name="night work").click()
    expect(page.locator("#history tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Fixed").click()
    expect(page.locator("#heal-panel")).to_contain_text("Verified by a successful run")
    expect(page.locator("#diff")).to_contain_text("echo well")
    expect(page.locator("#transcript")).to_contain_text("run_job")
    assert seat.wrong == []


def test_what_cannot_be_healed_is_in_the_inbox_and_dismissed_by_enter(seat: Seat, tmp_path: Path) -> None:
    words = (
        "--name",
        "hopeless",
        "--command",
        "echo no >&2; exit 7",
        "--schedule",
        "0 0 1 1 *",
        "--project",
        str(tmp_path),
    )
    job = seat.app.run("jobs", "add", *words).out.strip()
    page = seat.go("/inbox")

    seat.app.run("jobs", "run", job)

    expect(page.locator("[data-testid=card]", has_text="hopeless needs you")).to_be_visible(timeout=30_000)
    page.locator("[data-testid=card]", has_text="hopeless needs you").click()
    expect(page.locator("[data-testid=pane]")).to_contain_text("no built-in rule fits")
    page.wait_for_load_state()
    page.locator("body").press("Enter")
    expect(page.locator("[data-testid=card]", has_text="hopeless")).to_have_count(0)
    statuses = [card["status"] for card in json.loads(seat.app.run("inbox", "list", "--status", "all", "--json").out)]
    assert statuses[0] == "dismissed"


@pytest.mark.mission("O10")
def test_escalation_keys_start_nothing_by_enter(seat: Seat, tmp_path: Path) -> None:
    words = ("--name", "thrice", "--command", "exit 7", "--schedule", "0 0 1 1 *", "--project", str(tmp_path))
    job = seat.app.run("jobs", "add", *words).out.strip()
    for _ in range(3):
        seat.app.run("jobs", "run", job)
        seat.app.until(
            lambda: seat.app.json("jobs", "show", job)["isActive"] and not seat.app.json("status")["openHealCount"]
        )
    seat.app.run("jobs", "run", job)
    card = seat.app.until(
        lambda: next((one for one in seat.app.json("inbox", "list") if one["actionKind"] == "cron.failure_heal"), None)
    )
    page = seat.go(f"/inbox/{card['id']}")
    heals = len(seat.app.json("heals", "list", "--job", job))
    expect(page.locator("#pane-title")).to_have_text("This cron job needs your attention")
    expect(page.locator("#pane")).to_contain_text("thrice needs human attention")
    expect(page.locator("#pane")).to_contain_text("3 failed self-heals — last category: unknown")

    page.locator("body").press("f")
    expect(page.locator("dialog.question")).to_contain_text("This starts a paid session.")
    page.keyboard.press("Enter")

    expect(page.locator("dialog.question")).to_have_count(0)
    page.locator("body").press("Enter")
    seat.app.until(lambda: seat.app.json("inbox", "show", str(card["id"]))["status"] == "approved")
    assert len(seat.app.json("heals", "list", "--job", job)) == heals


@pytest.mark.mission("O14")
def test_a_run_that_asks_first_is_approved_in_the_inbox(seat: Seat, tmp_path: Path) -> None:
    words = ("--name", "asks first", "--command", "echo x > ran", "--cwd", str(tmp_path), "--require-approval")
    assert seat.app.run("jobs", "add", *words, "--at", "in 1s", "--no-healing").code == 0
    seat.app.until(lambda: [one for one in seat.app.json("inbox", "list") if one["title"] == "Run asks first?"])
    page = seat.go("/inbox")
    page.locator("[data-testid=card]", has_text="Run asks first?").click()
    expect(page.locator("[data-testid=pane]")).to_contain_text("echo x > ran")
    page.wait_for_load_state()
    assert not (tmp_path / "ran").exists()

    page.locator("body").press("Enter")

    seat.app.until((tmp_path / "ran").exists)
    expect(page.locator("[data-testid=card]", has_text="asks first")).to_have_count(0)


@pytest.mark.mission("O14")
def test_a_rejection_keeps_every_letter_of_its_reason(seat: Seat, tmp_path: Path) -> None:
    words = ("--name", "not today", "--command", "echo x > ran", "--cwd", str(tmp_path), "--require-approval")
    seat.app.run("jobs", "add", *words, "--at", "in 1s", "--no-healing")
    card = seat.app.until(
        lambda: next((one for one in seat.app.json("inbox", "list") if "not today" in one["title"]), None)
    )
    page = seat.go(f"/inbox/{card['id']}")

    page.locator("body").press("r")
    page.locator("#reason").press_sequentially("the bank is closed!")
    page.locator("#reject").click()

    decided = seat.app.until(
        lambda: found if (found := seat.app.json("inbox", "show", str(card["id"])))["status"] == "rejected" else None
    )
    assert decided["reason"] == "the bank is closed!"
    assert seat.app.json("runs", "list")[0]["skipReason"] == "approvalRejected"


@pytest.mark.mission("O10", "O14")
def test_legacy_and_unreadable_cards_have_views_with_reject_alone(seat: Seat) -> None:
    plants = {"legacy": '{"healAttemptId": 1}', "unreadable": '{"jobId": "one"}'}
    for target, payload in plants.items():
        seat.app.alter(
            "INSERT INTO cli_pending_actions (action_kind, target, title, preview, payload, status, created_at)"
            " VALUES ('cron.failure_heal', ?, ?, 'p', ?, 'pending', '2026-12-01T09:00:00.000Z')",
            *(target, target, payload),
        )
    said = {
        "legacy": "This older request is being started for you; no approval is needed.",
        "unreadable": "This item can't be read.",
    }
    for title, text in said.items():
        page = seat.go("/inbox")
        page.locator("[data-testid=card]", has_text=title).click()
        pane = page.locator("[data-testid=pane]")
        expect(pane).to_contain_text(text)
        expect(pane.locator("#approve, #dismiss, #fix")).to_have_count(0)

        page.fill("#reason", "old")
        page.click("#reject")

        expect(page.locator("[data-testid=card]", has_text=title)).to_have_count(0)


@pytest.mark.mission("O14")
def test_a_dismissal_and_a_snooze_are_taken_back_by_z(seat: Seat, tmp_path: Path) -> None:
    words = ("--name", "taken back", "--command", "echo no >&2; exit 7", "--schedule", "0 0 1 1 *", "--no-healing")
    seat.app.run("jobs", "run", seat.app.run("jobs", "add", *words).out.strip())
    card = seat.app.until(
        lambda: next((one for one in seat.app.json("inbox", "list") if "taken" in one["title"]), None)
    )
    for key in ("Enter", "h"):
        page = seat.go(f"/inbox/{card['id']}")
        page.wait_for_load_state()

        page.locator("body").press(key)

        expect(page.locator("#decided")).to_contain_text("taken back failed")
        expect(page.locator("[data-testid=card]", has_text="taken back")).to_have_count(0)
        page.locator("body").press("z")
        expect(page.locator("[data-testid=card]", has_text="taken back")).to_be_visible()
        again = seat.app.json("inbox", "show", str(card["id"]))
        assert (again["status"], again["snoozedUntil"], again["resolution"]) == ("pending", None, None)
