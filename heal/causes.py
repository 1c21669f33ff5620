"""The panel of known failure texts: what each is called, its category, and the object it names."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Sign:
    """One known text.  `weight` decides between signs of one output: the more exact one wins, then the first."""

    hit: str
    category: str
    weight: int
    template: str
    pattern: re.Pattern[str]

    def cause(self, match: re.Match[str]) -> str:
        """The cause in words, with what the pattern's named groups found."""
        return self.template.format(**{name: (value or "").strip() for name, value in match.groupdict().items()})


# One line of output is looked at a time, and no pattern has a repeat inside a repeat: time grows with the text alone.
# fmt: off
_PANEL = (
    ("CRLF", "script-error", 9, "bad interpreter (CRLF line endings): {file}",
     r"(?P<file>[^\s:]{1,300}): (?:/\S{1,200}?)?(?:\^M|\\r|\r): bad interpreter"),
    ("CRLF", "script-error", 9, "bad interpreter (CRLF line endings): {what}",
     r"its interpreter '(?P<what>[^']{0,200})\\r' does not exist"),
    ("CRLF", "script-error", 9, "CRLF line endings: {file}",
     r"(?P<file>[^\s:]{1,300}): (?:line )?\d+: (?:\$'[^']{0,100}\\r'|[^:]{0,100}\r): (?:command )?not found"),
    ("ModuleNotFoundError", "script-error", 8, "missing Python module: {name}",
     r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<name>[\w.]{1,200})"),
    ("MODULE_NOT_FOUND", "script-error", 8, "missing Node module: {name}",
     r"Error: Cannot find module '(?P<name>[^']{1,300})'"),
    ("ENOENT", "missing-file", 8, "missing file: {file}",
     r"\[Errno 2\] No such file or directory: '(?P<file>[^']{1,500})'"),
    ("ENOENT", "missing-file", 8, "missing file: {file}",
     r"ENOENT: no such file or directory, \w{1,20} '(?P<file>[^']{1,500})'"),
    ("ENOENT", "missing-file", 8, "missing file: {file}",
     (r"(?:cannot|can't) (?:open|access|stat|create|touch|create regular file) (?:file )?'?(?P<file>[^':]{1,500})'?:? ?"
     r"(?:\[Errno 2\] )?No such file")),
    ("ENOENT", "missing-file", 8, "missing file: {file}",
     r"(?:cannot open|cannot create) (?P<file>[^:]{1,500}): (?:No such file|Directory nonexistent)"),
    ("ENOENT", "missing-file", 8, "missing file: {file}",
     r"^tar(?: \(child\))?: (?P<file>[^:]{1,500}): Cannot open: No such file"),
    ("ENOENT", "missing-file", 6, "missing file: {file}",
     r"^(?:[^\s:]{1,300}: )(?:line \d+: )?(?P<file>[^:]{1,400}): No such file or directory"),
    ("command not found", "missing-file", 7, "command not found: {name}",
     r"(?:line \d+|\d+): (?P<name>[^\s:]{1,200}): (?:command )?not found"),
    ("command not found", "missing-file", 7, "command not found: {name}",
     r"^(?P<name>[^\s:]{1,200}): command not found"),
    ("EACCES", "permission", 8, "permission denied: {file}",
     r"\[Errno 13\] Permission denied: '(?P<file>[^']{1,500})'"),
    ("EACCES", "permission", 8, "permission denied: {file}",
     r"EACCES: permission denied, \w{1,20} '(?P<file>[^']{1,500})'"),
    ("publickey", "permission", 9, "login refused by {who} ({how})",
     r"(?P<who>\S{1,200}): Permission denied \((?P<how>publickey[^)]{0,100})\)"),
    ("EACCES", "permission", 7, "permission denied: {file}",
     r"(?:: |cannot \w{1,20} )'?(?P<file>[^\s:']{1,400})'?: Permission denied"),
    ("EPERM", "permission", 7, "operation not permitted: {file}",
     r"(?P<file>[^\s:']{1,400})'?: Operation not permitted"),
    ("EROFS", "permission", 7, "read-only file system: {file}",
     r"(?P<file>[^\s:']{1,400})'?: Read-only file system"),
    ("ECONNREFUSED", "network", 8, "connection refused: {where}",
     r"ECONNREFUSED (?P<where>[\w.:\[\]-]{1,200})"),
    ("ECONNREFUSED", "network", 8, "connection refused: {host}:{port}",
     r"connect to (?P<host>[\w.-]{1,200}) port (?P<port>\d+)[^:]{0,60}: (?:Connection refused|Couldn't connect)"),
    ("ECONNREFUSED", "network", 8, "connection refused: {host}:{port}",
     r"(?:Failed|Could not) (?:to )?connect to (?P<host>[\w.-]{1,200}) port (?P<port>\d+)"),
    ("ECONNREFUSED", "network", 8, "connection refused: {host}:{port}",
     r"server at \"(?P<host>[^\"]{1,200})\"[^,]{0,60}, port (?P<port>\d+) failed: Connection refused"),
    ("ECONNREFUSED", "network", 4, "connection refused",
     r"(?:Connection refused|\[Errno 111\])"),
    ("ENOTFOUND", "network", 8, "host name not found: {host}",
     r"(?:Could not resolve host:? |getaddrinfo ENOTFOUND |Could not resolve hostname )(?P<host>[\w.-]{1,253})"),
    ("ENOTFOUND", "network", 5, "host name not found",
     r"(?:Name or service not known|Temporary failure in name resolution|nodename nor servname)"),
    ("ETIMEDOUT", "network", 8, "connection timed out: {host}:{port}",
     r"(?:connect to|host) (?P<host>[\w.-]{1,200}) port (?P<port>\d+)[^:]{0,60}: Connection timed out"),
    ("ETIMEDOUT", "network", 4, "connection timed out",
     r"(?:ETIMEDOUT|Connection timed out|timed out connecting|ReadTimeout|ConnectTimeout)"),
    ("ECONNRESET", "network", 4, "connection reset by the other side",
     r"(?:ECONNRESET|Connection reset by peer)"),
    ("ENETUNREACH", "network", 4, "network unreachable",
     r"(?:Network is unreachable|No route to host)"),
    ("CERTIFICATE_VERIFY_FAILED", "network", 6, "TLS certificate not accepted",
     r"(?:CERTIFICATE_VERIFY_FAILED|certificate has expired|self.signed certificate)"),
    ("429", "network", 7, "rate limited (429)",
     r"(?:HTTP[/ ][\d.]* ?429|429 Too Many Requests|HTTP Error 429|status code 429)"),
    ("401", "network", 7, "unauthorized (401)",
     r"(?:HTTP Error 401|401 Unauthorized|status code 401|returned error: 401)"),
    ("403", "network", 7, "forbidden (403)",
     r"(?:HTTP Error 403|403 Forbidden|status code 403|returned error: 403)"),
    ("404", "network", 6, "not found (404)",
     r"(?:HTTP Error 404|404 Not Found|returned error: 404)"),
    ("5xx", "network", 6, "server error ({code})",
     r"(?:HTTP Error|returned error:|status code) (?P<code>50\d)"),
    ("ENOSPC", "script-error", 8, "no space left on the disk",
     r"(?:ENOSPC|No space left on device)"),
    ("KeyError", "script-error", 8, "KeyError {key}",
     r"^KeyError: (?P<key>.{1,200})"),
    ("SyntaxError", "script-error", 8, "{kind}: {what}",
     r"^(?P<kind>SyntaxError|IndentationError|TabError): (?P<what>.{1,200})"),
    ("JSONDecodeError", "script-error", 8, "not JSON: {what}",
     r"JSONDecodeError: (?P<what>.{1,200})"),
    ("syntax error", "script-error", 7, "syntax error in {where}: {what}",
     r"(?P<where>[^\s:]{1,300}: (?:line )?\d+): [Ss]yntax error:? ?(?P<what>.{0,150})"),
    ("index.lock", "script-error", 9, "git lock left behind: {file}",
     r"Unable to create '(?P<file>[^']{1,400}\.lock)': File exists"),
    ("make", "script-error", 7, "no rule to make target {what}",
     r"No rule to make target '(?P<what>[^']{1,200})'"),
    ("exception", "script-error", 5, "{kind}: {what}",
     r"^(?P<kind>[A-Za-z_][\w.]{0,100}(?:Error|Exception)): (?P<what>.{1,300})"),
    ("exception", "script-error", 4, "{kind}",
     r"^(?P<kind>[A-Za-z_][\w.]{0,100}(?:Error|Exception))$"),
)
# fmt: on

SIGNS = tuple(Sign(hit, category, weight, cause, re.compile(text)) for hit, category, weight, cause, text in _PANEL)
