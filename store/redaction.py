"""Takes secrets out of text before it enters the database, a page, a prompt or a message."""

import re
from collections.abc import Iterable

MARK = "[redacted]"

# Token families with a fixed shape, and values that a name gives away.
_SHAPES = re.compile(
    r"""
    sk-(?:ant|proj|live|test)?-?[A-Za-z0-9_\-]{16,}            # model and payment keys
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
    | xox[abprs]-[A-Za-z0-9-]{10,}
    | AKIA[0-9A-Z]{16}
    | AIza[0-9A-Za-z_\-]{30,}
    | (?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}   # JSON web tokens
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----[\s\S]*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"""(?i)((?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?token)
        ["']?\s*[=:]\s*["']?)
        (?!unbound\ variable|parameter\ |command\ not|Permission\ denied|Is\ a\ )   # what a shell says after a name
        ([^\s"'&;,]{4,})""",
    re.VERBOSE,
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}")
_URL_LOGIN = re.compile(r"(?<![a-z0-9+.\-])([a-z][a-z0-9+.\-]{0,30}://[^/\s:@]{0,256}:)[^/\s@]{1,512}(@)")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with the exact values in `secrets` and everything of a secret's shape replaced by a mark."""
    for value in sorted({s for s in secrets if len(s) >= 6}, key=len, reverse=True):
        text = text.replace(value, MARK)
    text = _SHAPES.sub(MARK, text)
    text = _NAMED.sub(rf"\1{MARK}", text)
    text = _BEARER.sub(rf"\1{MARK}", text)
    return _URL_LOGIN.sub(rf"\1{MARK}\2", text)
