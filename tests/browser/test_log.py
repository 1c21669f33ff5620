"""The app's own log as a page: its prefixes are filters, and what is new arrives by itself."""

import pytest
from playwright.sync_api import expect
from support.browsing import Seat

pytestmark = [pytest.mark.mission("O16"), pytest.mark.timeout(180)]


def write(seat: Seat, *lines: str) -> None:
    with (seat.app.home / "app.log").open("a") as log:
        log.writelines(f"{line}\n" for line in lines)


def test_the_prefixes_are_filters(seat: Seat) -> None:
    words = ("--name", "logged", "--command", "exit 7", "--schedule", "0 0 1 1 *")
    seat.app.run("jobs", "run", seat.app.run("jobs", "add", *words).out.strip())
    seat.app.until_heal("abandoned")
    write(
        seat,
        "2026-12-01 09:00:00,001 INFO [self-repair] monitor: disabled",
        "2026-12-01 09:00:01,002 ERROR [engine] dispatcher failed; it goes on",
        "Traceback (most recent call last):",
        "ValueError: <b>no</b> [cron-heal] in here",
    )
    page = seat.go("/settings")
    page.click("#open-log")
    entries = page.locator("[data-testid=log-entry]")
    expect(page.get_by_text("guard").or_(entries.filter(has_text="healed")).first).to_be_visible()
    found = {}
    for prefix in ("[cron-heal]", "[CronHeal]", "[self-repair]", "[engine]"):
        page.get_by_role("radio", name=prefix, exact=True).check()
        expect(entries.first).to_contain_text(prefix)
        expect(page.locator("[data-testid=log-entry] .mono").filter(has_not_text=prefix)).to_have_count(0)
        found[prefix] = entries.all_inner_texts()

    assert any("healed" in text for text in found["[cron-heal]"])
    assert any("is abandoned" in text for text in found["[CronHeal]"])
    assert len(found["[self-repair]"]) == 1
    assert any("ValueError: <b>no</b>" in text for text in found["[engine]"]), "a traceback stays with its entry"

    page.get_by_role("radio", name="All", exact=True).check()
    page.check("#log-grave")
    expect(entries.filter(has_text="dispatcher failed")).to_have_count(1)
    expect(entries.filter(has_text="monitor: disabled")).to_have_count(0)
    assert seat.wrong == []


def test_new_entries_arrive_and_words_are_found(seat: Seat) -> None:
    page = seat.go("/log")
    page.keyboard.press("/")
    page.keyboard.type("needle")
    expect(page.locator("#entries")).to_contain_text("No entry matches.")

    write(seat, "2026-12-01 09:00:02,003 INFO [engine] a Needle in the hay")

    expect(page.locator("[data-testid=log-entry]")).to_have_count(1, timeout=10_000)
    expect(page.locator("[data-testid=log-entry]")).to_contain_text("a Needle in the hay")
    expect(page.locator("#log-q")).to_have_value("needle")
