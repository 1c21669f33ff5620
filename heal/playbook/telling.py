"""Failures that only a person can cure, with the exact step."""

import re

from heal.playbook.case import Case, Verdict

NAME = "telling"
ORDER = 50

_SIGNS = (
    (
        re.compile(r"Permission denied \(publickey"),
        "the remote host refused the SSH key",
        "add this machine's public key to the remote account, or load the right key",
    ),
    (
        re.compile(r"Host key verification failed"),
        "the remote host's SSH key is unknown or has changed",
        "check the host's key and run ssh to it once by hand",
    ),
    (
        re.compile(r"No space left on device|ENOSPC"),
        "the disk is full",
        "make room on the disk, then resume the job",
    ),
    (
        re.compile(r"certificate has expired"),
        "the remote host's certificate has expired",
        "have it renewed, or ask the host's owner",
    ),
    (
        re.compile(r"invalid_grant|Token has been expired or revoked"),
        "the service no longer accepts the stored login",
        "log in to the service again",
    ),
)
_MISSING_SECRET = re.compile(
    r"KeyError: '(?P<name>[A-Z][A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD))'"
    r"|(?P<name2>[A-Z][A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD)): "
    r"(?:unbound variable|parameter (?:null or )?not set)"
)


def look(case: Case) -> Verdict | None:
    """Unmistakable signs of something outside the project that waiting does not cure."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}"
    match = _MISSING_SECRET.search(said)
    if match is not None:
        name = match["name"] or match["name2"]
        return _tell(f"the variable {name} is not set", f"set {name} in the job's environment, then resume the job")
    for pattern, cause, step in _SIGNS:
        if pattern.search(said):
            return _tell(cause, step)
    return None


def _tell(cause: str, step: str) -> Verdict:
    return Verdict(
        kind="tell",
        rule=NAME,
        cause=cause,
        explanation=f"No change in the project can repair this: {cause}.",
        step=step,
    )
