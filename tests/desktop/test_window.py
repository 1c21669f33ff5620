"""The real window under a real X server: it paints, is raised, and ends cleanly with a stream open."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import PYTHON, Served

from desktop.window import find_engine

pytestmark = [
    pytest.mark.mission("L10"),
    pytest.mark.timeout(180),
    pytest.mark.skipif(not shutil.which("Xvfb"), reason="needs Xvfb"),
]

ENGINES = [
    pytest.param("gtk", marks=pytest.mark.skipif(find_engine("gtk") != "gtk", reason="WebKitGTK is not installed")),
    pytest.param(
        "qt", marks=pytest.mark.skipif(not importlib.util.find_spec("PySide6"), reason="Qt WebEngine is not installed")
    ),
]


@pytest.fixture
def screen() -> Iterator[str]:
    """A display of its own."""
    readable, writable = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writable), "-screen", "0", "1280x900x24", "-nolisten", "tcp"],
        pass_fds=[writable],
        stderr=subprocess.DEVNULL,
    )
    os.close(writable)
    with os.fdopen(readable) as said:
        number = said.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait(20)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_window_paints_is_raised_and_ends(engine: str, screen: str, tmp_path: Path) -> None:
    served = Served(tmp_path, {"DISPLAY": screen, "CRONMEND_ENGINE": engine, "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
    window = subprocess.Popen(
        PYTHON, env=served.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert window.stdout
    try:
        assert "running at" in window.stdout.readline()
        status = served.until(lambda: found if (found := served.json("status"))["hasPainted"] else None)
        served.until(lambda: served.json("status")["openStreams"] == 1)

        again = subprocess.run(PYTHON, env=served.environment, capture_output=True, text=True, timeout=60, check=True)

        assert status["schedulerState"] == "running"
        assert again.stdout == "Cronmend is open already.\n"
        window.terminate()
        assert window.wait(30) == 0
        assert "ended cleanly" in served.log()
    finally:
        window.kill()
        window.wait(20)
        window.stdout.close()
        served.close()


@pytest.fixture
def managed(screen: str) -> Iterator[str]:
    """A display with a window manager, so that a window can be closed as a person closes it."""
    manager = subprocess.Popen(
        ["openbox"], env={**os.environ, "DISPLAY": screen}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield screen
    manager.terminate()
    manager.wait(20)


def wmctrl(screen: str, *words: str) -> str:
    done = subprocess.run(
        ["wmctrl", *words], env={**os.environ, "DISPLAY": screen}, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.skipif(not shutil.which("wmctrl") or not shutil.which("openbox"), reason="needs openbox and wmctrl")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", ["keep", "quit"])
def test_closing_the_window_does_as_the_person_chose(engine: str, rule: str, managed: str, tmp_path: Path) -> None:
    settings = {"CRONMEND_ENGINE": engine, "CRONMEND_CLOSE": rule, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    served = Served(tmp_path, {"DISPLAY": managed, **settings})
    window = subprocess.Popen(
        PYTHON, env=served.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert window.stdout
    try:
        window.stdout.readline()
        served.until(lambda: served.json("status")["hasPainted"])
        served.until(lambda: "Cronmend" in wmctrl(managed, "-l"))

        wmctrl(managed, "-c", "Cronmend")

        served.until(lambda: "Cronmend" not in wmctrl(managed, "-l"))
        if rule == "quit":
            assert window.wait(30) == 0
            return
        assert served.json("status")["schedulerState"] == "running"
        assert served.run().out == "Cronmend is open already.\n"
        served.until(lambda: "Cronmend" in wmctrl(managed, "-l"))
        window.terminate()
        assert window.wait(30) == 0
    finally:
        window.kill()
        window.wait(20)
        window.stdout.close()
        served.close()


@pytest.mark.mission("L10")
def test_without_an_engine_it_opens_the_browser_and_says_so(screen: str, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    served = Served(tmp_path, {"DISPLAY": screen, "CRONMEND_ENGINE": "none", "BROWSER": str(browser)})
    app = subprocess.Popen(PYTHON, env=served.environment, stdout=subprocess.PIPE, text=True)
    assert app.stdout
    try:
        assert "running at" in app.stdout.readline()

        assert app.stdout.readline().startswith("No window can be shown here")

        served.until((tmp_path / "opened").exists)
        assert "/?k=" in (tmp_path / "opened").read_text()
        app.terminate()
        assert app.wait(30) == 0
    finally:
        app.kill()
        app.wait(20)
        app.stdout.close()
        served.close()


def test_without_a_display_it_serves_and_prints_its_address(tmp_path: Path) -> None:
    served = Served(tmp_path)
    headless = subprocess.Popen(PYTHON, env=served.environment, stdout=subprocess.PIPE, text=True)
    assert headless.stdout
    try:
        assert headless.stdout.readline().startswith("Cronmend is running at http://127.0.0.1:")
        second = subprocess.run(PYTHON, env=served.environment, capture_output=True, text=True, timeout=60, check=True)
        assert second.stdout.startswith("Cronmend is running at http://127.0.0.1:")
        headless.terminate()
        assert headless.wait(30) == 0
    finally:
        headless.kill()
        headless.wait(20)
        headless.stdout.close()
        served.close()
