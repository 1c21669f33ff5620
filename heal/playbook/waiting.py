"""Failures that only time cures: the schedule goes on, and the next run is the test."""

import re

from heal.playbook.case import Case, Verdict
from heal.playbook.connections import unanswered
from heal.playbook.last_words import last_words

NAME = "waiting"
ORDER = 60

_SIGNS = (
    (
        (r"Temporary failure in name resolution|\bEAI_AGAIN\b"),
        "name resolution does not work at present",
    ),
    (
        (
            r"(?:HTTP Error|returned error:|HTTP/[\d.]{1,3}|ERROR) 429\b|\b429 (?:Client Error|Too Many Requests)"
            r"|\b403\b[^\n]{0,200}\brate limit exceeded|rate limit exceeded[^\n]{0,200}\b403\b"
        ),
        "rate limited (429)",
    ),
    (
        (
            r"(?:HTTP Error|returned error:|HTTP/[\d.]{1,3}|ERROR) 50[234]\b"
            r"|\b50[234] (?:Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)"
        ),
        "the remote service is down (5xx)",
    ),
    (r"Network is unreachable|\bENETUNREACH\b", "the network is unreachable"),
)
_RETRY_AFTER = r"(?i)retry[- ]after:?\s*(?P<when>\d{1,6}\b|[A-Z][a-z]{2}, [\w :]{10,30})"


def look(case: Case) -> Verdict | None:
    """Unmistakable signs, at the end of the output, of a fault elsewhere that passes."""
    if case.exit_code == 0:
        return None
    said = last_words(case)
    cause = next((cause for pattern, cause in _SIGNS if re.search(pattern, said)), None)
    if cause is None:
        place = unanswered(said)
        if place is None or place.is_local:
            return None
        cause = f"{place.host} does not answer at port {place.port}"
    later = re.search(_RETRY_AFTER, f"{case.stderr_tail}\n{case.stdout_tail}") if "429" in cause else None
    until = f" The service asks to retry after {_span(later['when'])}." if later else ""
    return Verdict(
        kind="wait",
        rule=NAME,
        cause=case.cause if case.category == "network" and case.cause else cause,
        explanation=f"Nothing in the project is broken: {cause}.{until} The schedule goes on as it is.",
    )


def _span(when: str) -> str:
    return f"{when} seconds" if when.isdigit() else when
