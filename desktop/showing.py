"""Showing the app: in a window where there is a screen and an engine, else in the browser, else not at all."""

import os
from pathlib import Path

from desktop.app import App
from desktop.paths import Paths
from desktop.window import NO_ENGINE, Look, Window, Wishes, find_engine, has_display, open_in_browser
from store import settings


def show_window(app: App, paths: Paths) -> bool:
    """Shows the window until Quit, and then returns True; False at once where there is none."""
    if not has_display():
        return False
    url = app.parts.desk.login_url()
    engine = find_engine(os.environ.get("CRONMEND_ENGINE"))
    if engine is None:
        print(NO_ENGINE, flush=True)
        open_in_browser(url)
        return False
    window = Window(engine, _wishes(app))
    handle = app.parts.handle
    handle.activate, handle.hide, handle.quit = window.raise_up, window.hide, window.quit
    window.run(url, _look(app), _storage(paths))
    return True


def _wishes(app: App) -> Wishes:
    desk = app.parts.desk

    def rule() -> str:
        return str(desk.facts()["settings"]["CRONMEND_CLOSE"]["value"])

    def save(width: int, height: int) -> None:
        if not desk.database.is_read_only:
            desk.database.write(lambda session: settings.store(session, "CRONMEND_WINDOW", f"{width}x{height}"))

    return Wishes(rule, lambda: desk.feed.say("ask-close"), save, desk.running().painted)


def _look(app: App) -> Look:
    values = app.parts.desk.facts()["settings"]
    width, height = values["CRONMEND_WINDOW"]["value"]
    return Look(width, height, is_dark=values["CRONMEND_THEME"]["value"] == "dark")


def _storage(paths: Paths) -> Path:
    paths.window.mkdir(mode=0o700, exist_ok=True)
    return paths.window
