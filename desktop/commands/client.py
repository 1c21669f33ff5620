"""Talking to the running app; without one, reading its database through the same server code."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from desktop.paths import Paths, data_paths
from desktop.version import VERSION
from store.errors import Conflict, Forbidden, Invalid, NotFound, NotRunning, Refusal

CALL_SECS = 60.0


@dataclass(frozen=True)
class Answer:
    """A raw HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Door(Protocol):
    def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        """One exchange."""


@dataclass(frozen=True)
class _Running:
    """The app's own door, as cli.json names it."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=CALL_SECS)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.headers.items()), answer.read())
        finally:
            connection.close()


class _Closed:
    """The database of an app that does not run, opened to read only."""

    def __init__(self, paths: Paths) -> None:
        # The server code costs 0.2 s to import; a running app spares it.
        from heal.files import HealFiles  # noqa: PLC0415
        from heal.undo import UndoFolder  # noqa: PLC0415
        from scheduler.logs import LogFolder  # noqa: PLC0415
        from store.database import Database  # noqa: PLC0415
        from web.api.app import create_app  # noqa: PLC0415
        from web.desk import Desk  # noqa: PLC0415

        database = Database(paths.database, refuse_writes=NotRunning)
        files = HealFiles(database, UndoFolder(paths.undo))
        desk = Desk(database, LogFolder(paths.logs), files, VERSION, control_token="reading")  # noqa: S106 - opens nothing
        self._client = create_app(desk).test_client()

    def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        headers = {"Authorization": "Bearer reading"}
        answer = self._client.open(
            path,
            method=method,
            base_url="http://127.0.0.1:1",
            data=body,
            headers=headers,
            content_type="application/json",
        )
        return Answer(answer.status_code, dict(answer.headers.items()), answer.data)


class Client:
    """`call` for JSON, `raw` for bytes.  Both raise Refusal in the words of the server."""

    def __init__(self, paths: Paths | None = None) -> None:
        self.paths = paths or data_paths()
        self._door: _Door | None = None

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """The JSON answer; query values that are None are left out."""
        return json.loads(self.raw(method, path, body, query).body)

    def is_running(self) -> bool:
        """Whether an app answers on this data directory."""
        door = _find_running(self.paths)
        try:
            return door is not None and door.ask("GET", "/health", None).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def need_running(self) -> None:
        """Raises Refusal `not_running` before anything is prepared for an app that is not there."""
        if not self.is_running():
            raise NotRunning

    def raw(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Answer:
        """The whole answer; raises the refusal that the server sent."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        full = f"{path}?{urlencode(asked)}" if asked else path
        answer = self._ask(method, full, None if body is None else json.dumps(body).encode())
        if answer.status >= 400:
            raise _refusal(answer)
        return answer

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        if self._door is None:
            self._door = _find_running(self.paths)
        if self._door is not None:
            try:
                return self._door.ask(method, path, body)
            except ConnectionRefusedError:
                self._door = None  # cli.json of an app that was killed
            except (OSError, http.client.HTTPException) as error:
                raise Refusal(f"Cronmend does not answer ({error}).", code="no_answer") from error
        if method != "GET":
            raise NotRunning
        if not self.paths.database.exists():
            raise Refusal(f"There is nothing in {self.paths.home} yet. Start with: cronmend serve", code="not_running")
        self._door = _Closed(self.paths)
        return self._door.ask(method, path, body)


def _find_running(paths: Paths) -> _Running | None:
    try:
        facts = json.loads(paths.address.read_text())
        return _Running(urlsplit(facts["url"]).netloc, facts["controlToken"])
    except (OSError, ValueError, KeyError):
        return None


def _refusal(answer: Answer) -> Refusal:
    try:
        error = json.loads(answer.body)["error"]
    except (ValueError, KeyError, TypeError):
        return Refusal(f"Cronmend answered {answer.status}.", code="unexpected")
    message, field = error["message"], error.get("field")
    if answer.status == 404:
        missing = NotFound("object", "")
        missing.message = message
        return missing
    if answer.status == 422 and field:
        return Invalid(field, message)
    family = {403: Forbidden(message), 409: Conflict(message, code=error["code"], field=field)}
    return family.get(answer.status, Refusal(message, code=error["code"], field=field))
