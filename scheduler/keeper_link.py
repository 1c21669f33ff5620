"""The app's side of the keeper: starts one when none answers, sends orders, hands on what it reports."""

import hashlib
import json
import logging
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from scheduler.keeper import VERSION
from store.errors import Refusal

log = logging.getLogger("engine")

CONNECT_SECS = 10.0

State = Literal["intent", "running", "ended", "lost", "refused"]


class KeeperUnreachable(Refusal):
    """No keeper answers; nothing can start until one does."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="keeper_unreachable")


@dataclass(frozen=True)
class Cleanup:
    """What runs once the run has ended, however that was; with its own time limit, into the same logs."""

    argv: tuple[str, ...]
    direct: bool
    timeout_secs: float


@dataclass(frozen=True)
class Start:
    """One attempt to start.  `direct`: argv is executed as it is; else argv is a shell with its command."""

    run: int
    attempt: int
    argv: tuple[str, ...]
    direct: bool
    cwd: str
    env: Mapping[str, str]
    stdout: str
    stderr: str
    timeout_secs: float | None
    grace_secs: float
    cleanup: Cleanup | None = None


@dataclass(frozen=True)
class Report:
    """What the keeper says of one attempt.  `at` is the start of a running one and the end of one that is over.

    `known` is False when the process was seen to go but not how (it was started by an earlier keeper).
    `start_time` is in raw clock ticks since the boot `boot_id`.  `cleanup` says what was wrong with the cleanup, if
    anything was.
    """

    run: int
    attempt: int
    state: State
    pid: int | None = None
    start_time: int | None = None
    boot_id: str | None = None
    at: datetime | None = None
    started_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    known: bool = True
    spawn_error: str | None = None
    stopped: str | None = None
    survivors: tuple[int, ...] = ()
    cleanup: str | None = None
    reason: str | None = None


class KeeperLink:
    """One connection.  `on_reports` and `on_lost` are called on the link's own thread."""

    def __init__(
        self,
        state_dir: Path,
        command: Sequence[str],
        spawn_thread: Callable[[str, Callable[[], None]], object],
        on_reports: Callable[[list[Report]], None] = lambda _reports: None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._state_dir = state_dir
        self._command = tuple(command)
        self._spawn_thread = spawn_thread
        self.on_reports = on_reports
        self.on_lost = on_lost
        self._link: socket.socket | None = None
        self._sending = threading.Lock()
        self.pid: int | None = None

    def connect(self, epoch: int) -> list[Report]:
        """What the keeper knows of runs that are not acknowledged.  Starts a keeper when none answers.

        `epoch` grows with each start of the app; a keeper listens to the newest only.  Raises KeeperUnreachable.
        """
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = runtime_dir(self._state_dir)
        deadline = time.monotonic() + CONNECT_SECS
        tried_at = 0.0
        while True:
            link = _dial(folder)
            if link is not None and (welcome := _greet(link, epoch)) is not None:
                break
            if time.monotonic() > deadline:
                raise KeeperUnreachable(
                    f"The process that runs jobs does not answer; see {self._state_dir / 'keeper.log'}."
                )
            if time.monotonic() - tried_at > 1.0:
                self._start_keeper(folder)
                tried_at = time.monotonic()
            time.sleep(0.005)
        self.pid = welcome["pid"]
        self._link = link
        self._spawn_thread("keeper link", lambda: self._listen(link))
        return [_report(item) for item in welcome["known"]]

    def start(self, starts: Sequence[Start]) -> None:
        """Hands over attempts to start; an attempt the keeper knows already is not started twice."""
        self._send({"op": "start", "runs": [_order(start) for start in starts]})

    def stop(self, run: int, attempt: int, reason: str, grace_secs: float) -> None:
        """Ends the attempt's process tree: TERM, after the grace KILL.  Its end comes as a report."""
        self._send({"op": "stop", "run": run, "attempt": attempt, "reason": reason, "graceSecs": grace_secs})

    def acknowledge(self, ids: Sequence[tuple[int, int]]) -> None:
        """The app has recorded the ends of these attempts; the keeper may forget them."""
        self._send({"op": "ack", "ids": [list(key) for key in ids]})

    def close(self) -> None:
        """Leaves the keeper, which goes on."""
        link, self._link = self._link, None
        if link is not None:
            link.shutdown(socket.SHUT_RDWR)

    def _start_keeper(self, folder: Path) -> None:
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        command = [*self._command, str(folder), str(self._state_dir)]
        with (self._state_dir / "keeper.log").open("ab") as output:
            # Returns at once: the keeper leaves the process that was started.
            subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            )

    def _send(self, message: dict[str, Any]) -> None:
        link = self._link
        if link is None:
            raise KeeperUnreachable("The process that runs jobs is not connected.")
        try:
            with self._sending:
                link.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            raise KeeperUnreachable(f"The process that runs jobs does not answer ({error.strerror}).") from error

    def _listen(self, link: socket.socket) -> None:
        with link:
            try:
                with link.makefile("rb") as lines:
                    for line in lines:
                        self.on_reports([_report(item) for item in json.loads(line)["items"]])
            except OSError as error:
                log.warning("[engine] the link to the keeper broke: %s", error)
            wanted = self._link is link
            if wanted:
                self._link = self.pid = None
        if wanted:
            self.on_lost()


