"""The output of a run as it may be kept and shown: plain lines, without terminal codes and without secrets."""

import re
from collections.abc import Iterable

from store.redaction import redact

TAIL_BYTES = 262_144
MOST_LINE_CHARS = 2_000

_MOST_CUT_BYTES = 4_096
_SHORTEST_LINE_OF_A_SECRET = 16

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^X][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]?[0-~])")
# Of the whitespace only tab and newline stay.  The last group turns the direction of text around.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")
# A CR before one of these is no redrawn line: it is part of a name, as in "sh\r: not found".
_CR_IN_NAME = re.compile(r"\r(?=[:'\"])")


def clean_lines(data: bytes, secrets: Iterable[str]) -> list[str]:
    """The lines of a stream; of a progress line that redraws itself, the last state.  Empty for no output."""
    text = clean_text(_without_cut_start(data).decode(errors="replace"), secrets)
    return [line[:MOST_LINE_CHARS] for line in text.rstrip().split("\n")] if text.strip() else []


def clean_text(text: str, secrets: Iterable[str]) -> str:
    """The text without terminal codes, control characters and secrets."""
    # What cannot be encoded cannot be stored.
    text = _ESCAPES.sub("", text.encode(errors="replace").decode())
    text = _CR_IN_NAME.sub("^M", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    # Taken out of the whole text: a key of many lines, or one longer than a line may be, is known only there.
    return redact(_CONTROLS.sub("", text), _values(secrets))


def _without_cut_start(data: bytes) -> bytes:
    """A tail begins in the middle of a line, which may be in the middle of a secret that no one would know again."""
    if len(data) < TAIL_BYTES:
        return data
    end = data.find(b"\n", 0, _MOST_CUT_BYTES)
    return data[end + 1 if end >= 0 else _MOST_CUT_BYTES :]


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _values(secrets: Iterable[str]) -> set[str]:
    """The secrets as programs print them: without the newline at the end, and line by line."""
    values = set()
    for secret in secrets:
        lines = secret.split()
        values |= {secret, secret.strip(), *(line for line in lines if len(line) >= _SHORTEST_LINE_OF_A_SECRET)}
    return values
