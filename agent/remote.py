"""The session's way to the app: small JSON calls to the CLI server with its own token.  Standard library only."""

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

CALL_SECS = 900.0
AGAIN_SECS = 0.5


class Remote:
    """Calls of one session."""

    def __init__(self, api_url: str, token: str) -> None:
        self._address = urlsplit(api_url).netloc
        self._token = token

    def post(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """`call` with POST."""
        return self.call("POST", path, body)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Status and JSON answer.  Raises OSError when the app does not answer."""
        connection = http.client.HTTPConnection(self._address, timeout=CALL_SECS)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if method == "GET" else json.dumps(body or {}), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read() or b"{}")
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"the app gave no proper answer ({type(error).__name__})") from error
        finally:
            connection.close()
        return answer.status, found

    def run(self, job_id: int) -> tuple[int, dict[str, Any]]:
        """Runs the job and waits for its end, however long it takes."""
        path = f"/cron/jobs/{job_id}/run"
        status, answer = self.post(path)
        while status == 202:
            time.sleep(AGAIN_SECS)
            status, answer = self.post(f"{path}?follow={answer['runId']}")
        return status, answer
