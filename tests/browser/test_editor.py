"""The editor of a new job: described in a sentence, filled in, looked over, saved; a prompt in place of a command."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browsing import Seat
from support.claude_server import ClaudeServer, call, text
from support.conversing import claude, running

pytestmark = [pytest.mark.mission("O15"), pytest.mark.timeout(180)]

__all__ = ["claude", "running"]


def test_a_sentence_fills_in_the_editor_and_saves_nothing(seat: Seat, claude: ClaudeServer, tmp_path: Path) -> None:
    claude.play([[call("fill_in", name="Tidy up", command="sh tidy.sh", schedule="daily at 9:30", effects="none")]])
    before = len(seat.app.json("jobs", "list"))
    page = seat.go("/jobs")
    page.click("#new-job, #first-job")
    page.fill("#f-description", f"Tidy the folder in {tmp_path} each morning")

    page.click("#fill-in")

    expect(page.locator("#editor [role=status]")).to_contain_text("Filled in by Claude. Nothing is saved yet")
    expect(page.locator("#f-name")).to_have_value("Tidy up")
    expect(page.locator("#f-command")).to_have_value("sh tidy.sh")
    expect(page.locator("#f-folder")).to_have_value(str(tmp_path))
    expect(page.locator("#f-effects")).to_have_value("none")
    expect(page.locator("#preview")).to_contain_text("At 09:30")
    expect(page.locator("#f-description")).to_have_value(f"Tidy the folder in {tmp_path} each morning")
    assert len(seat.app.json("jobs", "list")) == before
    page.click("#save")
    expect(page.locator("[data-testid=job-row]", has_text="Tidy up")).to_be_visible()
    saved = next(job for job in seat.app.json("jobs", "list") if job["name"] == "Tidy up")
    assert (saved["command"], saved["scheduleText"], saved["effects"]) == ("sh tidy.sh", "daily at 9:30", "none")
    assert seat.wrong == []


@pytest.mark.mission("L1")
def test_a_prompt_is_made_edited_and_answered(seat: Seat, claude: ClaudeServer) -> None:
    claude.play([[text("Three letters came.")]])
    page = seat.go("/jobs")
    page.click("#new-job, #first-job")
    page.check("#f-target-prompt")
    expect(page.locator("#f-command")).to_be_hidden()
    expect(page.locator("#f-healingEnabled")).to_be_hidden()
    page.fill("#f-name", "digest")
    page.click("#save")
    expect(page.locator(".summary")).to_contain_text("prompt: must not be empty; write what Claude is to do")
    page.fill("#f-prompt", "Count the letters.")
    page.fill("#f-schedule", "0 0 1 1 *")
    page.click("#save")
    row = page.locator("[data-testid=job-row]", has_text="digest")

    row.get_by_role("button", name="Run now").click()

    expect(row).to_contain_text("Healthy", timeout=30_000)
    row.get_by_role("link", name="digest").click()
    expect(page.locator("#job-panel")).to_contain_text("Count the letters.")
    page.click("#edit")
    expect(page.locator("#f-prompt")).to_have_value("Count the letters.")
    expect(page.locator("#f-command")).to_be_hidden()
    page.fill("#f-prompt", "Count the parcels.")
    page.click("#save")
    expect(page.locator("#job-panel")).to_contain_text("Count the parcels.")
    job = next(job for job in seat.app.json("jobs", "list") if job["name"] == "digest")
    assert (job["targetType"], job["prompt"], job["command"]) == ("session", "Count the parcels.", None)
    assert seat.app.json("runs", "list", "--job", str(job["id"]))[0]["status"] == "completed"
    assert [message for message in seat.wrong if "422" not in message] == []


@pytest.mark.mission("L1", "L5")
def test_cleanup_codes_and_pool_are_edited_and_a_wrong_one_is_named(seat: Seat) -> None:
    page = seat.go("/jobs")
    page.click("#new-job, #first-job")
    page.fill("#f-name", "limits")
    page.fill("#f-command", "true")
    page.fill("#f-cleanupCommand", "rm -f lock")
    page.fill("#f-retryOn", "75, x")
    page.fill("#f-pool", "two words")

    page.click("#save")

    expect(page.locator(".summary")).to_contain_text("retryOn")
    expect(page.locator("#pool-problem")).to_contain_text("must be one word")
    expect(page.locator("#f-retryOn")).to_have_value("75, x")
    page.fill("#f-retryOn", "75, 111")
    page.fill("#f-pool", "nas")
    page.click("#save")
    page.locator("[data-testid=job-row]", has_text="limits").get_by_role("link", name="limits").click()
    expect(page.locator("#job-panel")).to_contain_text("after exit code 75, 111 · pool nas")
    saved = next(job for job in seat.app.json("jobs", "list") if job["name"] == "limits")
    assert (saved["cleanupCommand"], saved["retryOn"], saved["pool"]) == ("rm -f lock", [75, 111], "nas")
