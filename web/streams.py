"""Server-sent streams over HTTP."""

from collections.abc import Iterator

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from web.desk import desk
from web.whole import read_whole

blueprint = Blueprint("streams", __name__)


def as_stream(lines: Iterator[str]) -> Response:
    """A server-sent stream that ends when its page goes away.  Raises Refusal when there are too many."""
    feed = desk().feed
    feed.enter()
    gone = request.environ.get("waitress.client_disconnected", lambda: False)

    def until_gone() -> Iterator[str]:
        for line in lines:
            if gone():
                return
            if line:
                yield line

    answer = Response(until_gone(), mimetype="text/event-stream")
    answer.call_on_close(feed.leave)
    return answer


@blueprint.get("/feed")
def feed() -> ResponseReturnValue:
    """The page's one stream."""
    last = request.headers.get("Last-Event-ID") or request.args.get("from", "")
    stream = desk().feed.follow(read_whole(last))
    return as_stream(stream)
