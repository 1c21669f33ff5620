"""A scripted Messages API over loopback HTTP: the SDK's own path runs against it.

In a test:      with ClaudeServer([[text("Looking."), call("read", file_path="a.py")], ...]) as claude: claude.url
From a shell:   python tests/support/claude_server.py script.json     (prints its URL; the file holds a list of turns)

A turn is a list of content blocks, a callable that makes them from the request body, or a Fault.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming
from pydantic import TypeAdapter, ValidationError

Block = dict[str, Any]
Turn = "Sequence[Block] | Callable[[dict[str, Any]], Sequence[Block]] | Fault"

_REQUEST: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)
_numbers = iter(range(1, 1_000_000))


@dataclass(frozen=True)
class Fault:
    """A reply that is not as it should be.

    An HTTP error, one that starts late or comes in drops (seconds), is cut off, ends for an unusual reason, says
    nothing of its tokens, or is a page of something else.
    """

    status: int = 200
    message: str = "scripted"
    retry_after: str | None = "0"
    slow_secs: float = 0.0
    cut_off: bool = False
    stop_reason: str | None = None
    blocks: tuple[Block, ...] = ()
    drop_secs: float = 0.0
    has_usage: bool = True
    page: str | None = None


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def call(tool: str, /, **given: Any) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):06d}", "name": tool, "input": given}


class ClaudeServer:
    """Answers turn by turn; after the last one it repeats it.  `requests` and `headers` hold what came."""

    def __init__(self, script: Sequence[Any]) -> None:
        self._script = list(script)
        self._turn = 0
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server._serve(self)

            def do_GET(self) -> None:
                """Asked for the models: the answer to whether a key works."""
                self.send_response(200 if self.headers.get("x-api-key") else 401)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def play(self, script: Sequence[Any]) -> None:
        """Answers by another script from now on."""
        with self._lock:
            self._script, self._turn = list(script), 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            turn = self._script[min(self._turn, len(self._script) - 1)]
            self._turn += 1
        wrong = _wrong_with(handler.path, body)
        if wrong is not None:
            self.refused.append(wrong)
            _send_error(handler, 400, "invalid_request_error", wrong)
            return
        if isinstance(turn, Fault):
            self._fail(handler, body, turn)
        else:
            blocks = turn(body) if callable(turn) else turn
            _send(handler, body, _message(body, list(blocks)), Fault())

    def _fail(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], fault: Fault) -> None:
        time.sleep(fault.slow_secs)
        if fault.status != 200:
            kinds = {
                400: "invalid_request_error",
                401: "authentication_error",
                403: "permission_error",
                429: "rate_limit_error",
            }
            kind = kinds.get(fault.status, "overloaded_error")
            _send_error(handler, fault.status, kind, fault.message, fault.retry_after)
            return
        message = _message(body, list(fault.blocks) or [text("…")])
        if fault.stop_reason:
            message["stop_reason"] = fault.stop_reason
        if not fault.has_usage:
            del message["usage"]
        if fault.page is not None:
            _send_bytes(handler, "text/html", [fault.page.encode()], Fault())
        else:
            _send(handler, body, message, fault)


def _message(body: dict[str, Any], blocks: list[Block]) -> dict[str, Any]:
    uses_tool = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{next(_numbers):06d}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": "tool_use" if uses_tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1_000,
            "output_tokens": 100,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _send(handler: BaseHTTPRequestHandler, body: dict[str, Any], message: dict[str, Any], fault: Fault) -> None:
    if body.get("stream"):
        _send_bytes(handler, "text/event-stream", list(_events(message)), fault)
    else:
        _send_bytes(handler, "application/json", [json.dumps(message).encode()], fault)


def _send_bytes(handler: BaseHTTPRequestHandler, kind: str, parts: list[bytes], fault: Fault) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(sum(len(part) for part in parts)))
    handler.end_headers()
    sent = parts[: len(parts) // 2] or [parts[0][: len(parts[0]) // 2]] if fault.cut_off else parts
    for part in sent:
        handler.wfile.write(part)
        handler.wfile.flush()
        time.sleep(fault.drop_secs)
    handler.close_connection = fault.cut_off


def _events(message: dict[str, Any]) -> Iterator[bytes]:
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            deltas = [{"type": "text_delta", "text": part} for part in _pieces(block["text"], 12)]
        else:
            yield _event("content_block_start", index=index, content_block={**block, "input": {}})
            raw = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in _pieces(raw, 20)]
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield _event("message_stop")


def _event(kind: str, **facts: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **facts})}\n\n".encode()


def _pieces(whole: str, size: int) -> list[str]:
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _send_error(
    handler: BaseHTTPRequestHandler, status: int, kind: str, message: str, retry_after: str | None = None
) -> None:
    data = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    if retry_after is not None:
        handler.send_header("retry-after", retry_after)
    handler.end_headers()
    handler.wfile.write(data)


def _wrong_with(path: str, body: dict[str, Any]) -> str | None:
    """What the real API would refuse: a body of another shape, messages out of turn, an unpaired tool_use."""
    if path.partition("?")[0] != "/v1/messages":
        return f"no such path: {path}"
    try:
        _walk(_REQUEST.validate_python({key: value for key, value in body.items() if key != "stream"}))
    except ValidationError as error:
        return f"not a request of the Messages API: {error.errors(include_url=False)[0]}"
    roles = [message["role"] for message in body["messages"]]
    if roles[0] != "user" or any(one == two for one, two in itertools.pairwise(roles)):
        return f"roles must alternate, user first: {roles}"
    return _unpaired(body["messages"])


def _walk(value: Any) -> None:
    """Reads a validated request to its end: its iterables are only checked as they are read."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return
    for item in value.values() if isinstance(value, dict) else value:
        _walk(item)


def _unpaired(messages: list[dict[str, Any]]) -> str | None:
    wanted: list[str] = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if message["role"] == "user":
            if sorted(results) != sorted(wanted):
                return f"tool_use ids {wanted} were answered by {results}"
            wanted = []
        else:
            wanted = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    return f"tool_use ids {wanted} have no result" if wanted else None


def main() -> None:
    """Serves the script in a JSON file until the process is ended."""
    script = json.loads(Path(sys.argv[1]).read_text())
    with ClaudeServer(script) as claude:
        print(claude.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