def runtime_dir(state_dir: Path) -> Path:
    """The folder of the keeper's socket: short, this person's alone, one for each data directory.

    Raises Refusal when somebody else made it.
    """
    name = "cronmend-" + hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]
    base = os.environ.get("XDG_RUNTIME_DIR")
    # Unix socket addresses end at 108 bytes, so the data directory itself may be too long.
    folder = Path(base) / name if base and Path(base).is_dir() else Path("/tmp") / f"{name}-{os.getuid()}"  # noqa: S108
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise Refusal(f"{folder} is not a private folder of yours; remove it.", code="runtime_dir")
    return folder


def _dial(folder: Path) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(CONNECT_SECS)
        link.connect(str(folder / "k.sock"))
    except OSError:
        link.close()
        return None
    return link


def _greet(link: socket.socket, epoch: int) -> dict[str, Any] | None:
    """The keeper's welcome; None when it was just ending.  Raises KeeperUnreachable when it refuses."""
    try:
        link.sendall(json.dumps({"op": "hello", "version": VERSION, "epoch": epoch}).encode() + b"\n")
        # Unbuffered and to the byte: what follows the welcome belongs to the reader thread.
        answer = _read_line(link)
        link.settimeout(None)
    except OSError:
        answer = b""
    if not answer:
        link.close()
        return None
    message: dict[str, Any] = json.loads(answer)
    if message["op"] != "welcome":
        link.close()
        raise KeeperUnreachable(f"The process that runs jobs refuses this app: {message['reason']}.")
    return message


def _read_line(link: socket.socket) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        waiting = link.recv(1 << 16, socket.MSG_PEEK)
        if not waiting:
            return b""
        end = waiting.find(b"\n") + 1
        line += link.recv(end or len(waiting))
    return bytes(line)


def _order(start: Start) -> dict[str, Any]:
    return {
        "run": start.run,
        "attempt": start.attempt,
        "argv": list(start.argv),
        "direct": start.direct,
        "cwd": start.cwd,
        "env": dict(start.env),
        "stdout": start.stdout,
        "stderr": start.stderr,
        "timeoutSecs": start.timeout_secs,
        "graceSecs": start.grace_secs,
        "cleanup": _cleanup_order(start.cleanup) if start.cleanup else None,
    }


def _cleanup_order(cleanup: Cleanup) -> dict[str, Any]:
    return {"argv": list(cleanup.argv), "direct": cleanup.direct, "timeoutSecs": cleanup.timeout_secs}


def _report(item: dict[str, Any]) -> Report:
    started, ended = _instant(item["startedAt"]), _instant(item["endedAt"])
    return Report(
        run=item["run"],
        attempt=item["attempt"],
        state=item["state"],
        pid=item["pid"],
        start_time=item["startTime"],
        boot_id=item["bootId"],
        at=ended or started,
        started_at=started,
        exit_code=item["exitCode"],
        signal=item["signal"],
        known=item["known"],
        spawn_error=item["spawnError"],
        stopped=item["stopped"],
        survivors=tuple(item["survivors"]),
        cleanup=item["cleanup"],
        reason=item["reason"],
    )


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)
