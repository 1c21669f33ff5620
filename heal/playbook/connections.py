"""Which host and port did not answer, as the common clients say it."""

import re
from dataclasses import dataclass

_HOST = r"(?P<host>[\w.-]{1,253}|\[?[0-9a-f:]{2,45}\]?)"
_PORT = r"(?P<port>\d{1,5})"
_SILENT = (
    r"(?:[Cc]onnection refused|[Cc]onnection timed out|timed out|Timeout was reached|i/o timeout|"
    r"Couldn't connect to server)"
)
_FORMS = tuple(
    (text)
    for text in (
        rf"connect to (?:host )?{_HOST} (?:\([^)\n]{{1,60}}\) )?port {_PORT}[^\n]{{0,80}}?: {_SILENT}",
        rf"host='{_HOST}', port={_PORT}[^\n]{{0,900}}?{_SILENT}",
        rf"server at \"{_HOST}\"[^\n]{{0,80}}?, port {_PORT} failed: {_SILENT}",
        rf"dial tcp {_HOST}:{_PORT}: (?:connect: )?{_SILENT}",
        rf"(?:ECONNREFUSED|ETIMEDOUT):? {_HOST}:{_PORT}\b",
        rf"connecting to {_HOST}:{_PORT}\. {_SILENT}",
        rf"server on '{_HOST}:{_PORT}' \(1(?:11|10)\)",
    )
)
_LOCAL = r"localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[?::1\]?"


@dataclass(frozen=True)
class Unanswered:
    """A place that refused the connection or did not answer."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        return re.fullmatch(_LOCAL, self.host) is not None


def unanswered(said: str) -> Unanswered | None:
    """The last such place in the text."""
    found = [(match.start(), match) for form in _FORMS for match in re.finditer(form, said)]
    if not found:
        return None
    match = max(found, key=lambda each: each[0])[1]
    return Unanswered(match["host"], int(match["port"]))
