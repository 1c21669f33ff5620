"""Toasts on a private D-Bus with a real notification service: one a failure, one a burst, none in quiet hours."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from support.serving import Served

from delivery.toast import Failure, is_quiet, words_for

pytestmark = [
    pytest.mark.mission("O11"),
    pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="needs dbus-daemon"),
]

SERVICE = Path(__file__).resolve().parents[1] / "support" / "notification_service.py"


@pytest.fixture
def bus() -> Iterator[str]:
    """The address of a session bus of its own."""
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout
    with daemon.stdout:
        yield daemon.stdout.readline().strip()
        daemon.terminate()
        daemon.wait(20)


@pytest.fixture
def shown(bus: str, tmp_path: Path) -> Iterator[Path]:
    """The file in which a notification service on that bus writes down what it shows."""
    file = tmp_path / "shown"
    file.touch()
    environment = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": bus}
    service = subprocess.Popen(
        [sys.executable, str(SERVICE), str(file)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert service.stdout
    with service.stdout:
        assert service.stdout.readline() == "ready\n"
        yield file
        service.terminate()
        service.wait(20)


def fail(served: Served, name: str) -> None:
    words = ("--name", name, "--command", "echo lost >&2; exit 3", "--schedule", "0 0 1 1 *", "--no-healing")
    served.run("jobs", "run", served.run("jobs", "add", *words).out.strip(), "--detach")


def toasts(served: Served) -> list[str]:
    return [event["kind"] for event in served.json("audit", "--kind", "toast")]


def test_a_final_failure_shows_one_toast(serve: Callable[..., Served], bus: str, shown: Path) -> None:
    served = serve(DBUS_SESSION_BUS_ADDRESS=bus)

    fail(served, "nightly backup")

    served.until(lambda: toasts(served) == ["toast.shown"])
    assert [json.loads(line) for line in shown.read_text().split("\n") if line] == [
        ["Cronmend", "nightly backup failed", "exit code 3: lost"]
    ]


def test_without_a_service_it_is_a_line_in_the_settings_and_no_error(serve: Callable[..., Served], bus: str) -> None:
    served = serve(DBUS_SESSION_BUS_ADDRESS=bus)

    fail(served, "unheard")

    served.until(lambda: toasts(served) == ["toast.unavailable"])
    assert served.json("status")["toasts"] == "no notification service on this machine"
    assert "Traceback" not in served.log()


def test_quiet_hours_mute_and_say_so(serve: Callable[..., Served], bus: str, shown: Path) -> None:
    served = serve(DBUS_SESSION_BUS_ADDRESS=bus, CRONMEND_QUIET_HOURS="00:00-23:59")

    fail(served, "at night")

    served.until(lambda: toasts(served) == ["toast.muted"])
    assert shown.read_text() == ""


def test_a_burst_is_one_toast_with_names() -> None:
    burst = [Failure(number, number, f"job {number}", "x") for number in range(1, 7)]

    assert words_for(burst) == ("6 runs failed", "job 1, job 2, job 3, job 4 and 2 more")


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("", "03:00", False),
        ("22:00-07:00", "03:00", True),
        ("22:00-07:00", "22:00", True),
        ("22:00-07:00", "07:00", False),
        ("12:00-13:00", "12:30", True),
        ("12:00-13:00", "13:00", False),
    ],
)
def test_quiet_hours_may_span_midnight(hours: str, at: str, quiet: bool) -> None:
    assert is_quiet(hours, datetime.fromisoformat(f"2026-12-01T{at}:00")) is quiet
