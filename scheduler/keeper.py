"""The keeper: a small process that starts, watches and ends runs, and outlives the app.

    python -P -m scheduler.keeper RUNTIME_DIR STATE_DIR [--leave-after SECS]

It speaks newline JSON over a Unix socket (docs/architecture.md).  Standard library only, one thread, everything
imported at the start, so that it works while the app is being replaced and costs a few MiB.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from scheduler import process_tree
from scheduler.journal import Journal, Key
from scheduler.spawning import LogError, SpawnError, spawn

VERSION = 2
BATCH = 8
"""Starts between two looks at ends and messages."""

LEAVE_AFTER_SECS = 60.0
TICK_SECS = 0.05
SURVIVORS_AFTER_SECS = 2.0
MOST_UNSENT = 64 * 1024 * 1024

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class Connection:
    """One client.  Only the one that said hello last is the app."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.unread = b""
        self.unsent = bytearray()


class Keeper:
    """All state of the process.  `step` is one turn of its loop."""

    def __init__(self, runtime: Path, state: Path, leave_after: float) -> None:
        self._journal = Journal(state / "journal")
        self._boot = process_tree.boot_id()
        self._leave_after = leave_after
        self._alone_since = time.monotonic()
        self._draining = False
        self._epoch = 0
        self._app: Connection | None = None
        self._waiting: deque[dict[str, Any]] = deque()
        self._queued: set[Key] = set()
        self._children: dict[int, Key] = {}
        self._adopted: dict[int, Key] = {}
        self._stops: dict[Key, dict[str, Any]] = {}
        self._timeouts: dict[Key, float] = {}
        self._reports: list[dict[str, Any]] = []
        self._selector = selectors.DefaultSelector()
        self._listen(runtime / "k.sock")
        self._catch_signals()
        self._take_over()

    # What the last keeper left

    def _take_over(self) -> None:
        lost = []
        for key, entry in self._journal.entries.items():
            if "ended" in entry or "lost" in entry:
                continue
            if "outcome" in entry and not self._lives(entry):
                lost.append((key, {**entry["outcome"], "cleanup": "nobody saw how it ended"}))
            elif "pid" not in entry or entry["boot"] != self._boot:
                lost.append((key, {"lost": "the machine was restarted while it ran" if "pid" in entry else _NO_TRACE}))
            elif not self._lives(entry):
                lost.append((key, {"lost": "it ended while no keeper was there to see how"}))
            else:
                self._adopt(key, entry)
        self._finish(lost)

    def _lives(self, entry: dict[str, Any]) -> bool:
        return entry["boot"] == self._boot and process_tree.is_alive(entry["pid"], entry["start"])

    def _adopt(self, key: Key, entry: dict[str, Any]) -> None:
        handle = os.pidfd_open(entry["pid"])
        self._selector.register(handle, selectors.EVENT_READ, (self._see_gone, handle))
        self._adopted[handle] = key
        self._set_timeout(key, entry)

    # The loop

    def step(self) -> bool:
        """One turn; False when it is time to leave."""
        for chosen, mask in self._selector.select(self._patience()):
            handle, subject = chosen.data
            handle(subject, mask)
        self._start_some()
        self._attend_stops()
        self._send_reports()
        return not self._may_leave()

    def _patience(self) -> float | None:
        if self._waiting:
            return 0
        if self._stops:
            return TICK_SECS
        now = time.monotonic()
        ends = list(self._timeouts.values())
        if self._app is None:
            ends.append(self._alone_since + self._leave_after)
        return max(0.0, min(ends) - now) if ends else None

    def _may_leave(self) -> bool:
        if self._children or self._adopted or self._waiting:
            return False
        if self._draining:
            return True
        alone = self._app is None and time.monotonic() - self._alone_since >= self._leave_after
        return alone and not self._journal.entries

    # Clients

    def _listen(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(8)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, (self._accept, server))

    def _accept(self, server: socket.socket, _mask: int) -> None:
        link, _ = server.accept()
        _pid, uid, _gid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            link.close()
            return
        link.setblocking(False)
        self._selector.register(link, selectors.EVENT_READ, (self._serve, Connection(link)))

    def _serve(self, client: Connection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._flush(client)
        if not mask & selectors.EVENT_READ or client.link.fileno() < 0:
            return
        try:
            data = client.link.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        *lines, client.unread = (client.unread + data).split(b"\n")
        for line in lines:
            if client.link.fileno() >= 0:
                self._obey(client, line)

    def _obey(self, client: Connection, line: bytes) -> None:
        try:
            message = json.loads(line)
            operation = message["op"]
        except (ValueError, KeyError, TypeError):
            self._drop(client)
            return
        if operation == "hello":
            self._greet(client, message)
        elif client is not self._app:
            self._drop(client)
        elif operation == "start":
            self._accept_starts(message["runs"])
        elif operation == "stop":
            key = (message["run"], message["attempt"])
            self._stop(key, message["reason"], message["graceSecs"])
        elif operation == "ack":
            self._journal.forget((run, attempt) for run, attempt in message["ids"])

    def _greet(self, client: Connection, message: dict[str, Any]) -> None:
        if message.get("version") != VERSION:
            self._draining = True
            self._say(client, {"op": "refused", "reason": "another version; this keeper ends with its runs"})
            return
        if message["epoch"] < self._epoch:
            self._say(client, {"op": "refused", "reason": "a newer start of the app is connected"})
            return
        self._epoch = message["epoch"]
        for other in [chosen.data[1] for chosen in list(self._selector.get_map().values())]:
            if isinstance(other, Connection) and other is not client:
                self._drop(other)
        self._app = client
        self._reports.clear()  # the welcome tells all of it
        queued = [_report(key, {}, "intent") for key in self._queued]
        known = [_report(key, entry) for key, entry in self._journal.entries.items()]
        self._say(client, {"op": "welcome", "bootId": self._boot, "pid": os.getpid(), "known": queued + known})

    def _drop(self, client: Connection) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.link)
        client.link.close()
        if client is self._app:
            self._app = None
            self._alone_since = time.monotonic()

    def _say(self, client: Connection, message: dict[str, Any]) -> None:
        client.unsent += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self._flush(client)

    def _flush(self, client: Connection) -> None:
        try:
            sent = client.link.send(client.unsent)
            del client.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        if len(client.unsent) > MOST_UNSENT:
            self._drop(client)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
        self._selector.modify(client.link, events, (self._serve, client))

    def _send_reports(self) -> None:
        if self._app is not None and self._reports:
            items, self._reports = self._reports, []
            self._say(self._app, {"op": "reports", "items": items})

    def _tell(self, key: Key, state: str | None = None) -> None:
        if self._app is not None:
            self._reports.append(_report(key, self._journal.entries.get(key, {}), state))

    # Starting

    def _accept_starts(self, orders: list[dict[str, Any]]) -> None:
        self._journal.retry_spare()
        for order in orders:
            key = (order["run"], order["attempt"])
            if key in self._journal.entries:
                self._tell(key)
            elif key in self._queued:
                self._tell(key, "intent")
            elif self._journal.is_full or self._draining:
                self._refuse([key], "disk full" if self._journal.is_full else "the keeper is ending")
            else:
                self._waiting.append(order)
                self._queued.add(key)

    def _refuse(self, keys: list[Key], reason: str) -> None:
        self._reports += [{**_report(key, {}, "refused"), "reason": reason} for key in keys]

    def _start_some(self) -> None:
        if not self._waiting:
            return
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        keys = [(order["run"], order["attempt"]) for order in batch]
        self._queued.difference_update(keys)
        self._journal.write((key, {"intent": time.time()}) for key in keys)
        if self._journal.is_full:  # nothing may start without its intent on file
            self._journal.forget(keys)
            self._refuse(keys, "disk full")
            return
        outcomes = []
        for key, order in zip(keys, batch, strict=True):
            try:
                outcome = self._start(order)
            except LogError as error:
                self._journal.forget([key])
                self._refuse([key], str(error))
                continue
            if order["cleanup"]:
                outcome["cleanupOrder"] = {**order, **order["cleanup"], "cleanup": None}
            outcomes.append((key, outcome))
        self._journal.write([(key, outcome) for key, outcome in outcomes if "pid" in outcome])
        for key, outcome in outcomes:
            if "pid" in outcome:
                self._children[outcome["pid"]] = key
                self._set_timeout(key, outcome)
                self._tell(key)
        self._finish([(key, outcome) for key, outcome in outcomes if "pid" not in outcome])

    def _start(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            pid = spawn(order)
        except LogError:
            raise
        except SpawnError as error:
            at = time.time()
            return {"at": at, "ended": at, "code": error.exit_code, "spawnError": str(error), "known": True}
        return {
            **self._watched(pid, order["timeoutSecs"]),
            "at": time.time(),
            "grace": order["graceSecs"],
            "marks": _marks(order),
        }

    def _watched(self, pid: int, timeout: float | None) -> dict[str, Any]:
        """What identifies a process that was just started, and when it is to be over."""
        process = process_tree.look_up(pid)  # a child that is not reaped is always there
        start = process.start_time if process else 0
        return {"pid": pid, "start": start, "boot": self._boot, "clock": time.monotonic(), "timeout": timeout}

    def _set_timeout(self, key: Key, entry: dict[str, Any]) -> None:
        # CLOCK_MONOTONIC is one clock for all processes of a boot and stands still while the machine sleeps.
        if entry["timeout"] is not None:
            self._timeouts[key] = entry["clock"] + entry["timeout"]

    # Ends

    def _catch_signals(self) -> None:
        readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._drain())
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self._selector.register(readable, selectors.EVENT_READ, (self._reap, readable))

    def _drain(self) -> None:
        self._draining = True

    def _reap(self, readable: int, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(readable, 4096):
                pass
        at = time.time()
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            key = self._children.pop(pid, None)
            if key is not None:  # else an orphan of a run that came to us as subreaper
                ended.append((key, {"ended": at, "known": True, **_exit(status)}))
        self._finish([(key, outcome) for key, outcome in ended if key not in self._stops])
        for key, outcome in ended:
            if key in self._stops:
                self._stops[key]["outcome"] = outcome

    def _see_gone(self, handle: int, _mask: int) -> None:
        key = self._adopted.pop(handle)
        self._selector.unregister(handle)
        os.close(handle)
        outcome = {"ended": time.time(), "known": False, "code": None, "signal": None}
        if key in self._stops:
            self._stops[key]["outcome"] = outcome
        else:
            self._finish([(key, outcome)])

    def _finish(self, outcomes: list[tuple[Key, dict[str, Any]]]) -> None:
        """Records ends and tells them; what has a cleanup of its own is over when that is."""
        over = []
        for key, outcome in outcomes:
            self._timeouts.pop(key, None)
            whole = self._after_cleanup(key, outcome)
            if whole is not None:
                over.append((key, whole))
        if over:
            self._journal.write(over)
        for key, _ in over:
            self._tell(key)

    # The command that cleans up after a run, however it ended

    def _after_cleanup(self, key: Key, outcome: dict[str, Any]) -> dict[str, Any] | None:
        """The whole outcome; None when the cleanup is only beginning now."""
        entry = {**self._journal.entries.get(key, {}), **outcome}
        if "outcome" in entry:
            return {**entry["outcome"], "cleanup": _cleanup_failure(outcome, entry["timeout"])}
        if "cleanupOrder" not in entry or entry.get("boot", self._boot) != self._boot:
            return outcome
        order, code = entry["cleanupOrder"], outcome.get("code")
        told = {"CRONMEND_OUTCOME": _word(outcome), "CRONMEND_EXIT_CODE": "" if code is None else str(code)}
        try:
            pid = spawn({**order, "env": {**order["env"], **told}})
        except SpawnError as error:
            return {**outcome, "cleanup": f"could not be started: {error}"}
        record = {
            **self._watched(pid, order["timeoutSecs"]),
            "at": entry["at"],
            "grace": order["graceSecs"],
            "marks": _marks(order),
            "outcome": outcome,
        }
        self._journal.write([(key, record)])
        self._children[pid] = key
        self._set_timeout(key, record)
        return None

    # Stopping: TERM to the whole tree, grace, KILL, then a last look for survivors

    def _stop(self, key: Key, reason: str, grace: float) -> None:
        entry = self._journal.entries.get(key)
        if entry is None and key in self._queued:
            self._waiting = deque(order for order in self._waiting if (order["run"], order["attempt"]) != key)
            self._queued.discard(key)
            at = time.time()
            self._finish([(key, {"ended": at, "known": True, "code": None, "signal": None, "stopped": reason})])
            return
        if entry is None or "ended" in entry or "lost" in entry or key in self._stops:
            return
        self._timeouts.pop(key, None)
        process_tree.send(self._members(key), signal.SIGTERM)
        self._stops[key] = {"reason": reason, "killAt": time.monotonic() + grace, "giveUpAt": None, "outcome": None}

    def _members(self, key: Key) -> list[process_tree.Process]:
        entry = self._journal.entries[key]
        return process_tree.members(entry["pid"], entry["start"], entry["marks"])

    def _attend_stops(self) -> None:
        now = time.monotonic()
        for key, at in list(self._timeouts.items()):
            if at <= now:
                self._stop(key, "timeout", self._journal.entries[key]["grace"])
        for key, stop in list(self._stops.items()):
            alive = self._members(key)
            if not alive and stop["outcome"] is not None:
                self._conclude(key, stop, [])
            elif stop["giveUpAt"] is None and now >= stop["killAt"]:
                process_tree.send(alive, signal.SIGKILL)
                stop["giveUpAt"] = now + SURVIVORS_AFTER_SECS
            elif stop["giveUpAt"] is not None and now >= stop["giveUpAt"]:
                self._conclude(key, stop, [process.pid for process in alive])

    def _conclude(self, key: Key, stop: dict[str, Any], survivors: list[int]) -> None:
        del self._stops[key]
        outcome = stop["outcome"] or {"ended": time.time(), "known": True, "code": None, "signal": None}
        if stop["outcome"] is None:
            self._children = {pid: owner for pid, owner in self._children.items() if owner != key}
        self._finish([(key, {**outcome, "stopped": stop["reason"], "survivors": survivors})])


_NO_TRACE = "the keeper was killed at the moment it started"


def _exit(status: int) -> dict[str, Any]:
    code = os.waitstatus_to_exitcode(status)
    return {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}


def _marks(order: dict[str, Any]) -> list[str]:
    """The variables by which processes of this run are known, wherever they went."""
    return [f"{name}={value}" for name, value in order["env"].items() if name.startswith("CRONMEND_")]


def _word(outcome: dict[str, Any]) -> str:
    """How a run ended, as its cleanup is told."""
    if outcome.get("stopped"):
        return "timeout" if outcome["stopped"] == "timeout" else "aborted"
    return "completed" if outcome.get("code") == 0 else "failed"


def _cleanup_failure(outcome: dict[str, Any], limit: float) -> str | None:
    if outcome.get("stopped"):
        return f"ran longer than {limit:g} s and was ended" if outcome["stopped"] == "timeout" else "was stopped"
    if not outcome["known"]:
        return "nobody saw how it ended"
    if outcome.get("signal"):
        return f"killed by signal {outcome['signal']}"
    return f"exit code {outcome['code']}" if outcome["code"] else None


def _report(key: Key, entry: dict[str, Any], state: str | None = None) -> dict[str, Any]:
    """An entry as the app reads it."""
    if state is None:
        state = next((name for name in ("lost", "ended") if name in entry), "running" if "pid" in entry else "intent")
    return {
        "run": key[0],
        "attempt": key[1],
        "state": state,
        "pid": entry.get("pid"),
        "startTime": entry.get("start"),
        "bootId": entry.get("boot"),
        "startedAt": entry.get("at"),
        "endedAt": entry.get("ended"),
        "exitCode": entry.get("code"),
        "signal": entry.get("signal"),
        "known": entry.get("known", True),
        "spawnError": entry.get("spawnError"),
        "stopped": entry.get("stopped"),
        "survivors": entry.get("survivors", []),
        "cleanup": entry.get("cleanup"),
        "reason": entry.get("lost"),
    }


def _detach() -> None:
    """Leaves the process that started this one, so that nobody has to wait for the keeper."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.umask(0o077)
    os.chdir("/")


def _become_private(state: Path) -> int:
    """No other process of the person may look into this one; orphans of runs come to it.  Returns the lock."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    lock = os.open(state / "keeper.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(0)  # there is one already
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    log = os.open(state / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if os.fstat(log).st_size > 1 << 20:
        os.ftruncate(log, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    return lock


def main(arguments: list[str]) -> None:
    """Keeps runs until nobody needs it any more."""
    runtime, state = Path(arguments[0]), Path(arguments[1])
    leave_after = float(arguments[3]) if arguments[2:3] == ["--leave-after"] else LEAVE_AFTER_SECS
    _detach()
    _lock = _become_private(state)
    keeper = Keeper(runtime, state, leave_after)
    while keeper.step():
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
