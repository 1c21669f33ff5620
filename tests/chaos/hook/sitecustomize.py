"""Loaded by a `serve` under test: writes down each commit's event kinds, or kills the process at one of them.

KILL_POINT   `before:<kind>` or `after:<kind>`: kill -9 around the first commit that records such an event
COMMITS_TO   a file that gets one line of kinds for each commit
"""

import os
import signal
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

_kinds: set[str] = set()
_when, _, _kind = os.environ.get("KILL_POINT", "").partition(":")
_written = os.environ.get("COMMITS_TO")
_commit = DefaultDialect.do_commit


@event.listens_for(Engine, "before_cursor_execute")
def _note(_conn: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
    if statement.startswith("INSERT INTO events "):
        columns = [name.strip() for name in statement[statement.index("(") + 1 : statement.index(")")].split(",")]
        for row in parameters if many else [parameters]:
            _kinds.add(row[columns.index("kind")])


def _do_commit(self: DefaultDialect, connection: Any) -> None:
    hit = _kind in _kinds
    if _written and _kinds:
        with Path(_written).open("a") as file:
            file.write(" ".join(sorted(_kinds)) + "\n")
    _kinds.clear()
    if hit and _when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    _commit(self, connection)  # type: ignore[no-untyped-call]
    if hit and _when == "after":
        os.kill(os.getpid(), signal.SIGKILL)


DefaultDialect.do_commit = _do_commit  # type: ignore[method-assign]
