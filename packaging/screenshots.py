"""Pictures of every screen in light and dark, from a running app that has really healed something.

    .venv/bin/python packaging/screenshots.py FOLDER

Needs the development environment and Chromium.
"""

import contextlib
import pathlib
import sys
import tempfile

from playwright.sync_api import Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.serving import Served  # noqa: E402 - a real serve process, as the tests start it

SIZES = {"wide": (1280, 800), "narrow": (900, 700)}


def prepare(served: Served) -> None:
    """The sample has been healed; two more jobs, one of them broken beyond the playbook."""
    served.run("sample")
    served.until_heal("fixed")
    add = ("jobs", "add", "--project", str(served.person))
    served.run(*add, "--name", "nightly backup", "--command", "echo saved 12 files", "--schedule", "daily at 3am")
    broken = "python3 -c \"import os; print(os.environ['REPORT_TOKEN'])\""
    served.run(*add, "--name", "weekly report", "--command", broken, "--schedule", "mondays at 8am", "--retries", "1")
    served.run("jobs", "run", "2")
    served.run("jobs", "run", "3")
    served.until_heal("abandoned", heal_id=2)
    served.run("jobs", "edit", "3", "--no-healing")
    served.run("jobs", "run", "3")
    served.until(lambda: len(served.json("inbox", "list")) == 2)


SCREENS = {
    "jobs": "/jobs",
    "job": "/jobs/1",
    "job-failing": "/jobs/3",
    "run": "/runs/1",
    "heal": "/heals/1",
    "heal-abandoned": "/heals/2",
    "inbox": "/inbox",
    "project": "/projects/1",
    "settings": "/settings",
    "not-found": "/jobs/99",
}


def take_for_readme(page: Page, url: str) -> None:
    page.goto(url + "/heals/1")
    page.wait_for_timeout(300)
    picture = ROOT / "docs" / "pictures" / "heal.png"
    picture.parent.mkdir(exist_ok=True)
    page.screenshot(path=picture)


def take(page: Page, url: str, folder: pathlib.Path, name: str) -> None:
    for screen, path in SCREENS.items():
        page.goto(url + path)
        page.wait_for_timeout(250)
        page.screenshot(path=folder / f"{screen}-{name}.png")
    page.goto(url + "/jobs")
    page.click("#new-job")
    page.wait_for_selector("dialog[open]")
    page.wait_for_timeout(250)
    page.screenshot(path=folder / f"editor-{name}.png")


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        served = Served(pathlib.Path(place))
        stack.callback(served.close)
        login = served.start()
        browser = stack.enter_context(sync_playwright()).chromium.launch(executable_path="/usr/bin/chromium")
        first = browser.new_context(viewport={"width": 1280, "height": 800})
        page = first.new_page()
        page.goto(login)
        page.screenshot(path=folder / "first-run.png")
        prepare(served)
        state = first.storage_state()
        take_for_readme(page, login.split("/?")[0])
        for scheme in ("light", "dark"):
            for size, (width, height) in SIZES.items():
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme, storage_state=state
                )
                take(context.new_page(), login.split("/?")[0], folder, f"{scheme}-{size}")
        browser.close()


if __name__ == "__main__":
    main()
