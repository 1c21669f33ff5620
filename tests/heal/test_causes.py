"""Failure texts of tools that are not at hand in a test, as those tools print them."""

import time

import pytest

from heal.causes import SIGNS, Sign
from heal.evidence import Failure, examine

pytestmark = pytest.mark.mission("O2")

SAID = {
    "requests refused": (
        (
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.9', port=8080): Max retries exceeded "
            "with url: /x (Caused by NewConnectionError('<urllib3...>: [Errno 111] Connection refused'))"
        ),
        "network",
        "connection refused: 10.0.0.9:8080",
    ),
    "redis": (
        "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
        "network",
        "connection refused: localhost:6379 (a service on this machine)",
    ),
    "go": (
        'Get "http://10.1.1.1/": dial tcp 10.1.1.1:80: connect: connection refused',
        "network",
        "connection refused: 10.1.1.1:80",
    ),
    "node": (
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "network",
        "connection refused: 127.0.0.1:5432 (a service on this machine)",
    ),
    "docker": (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "network",
        "Docker is not running: unix:///var/run/docker.sock",
    ),
    "docker rights": (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get x",
        "permission",
        "not allowed to use Docker: unix:///var/run/docker.sock",
    ),
    "curl time": (
        "curl: (28) Failed to connect to h.example port 443 after 3001 ms: Timeout was reached",
        "network",
        "connection timed out: h.example:443",
    ),
    "node name": ("Error: getaddrinfo EAI_AGAIN api.example.com", "network", "host name not found: api.example.com"),
    "wget name": (
        "wget: unable to resolve host address \u2018h.example\u2019",
        "network",
        "host name not found: h.example",
    ),
    "unauthorized": (
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://api.example.com/v1/x?key=1",
        "network",
        "unauthorized (401) https://api.example.com/v1/x",
    ),
    "rate": ("urllib.error.HTTPError: HTTP Error 429: Too Many Requests", "network", "rate limited (429)"),
    "server": ("curl: (22) The requested URL returned error: 503", "network", "server error (503)"),
    "certificate": (
        (
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has "
            "expired (_ssl.c:1006)"
        ),
        "network",
        "TLS certificate not accepted: certificate has expired",
    ),
    "host key": (
        (
            "No ED25519 host key is known for h.example and you have requested strict checking.\n"
            "Host key verification failed."
        ),
        "network",
        "SSH host key not known: h.example",
    ),
    "grant": ("google.auth.exceptions.RefreshError: ('invalid_grant: Bad Request', {})", "network", "invalid_grant"),
    "publickey": ("git@h.example: Permission denied (publickey).", "permission", "login refused by git@h.example"),
    "no terminal": (
        "fatal: could not read Username for 'https://h.example': terminal prompts disabled",
        "permission",
        "no login is stored for https://h.example",
    ),
    "sudo": ("sudo: a terminal is required to read the password", "permission", "sudo asks for a password"),
    "password": (
        'psql: error: FATAL:  password authentication failed for user "ledger"',
        "permission",
        "password not accepted for user ledger",
    ),
    "old bash CRLF": (
        "bash: ./x.sh: /bin/sh^M: bad interpreter: No such file or directory",
        "script-error",
        "bad interpreter (CRLF line endings): ./x.sh",
    ),
    "library": (
        "x: error while loading shared libraries: libpq.so.5: cannot open shared object file: No such file",
        "missing-file",
        "missing library: libpq.so.5",
    ),
    "spawn": ("Error: spawn ffmpeg9 ENOENT", "missing-file", "command not found: ffmpeg9"),
    "git lock": (
        "fatal: Unable to create '/r/.git/index.lock': File exists.",
        "script-error",
        "git lock left behind: /r/.git/index.lock",
    ),
    "apt lock": ("E: Could not get lock /var/lib/dpkg/lock-frontend.", "script-error", "/var/lib/dpkg/lock-frontend"),
    "database lock": ("sqlite3.OperationalError: database is locked", "script-error", "database is locked"),
    "memory": ("FATAL ERROR: Reached heap limit JavaScript heap out of memory", "unknown", "out of memory"),
    "disk": ("cp: error writing '/mnt/b/x.iso': No space left on device", "unknown", "/mnt/b/x.iso"),
    "java": (
        'Exception in thread "main" java.lang.IllegalStateException: no rows',
        "script-error",
        "java.lang.IllegalStateException: no rows",
    ),
    "merge": (
        "error: Your local changes to the following files would be overwritten by merge:\n\ta.txt",
        "recipe-step-failed",
        "local changes are in the way of the merge",
    ),
    "conflict": ("CONFLICT (content): Merge conflict in src/a.py", "recipe-step-failed", "merge conflict: src/a.py"),
    "npm ci": (
        "npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.",
        "recipe-step-failed",
        "package-lock.json",
    ),
    "rsync": (
        "rsync warning: some files vanished before they could be transferred (code 24) at main.c(1338)",
        "recipe-step-failed",
        "(code 24)",
    ),
    "tar": ("tar: logs/app.log: file changed as we read it", "recipe-step-failed", "logs/app.log"),
    "step": ("step 3 (upload) failed: exit code 2", "recipe-step-failed", "step 3 (upload) failed"),
    "openssl": ("  code: 'ERR_OSSL_EVP_UNSUPPORTED'", "script-error", "ERR_OSSL_EVP_UNSUPPORTED"),
}


def failed(stderr: str) -> Failure:
    return Failure(
        command="job",
        schedule="daily",
        exit_code=1,
        signal=None,
        spawn_error=None,
        stopped=None,
        timeout_secs=60,
        stdout=b"",
        stderr=f"starting\n{stderr}\n".encode() + b"bye\n" * 60,
        cwd="/nowhere",
        project=None,
        path="/usr/bin",
    )


@pytest.mark.parametrize("name", SAID)
def test_a_text_is_understood(name: str) -> None:
    said, category, named = SAID[name]

    evidence = examine(failed(said))

    assert (evidence.category, named in evidence.cause) == (category, True), evidence.cause
    assert evidence.hits


@pytest.mark.parametrize(
    "said", ["done: 0 errors", "checked 404 pages in 50 s", "no such luck", "permission granted", "step 3 done"]
)
def test_harmless_words_are_no_sign(said: str) -> None:
    evidence = examine(failed(said))

    assert (evidence.hits, evidence.cause) == ((), "exit code 1: bye")


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: f"{sign.hit} {sign.needle}")
def test_a_pattern_reads_a_hostile_line_in_linear_time(sign: Sign) -> None:
    for piece in (sign.needle, f"{sign.needle}: ", f"a {sign.needle}' ", f"host='a', port=1 {sign.needle}", "a: ", "a"):
        assert _seconds(sign, piece, 16_000) < 30 * _seconds(sign, piece, 2_000) + 0.02, piece


def _seconds(sign: Sign, piece: str, length: int) -> float:
    line = (piece * length)[:length]
    began = time.process_time()
    sign.pattern.search(line)
    return time.process_time() - began
