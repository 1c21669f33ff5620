"""The panel of known failure texts: what each is called, its category, and the object it names."""

import re
from collections.abc import Callable
from dataclasses import dataclass

Named = Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Sign:
    """One known text.  `weight` decides between signs of one output: the more exact one wins, then the first."""

    hit: str
    category: str
    pattern: re.Pattern[str]
    cause: Named
    weight: int = 5


def _sign(hit: str, category: str, pattern: str, cause: str, weight: int = 5) -> Sign:
    """`cause` is a template over the named groups of `pattern`."""
    return Sign(hit, category, re.compile(pattern), lambda match: cause.format(**_groups(match)), weight)


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: (value or "").strip() for name, value in match.groupdict().items()}


# One line of output is looked at a time, and no pattern has a repeat inside a repeat: time grows with the text alone.
SIGNS: tuple[Sign, ...] = (
    _sign(
        "CRLF",
        "script-error",
        r"(?P<file>[^\s:]{1,300}): (?:/\S{1,200}?)?(?:\^M|\\r|\r): bad interpreter",
        "bad interpreter (CRLF line endings): {file}",
        9,
    ),
    _sign(
        "CRLF",
        "script-error",
        r"its interpreter '(?P<what>[^']{0,200})\\r' does not exist",
        "bad interpreter (CRLF line endings): {what}",
        9,
    ),
    _sign(
        "CRLF",
        "script-error",
        r"(?P<file>[^\s:]{1,300}): (?:line )?\d+: (?:\$'[^']{0,100}\\r'|[^:]{0,100}\r): (?:command )?not found",
        "CRLF line endings: {file}",
        9,
    ),
    _sign(
        "ModuleNotFoundError",
        "script-error",
        r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<name>[\w.]{1,200})",
        "missing Python module: {name}",
        8,
    ),
    _sign(
        "MODULE_NOT_FOUND",
        "script-error",
        r"Error: Cannot find module '(?P<name>[^']{1,300})'",
        "missing Node module: {name}",
        8,
    ),
    _sign(
        "ENOENT",
        "missing-file",
        r"\[Errno 2\] No such file or directory: '(?P<file>[^']{1,500})'",
        "missing file: {file}",
        8,
    ),
    _sign(
        "ENOENT",
        "missing-file",
        r"ENOENT: no such file or directory, \w{1,20} '(?P<file>[^']{1,500})'",
        "missing file: {file}",
        8,
    ),
    _sign(
        "ENOENT",
        "missing-file",
        r"(?:cannot open|can't open|cannot access|cannot stat|cannot create|cannot touch|cannot create regular file) (?:file )?'?(?P<file>[^':]{1,500})'?:? ?(?:\[Errno 2\] )?No such file",
        "missing file: {file}",
        8,
    ),
    _sign(
        "ENOENT",
        "missing-file",
        r"(?:cannot open|cannot create) (?P<file>[^:]{1,500}): (?:No such file|Directory nonexistent)",
        "missing file: {file}",
        8,
    ),
    _sign(
        "ENOENT",
        "missing-file",
        r"^(?:[^\s:]{1,300}: )(?:line \d+: )?(?P<file>[^:]{1,400}): No such file or directory",
        "missing file: {file}",
        6,
    ),
    _sign(
        "command not found",
        "missing-file",
        r"(?:line \d+|\d+): (?P<name>[^\s:]{1,200}): (?:command )?not found",
        "command not found: {name}",
        7,
    ),
    _sign(
        "command not found",
        "missing-file",
        r"^(?P<name>[^\s:]{1,200}): command not found",
        "command not found: {name}",
        7,
    ),
    _sign(
        "EACCES",
        "permission",
        r"\[Errno 13\] Permission denied: '(?P<file>[^']{1,500})'",
        "permission denied: {file}",
        8,
    ),
    _sign(
        "EACCES",
        "permission",
        r"EACCES: permission denied, \w{1,20} '(?P<file>[^']{1,500})'",
        "permission denied: {file}",
        8,
    ),
    _sign(
        "publickey",
        "permission",
        r"(?P<who>\S{1,200}): Permission denied \((?P<how>publickey[^)]{0,100})\)",
        "login refused by {who} ({how})",
        9,
    ),
    _sign(
        "EACCES",
        "permission",
        r"(?:: |cannot \w{1,20} )'?(?P<file>[^\s:']{1,400})'?: Permission denied",
        "permission denied: {file}",
        7,
    ),
    _sign(
        "EPERM",
        "permission",
        r"(?P<file>[^\s:']{1,400})'?: Operation not permitted",
        "operation not permitted: {file}",
        7,
    ),
    _sign(
        "EROFS", "permission", r"(?P<file>[^\s:']{1,400})'?: Read-only file system", "read-only file system: {file}", 7
    ),
    _sign("ECONNREFUSED", "network", r"ECONNREFUSED (?P<where>[\w.:\[\]-]{1,200})", "connection refused: {where}", 8),
    _sign(
        "ECONNREFUSED",
        "network",
        r"connect to (?P<host>[\w.-]{1,200}) port (?P<port>\d+)[^:]{0,60}: (?:Connection refused|Couldn't connect)",
        "connection refused: {host}:{port}",
        8,
    ),
    _sign(
        "ECONNREFUSED",
        "network",
        r"(?:Failed|Could not) (?:to )?connect to (?P<host>[\w.-]{1,200}) port (?P<port>\d+)",
        "connection refused: {host}:{port}",
        8,
    ),
    _sign(
        "ECONNREFUSED",
        "network",
        r"server at \"(?P<host>[^\"]{1,200})\"[^,]{0,60}, port (?P<port>\d+) failed: Connection refused",
        "connection refused: {host}:{port}",
        8,
    ),
    _sign("ECONNREFUSED", "network", r"(?:Connection refused|\[Errno 111\])", "connection refused", 4),
    _sign(
        "ENOTFOUND",
        "network",
        r"(?:Could not resolve host:? |getaddrinfo ENOTFOUND |Could not resolve hostname )(?P<host>[\w.-]{1,253})",
        "host name not found: {host}",
        8,
    ),
    _sign(
        "ENOTFOUND",
        "network",
        r"(?:Name or service not known|Temporary failure in name resolution|nodename nor servname)",
        "host name not found",
        5,
    ),
    _sign(
        "ETIMEDOUT",
        "network",
        r"(?:connect to|host) (?P<host>[\w.-]{1,200}) port (?P<port>\d+)[^:]{0,60}: Connection timed out",
        "connection timed out: {host}:{port}",
        8,
    ),
    _sign(
        "ETIMEDOUT",
        "network",
        r"(?:ETIMEDOUT|Connection timed out|timed out connecting|ReadTimeout|ConnectTimeout)",
        "connection timed out",
        4,
    ),
    _sign("ECONNRESET", "network", r"(?:ECONNRESET|Connection reset by peer)", "connection reset by the other side", 4),
    _sign("ENETUNREACH", "network", r"(?:Network is unreachable|No route to host)", "network unreachable", 4),
    _sign(
        "CERTIFICATE_VERIFY_FAILED",
        "network",
        r"(?:CERTIFICATE_VERIFY_FAILED|certificate has expired|self.signed certificate)",
        "TLS certificate not accepted",
        6,
    ),
    _sign(
        "429",
        "network",
        r"(?:HTTP[/ ][\d.]* ?429|429 Too Many Requests|HTTP Error 429|status code 429)",
        "rate limited (429)",
        7,
    ),
    _sign(
        "401",
        "network",
        r"(?:HTTP Error 401|401 Unauthorized|status code 401|returned error: 401)",
        "unauthorized (401)",
        7,
    ),
    _sign(
        "403", "network", r"(?:HTTP Error 403|403 Forbidden|status code 403|returned error: 403)", "forbidden (403)", 7
    ),
    _sign("404", "network", r"(?:HTTP Error 404|404 Not Found|returned error: 404)", "not found (404)", 6),
    _sign("5xx", "network", r"(?:HTTP Error|returned error:|status code) (?P<code>50\d)", "server error ({code})", 6),
    _sign("ENOSPC", "script-error", r"(?:ENOSPC|No space left on device)", "no space left on the disk", 8),
    _sign("KeyError", "script-error", r"^KeyError: (?P<key>.{1,200})", "KeyError {key}", 8),
    _sign(
        "SyntaxError",
        "script-error",
        r"^(?P<kind>SyntaxError|IndentationError|TabError): (?P<what>.{1,200})",
        "{kind}: {what}",
        8,
    ),
    _sign("JSONDecodeError", "script-error", r"JSONDecodeError: (?P<what>.{1,200})", "not JSON: {what}", 8),
    _sign(
        "syntax error",
        "script-error",
        r"(?P<where>[^\s:]{1,300}: (?:line )?\d+): [Ss]yntax error:? ?(?P<what>.{0,150})",
        "syntax error in {where}: {what}",
        7,
    ),
    _sign(
        "index.lock",
        "script-error",
        r"Unable to create '(?P<file>[^']{1,400}\.lock)': File exists",
        "git lock left behind: {file}",
        9,
    ),
    _sign(
        "make", "script-error", r"No rule to make target '(?P<what>[^']{1,200})'", "no rule to make target {what}", 7
    ),
    _sign(
        "exception",
        "script-error",
        r"^(?P<kind>[A-Za-z_][\w.]{0,100}(?:Error|Exception)): (?P<what>.{1,300})",
        "{kind}: {what}",
        5,
    ),
    _sign("exception", "script-error", r"^(?P<kind>[A-Za-z_][\w.]{0,100}(?:Error|Exception))$", "{kind}", 4),
)
