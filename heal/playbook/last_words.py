"""What a program said at its end: a sign further up may be of a trouble that it got over."""

import re

from heal.playbook.case import Case

MOST_LINES = 15

# The line that names the exception: "requests.exceptions.ConnectionError: ..."
_RAISED = re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Refused|Timeout|Warning|Interrupt)\b(?::|$)")


def last_words(case: Case) -> str:
    """The end of stderr, of stdout where stderr is silent; from the last raised exception on if there is one."""
    text = case.stderr_tail if case.stderr_tail.strip() else case.stdout_tail
    lines = [line for line in text.translate(str.maketrans("‘’`", "'''")).splitlines() if line.strip()]
    raised = [number for number, line in enumerate(lines) if _RAISED.match(line)]
    start = max(0, len(lines) - MOST_LINES)
    return "\n".join(lines[max(start, raised[-1]) if raised else start :])
