"""The window: pywebview around the app's own pages.  The only importer of webview."""

import importlib.util
import logging
import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

log = logging.getLogger("engine")

Engine = Literal["gtk", "qt"]

PAINT_SECS = 15.0
SAVE_AFTER_SECS = 0.5
LEAST = (640, 480)
SYSTEM_PACKAGES = Path("/usr/lib/python3/dist-packages")
NO_ENGINE = (
    "No window can be shown here (neither WebKitGTK nor Qt WebEngine is installed), so Cronmend opens in your browser. "
    "For a window: apt install python3-gi gir1.2-webkit2-4.1, or python3 packaging/setup_env.py qt"
)


def has_display() -> bool:
    """Whether there is a screen to show a window on.  Qt ends the whole process where there is none."""
    if sys.platform != "linux":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def find_engine(wanted: str | None = None) -> Engine | None:
    """WebKitGTK where the system has it, else Qt WebEngine where it is installed.  `wanted` asks for one of them."""
    if wanted in (None, "gtk") and _has_webkit_gtk():
        return "gtk"
    if wanted in (None, "qt") and all(importlib.util.find_spec(name) for name in ("PySide6", "qtpy")):
        return "qt" if importlib.util.find_spec("PySide6.QtWebEngineCore") else None
    return None


def _has_webkit_gtk() -> bool:
    if importlib.util.find_spec("gi") is None:
        # The system's binding is for the system's Python; it serves ours when both are the same version.
        version = f"{sys.version_info.major}{sys.version_info.minor}"
        if not list(SYSTEM_PACKAGES.glob(f"gi/_gi.cpython-{version}-*.so")):
            return False
        sys.path.append(str(SYSTEM_PACKAGES))
    try:
        gi = importlib.import_module("gi")
        gi.require_version("Gtk", "3.0")
        gi.require_version("WebKit2", "4.1")
    except (ImportError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Look:
    """How the window opens."""

    width: int
    height: int
    is_dark: bool


@dataclass(frozen=True)
class Wishes:
    """What the window asks the app: `close_rule` is ask, keep or quit; `ask_close` asks in the page."""

    close_rule: Callable[[], str]
    ask_close: Callable[[], bool]
    save_size: Callable[[int, int], None]
    painted: threading.Event


class Window:
    """One window for the whole run of the app; it is hidden, not destroyed, while jobs go on without it."""

    def __init__(self, engine: Engine, wishes: Wishes) -> None:
        self._engine = engine
        self._wishes = wishes
        self._window: Any = None
        self._timer: threading.Timer | None = None
        self._is_quitting = False

    def run(self, url: str, look: Look, storage: Path) -> None:
        """Shows the page until `quit`.  Belongs to the main thread."""
        if self._engine == "qt" and os.geteuid() == 0:
            os.environ.setdefault("QTWEBENGINE_DISABLE_SANDBOX", "1")
        import webview  # noqa: PLC0415 - costs a second, and headless apps never need it

        webview.settings["OPEN_DEVTOOLS_IN_DEBUG"] = False
        self._window = webview.create_window(
            "Cronmend",
            url,
            width=max(LEAST[0], look.width),
            height=max(LEAST[1], look.height),
            min_size=LEAST,
            text_select=True,
            zoomable=True,
            background_color="#16181c" if look.is_dark else "#ffffff",
        )
        self._window.events.closing += self._closing
        self._window.events.resized += self._resized
        threading.Thread(target=self._watch, args=(url,), name="window watch", daemon=True).start()
        webview.start(gui=self._engine, private_mode=False, storage_path=str(storage))

    def raise_up(self) -> bool:
        """Brings the window back to the front."""
        if self._window is None:
            return False
        self._window.show()
        self._window.restore()
        return True

    def hide(self) -> None:
        self._window.hide()

    def quit(self) -> None:
        """Ends `run`."""
        self._is_quitting = True
        if self._window is not None:
            self._window.destroy()

    def _closing(self) -> bool | None:
        # Called on the window's own thread: any call of the window in here would wait for itself.
        rule = "quit" if self._is_quitting else self._wishes.close_rule()
        if rule == "quit":
            return None
        threading.Thread(target=self._keep, args=(rule,), name="window close", daemon=True).start()
        return False

    def _keep(self, rule: str) -> None:
        if rule == "keep" or not self._wishes.ask_close():
            self._window.hide()

    def _resized(self, width: int, height: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(SAVE_AFTER_SECS, self._wishes.save_size, (int(width), int(height)))
        self._timer.daemon = True
        self._timer.start()

    def _watch(self, url: str) -> None:
        """A window that never paints (a broken graphics driver) must not leave the person before a blank page."""
        if not self._wishes.painted.wait(PAINT_SECS):
            log.warning("[engine] the window did not paint within %.0f s; opening the browser", PAINT_SECS)
            webbrowser.open(url.split("/?", maxsplit=1)[0])


def open_in_browser(url: str) -> None:
    """The pages in the person's browser."""
    webbrowser.open(url)
