"""The CLI server's socket and threads."""

from typing import Any

from flask import Flask
from waitress.server import create_server

THREADS = 16
LOOPBACK = "127.0.0.1"


class ApiServer:
    """Waitress on loopback.  The port is known, and bound, from `serve` on."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: Any = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.effective_port}"

    def serve(self, app: Flask) -> None:
        """Binds the port; answers from `start` on.  Raises OSError when the port is taken."""
        self._server = create_server(app, host=LOOPBACK, port=self._port, threads=THREADS, ident="cronmend")

    def run(self) -> None:
        """The body of the server's thread."""
        self._server.run()

    def stop(self) -> None:
        self._server.close()
