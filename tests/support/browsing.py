"""A real Chromium before a real running app."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from support.serving import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Seat:
    """A person before the app: a logged-in page, and what went wrong in it."""

    app: Served
    url: str
    context: BrowserContext
    page: Page
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def another(self) -> Page:
        """A second window of the same person."""
        return self.context.new_page()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs Chromium; .ci/run names every package")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"))
    served.start()
    yield served
    served.close()


@pytest.fixture
def seat(running: Served, chromium: Browser) -> Iterator[Seat]:
    """Sits down: logs in by a one-time key in a window of its own."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    login = running.call("POST", "/app/activate")[1]["url"]
    page = context.new_page()
    found = Seat(running, login.split("/?")[0], context, page)
    page.on("pageerror", lambda error: found.wrong.append(str(error)))
    page.on("console", lambda said: found.wrong.append(said.text) if said.type == "error" else None)
    page.goto(login)
    yield found
    context.close()
