"""A loopback HTTP server: its socket and threads."""

import contextlib
from typing import Any

from flask import Flask
from waitress import wasyncore
from waitress.server import create_server

LOOPBACK = "127.0.0.1"
REQUEST_ENDS_SECS = 2
LOOK_SECS = 15
"""Everything that happens wakes the loop; a look each second would be most of what an idle app does."""


class WebServer:
    """Waitress on loopback.  The port is known, and bound, from `serve` on."""

    def __init__(self, port: int, threads: int) -> None:
        self._port = port
        self._threads = threads
        self._server: Any = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.effective_port}"

    def serve(self, app: Flask) -> None:
        """Binds the port; answers from `run` on.  Raises OSError when the port is taken."""
        self._server = create_server(
            app,
            host=LOOPBACK,
            port=self._port,
            threads=self._threads,
            ident="cronmend",
            channel_request_lookahead=1,  # so that a stream learns that its page has gone
            asyncore_loop_timeout=LOOK_SECS,
        )

    def run(self) -> None:
        """The body of the server's thread."""
        self._server.run()

    def stop(self) -> None:
        """Lets requests under way finish for a while, then ends `run`."""
        self._server.task_dispatcher.shutdown(timeout=REQUEST_ENDS_SECS)
        # In the server's own thread: sockets closed under its feet would make it fail.  It may be awake already, and
        # have closed the trigger too before this thread pulls it.
        with contextlib.suppress(OSError):
            self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._server._map, ignore_all=True))  # noqa: SLF001
