"""Sessions in the browser: started by hand, gone on with, stopped, archived; a failed job fixed by hand."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browsing import Seat
from support.claude_server import ClaudeServer, Fault, call, text
from support.conversing import claude, running

pytestmark = pytest.mark.timeout(180)

__all__ = ["claude", "running"]


@pytest.mark.mission("O5")
def test_a_session_is_started_and_goes_on_in_two_windows(seat: Seat, claude: ClaudeServer, tmp_path: Path) -> None:
    claude.play(
        [
            [text("I look at it."), call("read", file_path="notes.txt")],
            [text("It says <b>blue</b>.")],
            [text("Still blue.")],
            Fault(slow_secs=60),
        ]
    )
    (tmp_path / "notes.txt").write_text("blue\n")
    seat.app.run("projects", "add", str(tmp_path), "--name", "notes")
    page = seat.go("/sessions")
    page.click("#new-session")
    page.select_option("#s-project", label=f"notes – {tmp_path}")
    page.fill("#s-prompt", "What colour?")

    page.click("#start-session")

    expect(page.locator("#transcript")).to_contain_text("It says <b>blue</b>.", timeout=30_000)
    expect(page.locator("#session-panel")).to_contain_text("Ready")
    other = seat.another()
    other.goto(page.url)
    page.fill("#say", "Sure?")
    page.locator("#say").press("Control+Enter")
    for window in (page, other):
        expect(window.locator("#transcript")).to_contain_text("Still blue.", timeout=30_000)
    expect(page.locator("#say")).to_have_value("")
    assert seat.app.json("sessions", "show", "1")["status"] == "idle"

    page.fill("#say", "Think long.")
    page.click("#send")
    page.click("#stop-session")
    expect(page.locator("#session-panel")).to_contain_text("Stopped.", timeout=20_000)
    page.click("#archive")
    page.wait_for_url("**/sessions")
    expect(page.locator("[data-testid=session-row]").first).to_contain_text("Archived")
    assert seat.wrong == []


@pytest.mark.mission("O11")
def test_fix_with_ai_is_filled_in_and_holds_the_job(seat: Seat, claude: ClaudeServer, tmp_path: Path) -> None:
    claude.play([[text("The script ends with 7.")]])
    words = ("--name", "by hand", "--command", "echo no such table >&2; exit 7", "--schedule", "0 0 1 1 *")
    job = seat.app.run("jobs", "add", *words, "--project", str(tmp_path), "--no-healing").out.strip()
    seat.app.run("jobs", "run", job)
    (card,) = seat.app.until(lambda: seat.app.json("inbox", "list"))
    page = seat.go(f"/inbox/{card['id']}")
    page.wait_for_load_state()

    page.locator("body").press("f")

    expect(page.locator("#session-title")).to_have_text("Fix by hand with AI")
    assert "no such table" in page.locator("#s-prompt").input_value()
    expect(page.locator("#session-dialog")).to_contain_text("by hand is paused while you work.")
    page.click("#start-session")
    expect(page.locator("#transcript")).to_contain_text("The script ends with 7.", timeout=30_000)
    shown = seat.app.json("jobs", "show", job)
    assert (shown["isActive"], shown["pausedBy"]) == (False, "session")
    other = seat.another()
    other.goto(seat.url + "/jobs")
    expect(other.locator(f"#job-{job}")).to_contain_text("Paused while you fix it")
    page.click("#archive")
    page.wait_for_url("**/sessions")
    assert seat.app.json("jobs", "show", job)["isActive"]
    expect(other.locator(f"#job-{job}")).to_contain_text("Failing")
    assert seat.wrong == []


@pytest.mark.mission("O4", "O11")
def test_the_row_of_a_job_says_that_it_is_paused_for_a_heal(seat: Seat, claude: ClaudeServer, tmp_path: Path) -> None:
    repair = call("write", file_path="work.sh", content="echo fine\n")
    claude.play(
        [
            Fault(slow_secs=3, blocks=(repair,), stop_reason="tool_use"),
            [call("run_job")],
            [call("resume_schedule", root_cause="the script was gone", fix="wrote it")],
            [text("Done.")],
        ]
    )
    words = ("--name", "row", "--command", "sh work.sh", "--schedule", "0 0 1 1 *", "--project", str(tmp_path))
    job = seat.app.run("jobs", "add", *words, "--effects", "none").out.strip()
    page = seat.go("/jobs")
    row = page.locator(f"#job-{job}")
    page.evaluate("window.kept = true")

    run = seat.app.json("jobs", "run", job, "--detach")["runId"]

    expect(row).to_contain_text("Paused · healing", timeout=15_000)
    session = row.get_by_role("link", name="session")
    expect(session).to_be_visible()
    shown = seat.app.json("jobs", "show", job)
    assert (shown["isActive"], shown["pausedBy"][:4]) == (False, "heal")
    assert [card for card in seat.app.json("inbox", "list") if card["jobId"] == int(job)] == [], (
        "no alert beside a heal"
    )
    seat.app.until(lambda: seat.app.ask("SELECT id FROM events WHERE kind LIKE 'toast.%' AND run_id = ?", run))
    expect(row).to_contain_text("Healthy", timeout=30_000)
    assert page.evaluate("window.kept"), "without a reload"
    shown = seat.app.json("jobs", "show", job)
    assert (shown["isActive"], shown["consecutiveHealFailures"]) == (True, 0)
    assert len(seat.app.ask("SELECT id FROM events WHERE kind LIKE 'toast.%' AND run_id = ?", run)) == 1
