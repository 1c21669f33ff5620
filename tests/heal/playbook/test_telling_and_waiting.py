"""What only time or a person cures, and what merely looks like it."""

from pathlib import Path

import pytest
from support.breaking import picture, verdict_on
from support.writing import write

pytestmark = pytest.mark.mission("B4")


def say(project: Path, text: str, code: int = 1) -> str:
    write(project, "says.txt", f"{text}\n", mode=0o644)
    return f"cat says.txt >&2; exit {code}"


@pytest.mark.parametrize(
    ("text", "kind", "cause", "step"),
    [
        ("curl: (22) The requested URL returned error: 429", "wait", "429", None),
        ("urllib.error.HTTPError: HTTP Error 429: Too Many Requests", "wait", "429", None),
        (
            "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://h.example/x",
            "wait",
            "503",
            None,
        ),
        ("HTTP/1.1 403 Forbidden\nAPI rate limit exceeded for user (403)", "wait", "", None),
        ("ssh: Could not resolve hostname h.example: Temporary failure in name resolution", "wait", "h.example", None),
        ("Error: getaddrinfo EAI_AGAIN h.example", "wait", "h.example", None),
        ("OSError: [Errno 101] Network is unreachable", "wait", "network", None),
        ("ssh: connect to host h.example port 22: Connection refused", "wait", "h.example", None),
        ("curl: (28) Failed to connect to h.example port 443 after 3 ms: Timeout was reached", "wait", "h.ex", None),
        (
            'psql: error: connection to server at "db.example" (10.0.0.9), port 5432 failed: Connection refused',
            "wait",
            "db.example",
            None,
        ),
        ("git@h.example: Permission denied (publickey).", "tell", "SSH key", "public key"),
        ("No ED25519 host key is known for h.\nHost key verification failed.", "tell", "not known", "ssh to it once"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "tell",
            "has changed",
            "host's owner",
        ),
        ("cp: error writing 'x': No space left on device", "tell", "disk is full", "df -h"),
        ("OSError: [Errno 122] Disk quota exceeded: 'x'", "tell", "disk is full", "df -h"),
        ("curl: (60) SSL certificate problem: certificate has expired", "tell", "certificate", "renewed"),
        ("google.auth.exceptions.RefreshError: ('invalid_grant: Bad Request', {})", "tell", "login", "log in"),
        ("fatal: could not read Username for 'https://h.example': terminal prompts disabled", "tell", "login", "SSH"),
        ("sudo: a terminal is required to read the password", "tell", "sudo", "sudoers"),
        (
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://h.example/x",
            "tell",
            "401",
            "token",
        ),
        ("wget: server returned error: HTTP/1.1 403 Forbidden", "tell", "403", "rights"),
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
            "tell",
            "Docker",
            "start",
        ),
        (
            'psql: error: connection to server at "localhost" (::1), port 5432 failed: Connection refused',
            "tell",
            "PostgreSQL at localhost:5432",
            "start PostgreSQL",
        ),
    ],
)
def test_what_cannot_be_repaired_here_is_named(
    project: Path, text: str, kind: str, cause: str, step: str | None
) -> None:
    verdict = verdict_on(project, say(project, text))

    assert verdict
    assert (verdict.kind, verdict.repair) == (kind, None)
    assert cause in verdict.cause
    assert (verdict.step is None) == (step is None)
    assert (step or "") in (verdict.step or "")


def test_how_long_a_service_asks_to_wait_is_said(project: Path) -> None:
    verdict = verdict_on(project, say(project, "HTTP/1.1 429 Too Many Requests\nRetry-After: 120"))

    assert verdict
    assert "retry after 120 seconds" in verdict.explanation


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 -c \"import os; os.environ['BACKUP_TOKEN']\"", "BACKUP_TOKEN"),
        ("python3 job.py", "MAIL_PASSWORD"),
        ("bash -uc 'echo $DB_PASSWORD'", "DB_PASSWORD"),
        ("sh -uc 'echo $API_KEY'", "API_KEY"),
        ("bash -c 'echo ${AWS_SECRET_KEY:?}'", "AWS_SECRET_KEY"),
    ],
)
def test_a_secret_that_is_not_set_is_named(project: Path, command: str, name: str) -> None:
    write(project, "job.py", "import os\n\ndef main():\n    return os.environ['MAIL_PASSWORD']\n\nmain()\n")

    verdict = verdict_on(project, command)

    assert verdict
    assert (verdict.kind, verdict.cause) == ("tell", f"the variable {name} is not set")
    assert verdict.step == f"set {name} in the job's environment, then resume the job"


GOT_OVER_IT = """HTTP Error 429: Too Many Requests, trying again
Traceback (most recent call last):
  File "/x/j.py", line 3, in <module>
    total = rows["sum"]
KeyError: 'sum'"""


@pytest.mark.parametrize(
    "text",
    [
        GOT_OVER_IT,
        "cp: error writing 'x': No space left on device\n" + "cleaned up\n" * 40 + "report.py: 3 rows differ",
        "Error: ENOSPC: System limit for number of file watchers reached, watch '/x'",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "curl: (7) Failed to connect to 127.0.0.1 port 8081 after 0 ms: Couldn't connect to server",
        "curl: (6) Could not resolve host: h.exmaple",
        "processed 429 rows, 401 of them new, 503 skipped; 1 failed",
        "the certificate of customer 403 is missing",
    ],
    ids=["got over it", "long ago", "file watchers", "no host", "own service", "mistyped host", "numbers", "words"],
)
def test_what_is_not_certain_is_left_to_others(project: Path, text: str) -> None:
    command = say(project, text)
    before = picture(project)

    assert verdict_on(project, command) is None

    assert picture(project) == before


def test_a_key_of_any_dict_is_no_variable(project: Path) -> None:
    write(project, "job.py", "reply = {}\nprint(reply['API_TOKEN'])\n")

    assert verdict_on(project, "python3 job.py") is None
