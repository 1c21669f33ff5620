"""Failures that only time cures: the schedule goes on, and the next run is the test."""

import re

from heal.playbook.case import Case, Verdict

NAME = "waiting"
ORDER = 60

_SIGNS = (
    (re.compile(r"Temporary failure in name resolution|EAI_AGAIN"), "name resolution does not work at present"),
    (
        re.compile(r"HTTP(?:/[\d.]+)? 429|429 Too Many Requests|HTTP Error 429|returned error: 429"),
        "rate limited (429)",
    ),
    (re.compile(r"(?:HTTP Error|returned error:|HTTP/[\d.]+) 50[234]"), "the remote service is down (5xx)"),
    (re.compile(r"Network is unreachable|ENETUNREACH"), "the network is unreachable"),
)


def look(case: Case) -> Verdict | None:
    """Unmistakable signs of a fault elsewhere that passes."""
    said = f"{case.stderr_tail}\n{case.stdout_tail}"
    for pattern, cause in _SIGNS:
        if pattern.search(said):
            named = case.cause if case.category == "network" and case.cause else cause
            return Verdict(
                kind="wait",
                rule=NAME,
                cause=named,
                explanation=f"Nothing in the project is broken: {cause}. The schedule goes on as it is.",
            )
    return None
