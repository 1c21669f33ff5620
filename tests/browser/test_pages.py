"""The pages as a person and an attacker meet them: editor, log, focus, history, hostile text, other sites."""

import http.client
import re
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from support.browsing import Seat
from support.claude_server import ClaudeServer, text
from support.serving import Served

pytestmark = pytest.mark.timeout(180)


def add_job(app: Served, name: str, command: str = "echo hi", *more: str) -> str:
    words = ("--name", name, "--command", command, "--schedule", "0 0 1 1 *", "--no-healing")
    said = app.run("jobs", "add", *words, *more)
    assert said.code == 0, said
    return said.out.strip()


def audit(app: Served) -> int:
    return int(app.json("audit", "--limit", "1")[0]["id"])


@pytest.mark.mission("O1")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_silent(seat: Seat, scheme: Literal["light", "dark"]) -> None:
    job = add_job(seat.app, f"quiet {scheme}", "echo out; echo err >&2; exit 3")
    seat.app.run("jobs", "run", job)
    run = seat.app.json("runs", "list", "--job", job)[0]["id"]
    seat.app.until(lambda: seat.app.json("inbox", "list"))
    seat.page.emulate_media(color_scheme=scheme)
    seat.app.run("sample")
    heal = seat.app.until(lambda: seat.app.json("heals", "list", "--status", "fixed"))[0]["id"]
    project = seat.app.json("projects", "list")[0]["id"]
    things = (f"/jobs/{job}", f"/runs/{run}", f"/heals/{heal}", f"/projects/{project}")
    for path in ("/jobs", "/inbox", "/sessions", "/settings", "/log", "/audit", *things):
        page = seat.go(path)
        page.wait_for_timeout(150)
        found = Axe().run(page)
        serious = [one["id"] for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert serious == [], (path, found.generate_report())
    page = seat.go("/jobs")
    page.click("#new-job")
    page.wait_for_selector("dialog[open]")
    found = Axe().run(page)
    assert [one["id"] for one in found.response["violations"] if one["impact"] in ("serious", "critical")] == []
    assert seat.wrong == []


@pytest.mark.mission("O1")
def test_self_healing_stands_below_approval_with_its_text_and_on(seat: Seat) -> None:
    page = seat.go("/jobs")

    page.click("#new-job, #first-job")

    expect(page.locator("dialog .toggle label")).to_have_text(["Require Approval", "Self-Healing"])
    expect(page.locator("#f-healingEnabled")).to_be_checked()
    toggle = page.locator("dialog .toggle").nth(1)
    expect(toggle).to_contain_text("Detect failures and auto-launch a heal session to fix them.")
    assert "auto-fire" not in page.content().lower()


@pytest.mark.mission("O1")
@pytest.mark.parametrize(
    "schedule", ["* * * * *", "0 9 * * 0", "0 9 13 * 5", "every 30m", "weekdays at 9am", "0 0 1 1 *"]
)
def test_saving_an_untouched_job_writes_nothing(seat: Seat, schedule: str) -> None:
    words = ("--name", "as it is", "--command", "true", "--no-healing", "--env", "A=1", "--tag", "t", "--timeout", "9")
    job = seat.app.run("jobs", "add", *words, "--schedule", schedule).out.strip()
    before, last = seat.app.json("jobs", "show", job), audit(seat.app)
    page = seat.go(f"/jobs/{job}")
    page.click("#edit")

    page.click("#save")

    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("Nothing was changed.")
    after = seat.app.json("jobs", "show", job)
    assert {**after, "lastRun": None, "nextRunAt": None} == {**before, "lastRun": None, "nextRunAt": None}
    told = [event["kind"] for event in seat.app.json("audit") if event["id"] > last and event["jobId"] == int(job)]
    assert "job.updated" not in told


@pytest.mark.mission("L2")
def test_the_preview_is_what_the_engine_fires(seat: Seat) -> None:
    page = seat.go("/jobs")
    page.click("#new-job, #first-job")

    page.fill("#f-schedule", "0 */6 * * *")

    expect(page.locator("#preview")).to_contain_text("Every 6 hours")
    expected = [one["local"] for one in seat.app.json("jobs", "next", "--schedule", "0 */6 * * *", "--count", "10")]
    assert page.locator("#preview li").all_text_contents() == expected
    for sunday in ("0 9 * * 0", "0 9 * * 7"):
        page.fill("#f-schedule", sunday)
        expect(page.locator("#preview")).to_contain_text("Sunday")
    page.fill("#f-schedule", "60 * * * *")
    expect(page.locator("#preview")).to_contain_text("minute 60 is outside 0-59")
    page.fill("#f-name", "x")
    page.fill("#f-command", "true")
    page.click("#save")
    expect(page.locator("#f-schedule")).to_be_focused()


@pytest.mark.mission("L1")
def test_wrong_input_is_listed_linked_and_mended_in_place(seat: Seat) -> None:
    page = seat.go("/jobs")
    page.locator("#new-job").focus()
    page.keyboard.press("Enter")
    page.fill("#f-schedule", "61 * * * *")
    page.fill("#f-command", "true")

    page.click("#save")

    expect(page.locator(".summary a")).to_have_count(2)
    expect(page.locator("#f-name")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#f-name")).to_be_focused()
    page.locator(".summary a").nth(1).click()
    expect(page.locator("#f-schedule")).to_be_focused()
    page.fill("#f-schedule", "0 0 1 1 *")
    page.fill("#f-name", "mended")
    page.click("#save")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#new-job")).to_be_focused()
    expect(page.locator("[data-testid=job-row]", has_text="mended")).to_be_visible()


def test_unsaved_changes_are_not_lost_by_escape(seat: Seat) -> None:
    page = seat.go("/jobs")
    page.click("#new-job")
    page.fill("#f-name", "half written")

    page.keyboard.press("Escape")

    expect(page.locator(".discard")).to_be_visible()
    page.click("[data-keep]")
    expect(page.locator("#f-name")).to_have_value("half written")
    page.keyboard.press("Escape")
    page.click("[data-discard]")
    expect(page.locator("dialog")).to_have_count(0)


@pytest.mark.mission("O1")
def test_the_switch_shows_the_servers_value(seat: Seat) -> None:
    job = add_job(seat.app, "switched")
    page = seat.go(f"/jobs/{job}")
    switch = page.get_by_role("switch")
    expect(switch).to_have_attribute("aria-checked", "false")

    switch.click()

    expect(switch).to_have_attribute("aria-checked", "true")
    assert seat.app.json("jobs", "show", job)["healingEnabled"] is True
    expect(switch).to_be_focused()
    seat.app.run("jobs", "edit", job, "--no-healing")
    expect(switch).to_have_attribute("aria-checked", "false")


def test_a_refused_action_leaves_the_row_and_says_why(seat: Seat) -> None:
    job = add_job(seat.app, "refused")
    page = seat.go("/jobs")
    row = page.locator(f"#job-{job}")
    page.route("**/jobs/*/pause", lambda route: route.fulfill(status=500, body="broken"))

    row.get_by_role("button", name="Pause").click()

    page.wait_for_timeout(300)
    expect(row).to_be_visible()
    expect(row.get_by_role("button", name="Pause")).to_be_enabled()
    page.unroute("**/jobs/*/pause")
    seat.app.run("jobs", "rm", job)
    page.route("**/jobs/rows*", lambda route: route.abort())
    page2 = seat.another()
    page2.goto(seat.url + "/jobs/99999")
    expect(page2.locator("main")).to_contain_text("There is no job 99999.")
    expect(page2.locator("#sidebar")).to_be_visible()


@pytest.mark.mission("L18")
def test_a_log_arrives_in_order_and_follows_its_end(seat: Seat) -> None:
    job = add_job(seat.app, "talker", "for i in $(seq 200); do echo line $i; sleep 0.01; done; sleep 1")
    run = seat.app.run("jobs", "run", job, "--detach").out.strip()
    page = seat.go(f"/runs/{run}")

    expect(page.locator("#log-out")).to_contain_text("line 200", timeout=30_000)

    lines = [line for line in page.locator("#log-out").inner_text().split("\n") if line]
    assert lines == [f"line {number}" for number in range(1, 201)]
    log = page.locator("#log-out")
    assert log.evaluate("node => node.scrollTop + node.clientHeight >= node.scrollHeight - 40")
    log.evaluate("node => { node.scrollTop = 0; }")
    expect(page.locator("#follow-out")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#run-panel")).to_contain_text("Succeeded", timeout=30_000)


@pytest.mark.mission("L18")
def test_a_log_goes_on_after_a_lost_connection_without_loss_or_repeat(seat: Seat) -> None:
    job = add_job(seat.app, "interrupted", "for i in $(seq 150); do echo line $i; sleep 0.03; done")
    run = seat.app.run("jobs", "run", job, "--detach").out.strip()
    page = seat.go(f"/runs/{run}")
    expect(page.locator("#log-out")).to_contain_text("line 20")

    seat.context.set_offline(True)
    page.wait_for_timeout(700)
    seat.context.set_offline(False)

    expect(page.locator("#log-out")).to_contain_text("line 150", timeout=40_000)
    lines = [line for line in page.locator("#log-out").inner_text().split("\n") if line]
    assert lines == [f"line {number}" for number in range(1, 151)]


@pytest.mark.mission("L18")
def test_hostile_output_is_text(seat: Seat) -> None:
    hostile = (
        "printf '<script>window.hit=1</script><img src=x onerror=window.hit=1>\\n"
        "\\033]8;;javascript:window.hit=1\\007link\\033]8;;\\007\\n\\033[2J\\rback\\n'; "
        "head -c 1000000 /dev/zero | tr '\\0' x; echo"
    )
    job = add_job(seat.app, "<b>hostile</b>", hostile)
    seat.app.run("jobs", "run", job)
    run = seat.app.json("runs", "list", "--job", job)[0]["id"]

    page = seat.go(f"/runs/{run}")

    log = page.locator("#log-out")
    expect(log).to_contain_text("more characters; download the log to see them")
    download = page.request.get(f"{seat.url}/runs/{run}/log/out/download").body()
    assert b"<script>window.hit=1</script>" in download
    assert page.evaluate("window.hit") is None
    assert log.locator("a, img, script").count() == 0
    assert page.url.endswith(f"/runs/{run}")
    assert len(page.content()) < 200_000
    expect(page.locator(".crumb")).to_contain_text("<b>hostile</b>")


def test_back_and_reload_show_whole_pages(seat: Seat) -> None:
    job = add_job(seat.app, "went back")
    seat.app.run("jobs", "run", job)
    page = seat.go("/jobs?q=went")
    page.get_by_role("link", name="went back").click()
    page.locator("#history a").first.click()
    expect(page.locator("#run-panel")).to_be_visible()

    page.go_back()
    expect(page.locator("#job-panel")).to_be_visible()
    page.go_back()

    expect(page.locator("#sidebar")).to_be_visible()
    expect(page.locator("#q")).to_have_value("went")
    page.reload()
    expect(page.locator("[data-testid=job-row]")).to_have_count(1)
    body = page.request.get(f"{seat.url}/jobs/rows", headers={"HX-Request": "true"}).text()
    assert "<html" not in body


def test_keys_do_nothing_while_typing_and_work_elsewhere(seat: Seat) -> None:
    job = add_job(seat.app, "keyed")
    page = seat.go("/jobs")
    page.fill("#q", "")

    page.locator("#q").press_sequentially("renpj?")

    expect(page.locator("#q")).to_have_value("renpj?")
    expect(page.locator("dialog")).to_have_count(0)
    page.goto(seat.url + f"/jobs/{job}")
    page.locator("body").press("e")
    expect(page.locator("dialog[open]")).to_be_visible()


def test_single_keys_are_silent_while_a_word_is_composed_and_when_switched_off(seat: Seat) -> None:
    job = add_job(seat.app, "composed")
    page = seat.go(f"/jobs/{job}")
    press = (
        "key => document.body.dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true, cancelable: true}))"
    )
    assert page.evaluate(press, {"key": "e", "isComposing": True}), "nobody took it"
    seat.app.run("settings", "set", "CRONMEND_SINGLE_KEYS", "off")
    page.reload()
    page.wait_for_load_state()

    page.keyboard.type("repn?")

    expect(page.locator("dialog")).to_have_count(0)
    assert seat.app.json("runs", "list", "--job", job) == []
    page.keyboard.press("Alt+e")
    expect(page.locator("dialog[open]")).to_be_visible()
    seat.app.run("settings", "set", "CRONMEND_SINGLE_KEYS", "on")


def test_a_page_that_is_left_ends_its_stream(seat: Seat) -> None:
    pages = [seat.another() for _ in range(4)]
    for page in pages:
        page.goto(seat.url + "/jobs")
        page.wait_for_timeout(200)
    seat.app.until(lambda: seat.app.json("status")["openStreams"] >= 4)

    for page in pages:
        page.close()
    seat.page.goto("about:blank")

    seat.app.until(lambda: seat.app.json("status")["openStreams"] == 0)


@pytest.mark.mission("B9")
@pytest.mark.parametrize(
    "change",
    [
        {"Host": "evil.test"},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Cookie": ""},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "0" * 64},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_only_our_own_page_may_change_anything(seat: Seat, change: dict[str, str]) -> None:
    job = add_job(seat.app, "guarded")
    page = seat.go("/jobs")
    token = re.search(r'X-CSRF-Token":"(\w+)"', page.locator("body").get_attribute("hx-headers:inherited") or "")
    assert token
    cookie = seat.context.cookies()[0]
    host = urlsplit(seat.url).netloc
    good = {
        "Host": host,
        "Origin": seat.url,
        "Cookie": f"{cookie['name']}={cookie['value']}",
        "X-CSRF-Token": token.group(1),
        "HX-Request": "true",
    }

    def post(headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(host, timeout=20)
        sent = {name: value for name, value in headers.items() if value}
        connection.putrequest("POST", f"/jobs/{job}/pause", skip_host="Host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    assert 400 <= post({**good, **change}) < 500

    assert seat.app.json("jobs", "show", job)["pausedBy"] is None
    assert post(good) == 200
    assert seat.app.json("jobs", "show", job)["pausedBy"] == "person"


@pytest.mark.mission("B9")
def test_a_login_key_opens_once_and_the_cookie_is_out_of_reach(seat: Seat, chromium: Browser) -> None:
    login = seat.app.call("POST", "/app/activate")[1]["url"]
    first, second = seat.another(), chromium.new_context().new_page()
    first.goto(login)
    expect(first.locator("#sidebar")).to_be_visible()
    assert "k=" not in first.url

    second.goto(login)

    expect(second.locator("body")).to_contain_text("has been used or is too old")
    (cookie,) = seat.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    answer = first.request.get(seat.url + "/jobs")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert login not in (seat.app.home / "app.log").read_text()


@pytest.mark.mission("O5")
def test_settings_save_at_once_and_bad_values_are_named(seat: Seat) -> None:
    page = seat.go("/settings")

    page.fill("#s-most", "2")
    page.locator("#s-most").press("Tab")

    expect(page.locator("#toasts")).to_contain_text("Saved.")
    seat.app.until(
        lambda: (
            seat.app.json("status")["settings"]["MAX_CONCURRENT_AUTO_HEALS"] == {"value": 2, "origin": "settings page"}
        )
    )
    page.fill("#s-most", "none")
    page.locator("#s-most").press("Tab")
    expect(page.locator("#toasts .bad")).to_contain_text("MAX_CONCURRENT_AUTO_HEALS")
    page.select_option("#s-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.select_option("#s-theme", "system")


@pytest.mark.mission("O5", "B9")
def test_a_key_is_tested_and_never_stored_where_there_is_no_keychain(
    chromium: Browser, serve: Callable[..., Served]
) -> None:
    key = "sk-ant-canary-keychain-000000"
    with ClaudeServer([[text("hi")]]) as claude:
        served = serve(
            ANTHROPIC_API_KEY="sk-ant-good",
            ANTHROPIC_BASE_URL=claude.url,
            PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring",
        )
        context = chromium.new_context()
        page = context.new_page()
        page.goto(served.call("POST", "/app/activate")[1]["url"])
        page.goto(page.url.replace("/jobs", "/settings"))
        expect(page.locator("#settings-panel")).to_contain_text("The key comes from the environment.")

        page.click("#test-key")
        expect(page.locator("#toasts")).to_contain_text("The key works.")
        page.fill("#s-key", key)
        page.click("#save-key")

        expect(page.locator("#toasts .bad")).to_contain_text("This system has no keychain that can be used.")
        context.close()
    for file in served.home.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), file


def test_the_first_run_offers_the_sample(chromium: Browser, serve: Callable[..., Served]) -> None:
    served = serve()
    context = chromium.new_context()
    page = context.new_page()
    page.goto(served.call("POST", "/app/activate")[1]["url"])

    page.get_by_role("button", name="Try a sample job that fails and heals").click()

    expect(page.locator("#job-panel")).to_contain_text("Healthy", timeout=30_000)
    expect(page.locator("#job-panel")).to_contain_text("Fixed")
    context.close()


@pytest.mark.mission("B1")
def test_a_job_is_asked_whether_it_ran_at_a_time(seat: Seat) -> None:
    job = add_job(seat.app, "asked")
    page = seat.go(f"/jobs/{job}")

    page.fill("#why-at", "2020-01-01 09:00")
    page.click("#why-ask")

    expect(page.locator("#why")).to_have_text("The job did not exist yet.")
    page.fill("#why-at", "whenever")
    page.locator("#why-at").press("Enter")
    expect(page.locator("#why")).to_contain_text("“whenever” is not a time")
    assert seat.app.json("jobs", "why", job, "2020-01-01 09:00")["kind"] == "notASlot"


@pytest.mark.mission("L7")
def test_words_are_found_in_a_log_and_lead_to_their_place(seat: Seat) -> None:
    command = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo line $i of many; done; echo ECONNREFUSED at last"
    job = add_job(seat.app, "searched", command)
    seat.app.run("jobs", "run", job)
    run = seat.app.json("runs", "list", "--job", job)[0]["id"]
    page = seat.go(f"/runs/{run}")

    page.fill("#find-out", "line 1500 of")

    expect(page.locator("#found-out")).to_contain_text("1 place")
    page.get_by_role("link", name="Line 1,500").click()
    expect(page.locator("#log-out")).to_contain_text("line 1500 of many")
    expect(page.locator("#log-out")).not_to_contain_text("ECONNREFUSED at last")
    page.get_by_role("link", name="go to the end").click()
    expect(page.locator("#log-out")).to_contain_text("ECONNREFUSED at last")
    assert seat.wrong == []


@pytest.mark.mission("L7")
def test_what_happened_is_a_page_by_kind_and_by_job(seat: Seat) -> None:
    job = add_job(seat.app, "told of")
    seat.app.run("jobs", "pause", job)
    add_job(seat.app, "another")
    page = seat.go(f"/jobs/{job}")

    page.click("#open-audit")

    rows = page.locator("[data-testid=event]")
    expect(rows.filter(has_text="job.paused")).to_have_count(1)
    expect(rows.filter(has_text="another")).to_have_count(0)
    page.get_by_role("radio", name="Heal", exact=True).check()
    expect(page.locator("#audit")).to_contain_text("Nothing of that kind has happened.")
    page.goto(seat.url + "/audit?kind=job")
    expect(rows.filter(has_text="another").first).to_contain_text("job.created")
    assert seat.wrong == []


@pytest.mark.mission("L2")
def test_a_job_whose_zone_is_gone_is_repaired_by_one_click(seat: Seat) -> None:
    served = seat.app
    job = served.run("jobs", "add", "--name", "zoned", "--command", "true", "--schedule", "0 9 * * *").out.strip()
    served.alter(
        "UPDATE cron_jobs SET timezone = 'US/Pacific-New', next_run_at = '2026-01-01T00:00:00.000Z' WHERE id = ?", job
    )
    served.until(lambda: served.json("jobs", "show", job)["blockedReason"])
    page = seat.go(f"/jobs/{job}")
    expect(page.locator("#job-panel .banner")).to_contain_text(
        "The time zone US/Pacific-New is not known here any more"
    )

    page.get_by_role("button", name="Use US/Pacific", exact=True).click()

    expect(page.locator("#job-panel .banner")).to_have_count(0)
    expect(page.locator("#job-panel")).to_contain_text("US/Pacific")
    shown = served.json("jobs", "show", job)
    assert (shown["timezone"], shown["blockedReason"], shown["isActive"]) == ("US/Pacific", None, True)
    assert shown["nextRunAt"]
    assert shown["slotRate"] == {"due": 0, "green": 0, "since": None}
