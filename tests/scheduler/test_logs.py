"""Long logs: the middle goes, offsets stay, whoever writes goes on; and words are found in them."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import Served

from scheduler.logs import RunLogs
from web.log_search import find_in

pytestmark = pytest.mark.mission("L7")

MIB = 1024 * 1024


@pytest.fixture
def logs(tmp_path: Path) -> RunLogs:
    return RunLogs(tmp_path / "1.out", tmp_path / "1.err")


def all_of(logs: RunLogs) -> bytes:
    data, at = b"", 0
    while (part := logs.read("out", at, 300_000)).data:
        data, at = data + part.data, part.next
    return data


def used(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_head_and_tail_of_a_long_log_stay_and_the_disk_is_freed(logs: RunLogs) -> None:
    logs.out.write_bytes(b"first\n" + b"x" * (10 * MIB) + b"\nlast\n")
    length = logs.length("out")

    assert logs.cap("out", 2 * MIB)

    assert used(logs.out) <= 2 * MIB + 16_384
    assert logs.length("out") == length, "offsets stay"
    shown = all_of(logs)
    assert shown.startswith(b"first\nxxx")
    assert shown.endswith(b"xxx\nlast\n")
    begin, end = logs.gap("out") or (0, 0)
    assert f"\n[… {end - begin:,} bytes were left out here …]\n".encode() in shown
    assert b"\0" not in shown
    assert logs.tail("out", 6 * MIB) == logs.read("out", end, 6 * MIB).data, "a tail never holds the hole"
    assert not logs.cap("out", 2 * MIB), "nothing new to free"
    assert not logs.cap("out", 0), "no limit"


def test_the_writer_goes_on_and_the_hole_grows_with_the_log(logs: RunLogs) -> None:
    writer = subprocess.Popen(
        ["sh", "-c", f"exec >> {logs.out}; yes begin | head -c 5000000; read x; yes end | head -c 5000000; echo done"],
        stdin=subprocess.PIPE,
    )
    while logs.length("out") < 5_000_000:
        time.sleep(0.01)
    assert logs.cap("out", MIB)
    first = logs.gap("out")
    writer.communicate(b"\n", timeout=30)

    assert logs.cap("out", MIB)

    second = logs.gap("out")
    assert first is not None
    assert second is not None
    assert (second[0], second[1] > first[1]) == (first[0], True)
    assert logs.tail("out", 9) == b"end\ndone\n"
    assert used(logs.out) <= MIB + 16_384


def test_words_are_found_with_their_lines_in_a_file_of_any_length(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("wb") as log:
        for number in range(1, 50_001):
            log.write(b"line %d %s\n" % (number, b"ECONNREFUSED" if number % 1_000 == 0 else b"fine"))

    found = find_in(file, "ECONNREFUSED")

    assert (found.count, found.is_more, len(found.matches)) == (50, False, 50)
    assert (found.matches[48].line, found.matches[48].text) == (49_000, "line 49000 ECONNREFUSED")
    assert file.read_bytes()[found.matches[0].offset :].startswith(b"ECONNREFUSED")
    assert find_in(file, "nowhere").count == 0
    assert find_in(file, "fine").is_more
    assert find_in(tmp_path / "none", "x").count == 0


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"), {"CRONMEND_LOG_MB": "1"})
    served.start()
    yield served
    served.close()


def test_a_run_that_prints_much_keeps_both_ends(app: Served) -> None:
    words = (
        "--name",
        "loud",
        "--command",
        "echo first; yes line | head -c 30000000; echo last",
        "--schedule",
        "0 0 1 1 *",
    )
    job = app.run("jobs", "add", *words).out.strip()

    app.run("jobs", "run", job, "--detach")

    run = app.until(lambda: next((one for one in app.json("runs", "list") if one["status"] == "completed"), None))
    printed = app.run("runs", "log", str(run["id"])).out
    assert printed.startswith("first\nline\n")
    assert printed.endswith("line\nlast\n")
    assert "bytes were left out here" in printed
    assert len(printed) < 1_100_000
    assert used(app.home / "logs" / job / f"{run['id']}.out") <= MIB + 16_384
