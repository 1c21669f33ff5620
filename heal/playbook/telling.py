"""Failures that only a person can cure, with the exact step."""

import re
from collections.abc import Iterator

from heal.playbook.case import Case, Verdict
from heal.playbook.connections import unanswered
from heal.playbook.last_words import last_words

NAME = "telling"
ORDER = 50

_SIGNS = (
    (
        (r"Permission denied \([^)\n]{0,60}publickey"),
        "the remote host refused the SSH key",
        "add this machine's public key to the remote account, or load the right key: a scheduled run has no ssh-agent",
    ),
    (
        (r"REMOTE HOST IDENTIFICATION HAS CHANGED"),
        "the remote host's SSH key has changed",
        "ask the host's owner whether its key was changed on purpose; only then replace it with ssh-keygen -R HOST",
    ),
    (
        (r"Host key verification failed"),
        "the remote host's SSH key is not known to this user",
        "check the host's key and run ssh to it once by hand, as the user who runs the job",
    ),
    (
        (r"No space left on device|\bENOSPC\b(?![^\n]{0,80}watch)|Disk quota exceeded"),
        "the disk is full",
        "make room on the disk (df -h and df -i show where), then resume the job",
    ),
    (
        (r"certificate has expired|certificate verify failed: certificate has expired"),
        "the remote host's certificate has expired",
        "have it renewed, or ask the host's owner; check this machine's clock first",
    ),
    (
        (r"\binvalid_grant\b|Token has been expired or revoked"),
        "the service no longer accepts the stored login",
        "log in to the service again",
    ),
    (
        (r"Support for password authentication was removed"),
        "the remote host no longer accepts passwords",
        "set up an SSH key or an access token for the remote",
    ),
    (
        (r"could not read (?:Username|Password) for '[^'\n]{1,300}'"),
        "git has no stored login for the remote",
        "store one with a credential helper, or use an SSH remote",
    ),
    (
        (r"sudo: (?:a terminal is required|a password is required|no tty present)"),
        "sudo asks for a password, which a scheduled run cannot give",
        "allow this one command without a password in sudoers, or take sudo out of the job",
    ),
    (
        (r"(?:HTTP Error|returned error:|HTTP/[\d.]{1,3}|ERROR) (?P<code>401)\b|\b401 (?:Client Error|Unauthorized)"),
        "the service refused the login (401)",
        "check the key or token that the job uses, and sign in again or renew it",
    ),
    (
        (r"(?:HTTP Error|returned error:|HTTP/[\d.]{1,3}|ERROR) 403\b|\b403 (?:Client Error|Forbidden)"),
        "the service does not allow this (403)",
        "check the rights of the account or token that the job uses",
    ),
    (
        (r"(?:Cannot|[Ff]ailed to) connect to the Docker daemon"),
        "Docker is not running",
        "start Docker on this machine, then resume the job",
    ),
)
_RATE_LIMIT = r"(?i)rate limit"
_CREDENTIAL = r"[A-Z][A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)(?:_[A-Z0-9]{1,10})?"
_KEY_ERROR = rf"(?m)^KeyError: '(?P<name>{_CREDENTIAL})'$"
# A KeyError of any dict looks the same: the trace must show the environment.
_ENVIRONMENT = r'(?:<frozen os>|/os\.py)", line \d{1,6}, in __getitem__\b|\bos\.environ\['
_FRAME = r'(?m)^\s+File "'
_UNBOUND = rf"(?m)(?:^|[:\s])(?P<name>{_CREDENTIAL}): (?:unbound variable|parameter (?:null or )?not set)\b"
_SERVICES = {
    3306: "MySQL or MariaDB",
    5432: "PostgreSQL",
    5672: "RabbitMQ",
    6379: "Redis",
    9200: "Elasticsearch",
    11211: "memcached",
    27017: "MongoDB",
}


def look(case: Case) -> Verdict | None:
    """Unmistakable signs, at the end of the output, of something outside the project that waiting does not cure."""
    if case.exit_code == 0:
        return None
    cause, step = next(_known(case, last_words(case)), (None, None))
    if cause is None:
        return None
    return Verdict(
        kind="tell",
        rule=NAME,
        cause=cause,
        explanation=f"No change in the project can repair this: {cause}.",
        step=step,
    )


def _known(case: Case, said: str) -> Iterator[tuple[str, str]]:
    """Cause and step."""
    name = _missing_secret(case, said)
    if name is not None:
        yield f"the variable {name} is not set", f"set {name} in the job's environment, then resume the job"
    for pattern, cause, step in _SIGNS:
        if re.search(pattern, said) and not ("403" in cause and re.search(_RATE_LIMIT, said)):
            yield cause, step
    place = unanswered(said)
    if place is not None and place.is_local and place.port in _SERVICES:
        service = f"{_SERVICES[place.port]} at {place.host}:{place.port}"
        yield f"{service} does not answer on this machine", f"start {service}, then resume the job"


def _missing_secret(case: Case, said: str) -> str | None:
    match = re.search(_UNBOUND, said)
    if match is None and (re.search(_ENVIRONMENT, case.stderr_tail) or not re.search(_FRAME, case.stderr_tail)):
        match = re.search(_KEY_ERROR, said)
    return match["name"] if match else None
