"""The floor: the least that starts commands at one instant and keeps a durable record of each.

Intents in one commit before the first start, a log file a run, ends committed in groups; nothing of a product beside
it.  Runs in a process of its own: `floor.py FILE`, the file being JSON with commands, due, database, logs, ready.
"""

import json
import os
import select
import sqlite3
import sys
import time

GROUP_SECS = 0.05
STARTS_BETWEEN_LOOKS = 8


def main(order):  # noqa: PLR0915 - one piece: nothing may come between it and the system
    database = sqlite3.connect(order["database"], isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, ended REAL, code INTEGER)")
    epoll = select.epoll()
    alive, ended = {}, []
    committed_at = time.monotonic()

    def attend(patience):
        nonlocal committed_at
        for handle, _ in epoll.poll(patience, 256):
            run, pid = alive.pop(handle)
            epoll.unregister(handle)
            os.close(handle)
            ended.append((time.time(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), run))
        if ended and (time.monotonic() - committed_at > GROUP_SECS or not alive):
            database.execute("BEGIN IMMEDIATE")
            database.executemany("UPDATE runs SET ended = ?, code = ? WHERE id = ?", ended)
            database.execute("COMMIT")
            ended.clear()
            committed_at = time.monotonic()

    with open(order["ready"], "w"):
        pass
    time.sleep(max(0, order["due"] - time.time()))
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO runs (id) VALUES (?)", [(run,) for run in range(len(order["commands"]))])
    database.execute("COMMIT")
    for run, command in enumerate(order["commands"]):
        log = (os.POSIX_SPAWN_OPEN, 1, f"{order['logs']}/{run}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        silent = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        actions = [silent, log, (os.POSIX_SPAWN_DUP2, 1, 2)]
        pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", command], os.environ, setsid=True, file_actions=actions)
        handle = os.pidfd_open(pid)
        alive[handle] = (run, pid)
        epoll.register(handle, select.EPOLLIN)
        if run % STARTS_BETWEEN_LOOKS == STARTS_BETWEEN_LOOKS - 1:
            attend(0)
    while alive or ended:
        attend(GROUP_SECS)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(json.load(file))
