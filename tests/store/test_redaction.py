"""Secrets leave every text, and no text can make that slow."""

import pytest

from store.redaction import MARK, redact

pytestmark = pytest.mark.mission("B9")

SECRETS = {
    "model key": ("key sk-ant-api03-abcdefghijklmnopqrstuvwx end", "sk-ant-api03"),
    "named variable": ("MY_OWN_LONG_NAME_OF_A_DB_PASSWORD=hunter22 end", "hunter22"),
    "in JSON": ('{"api_key": "abcd1234"} end', "abcd1234"),
    "bearer": ("Authorization: Bearer abcdefgh12345 end", "abcdefgh12345"),
    "in an address": ("postgres://me:secretpw@host/db end", "secretpw"),
    "web token": ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK end", "SflKxwRJSMeK"),
    "private key": ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- end", "abc"),
    "cut private key": ("-----BEGIN PRIVATE KEY-----\nabc", "abc"),
    "cloud key": ("AKIAABCDEFGHIJKLMNOP end", "AKIAABCDEFGHIJKLMNOP"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_of_a_known_shape_is_taken_out(kind: str) -> None:
    text, secret = SECRETS[kind]

    cleaned = redact(text)

    assert secret not in cleaned
    assert MARK in cleaned
    assert cleaned.endswith("end") or kind == "cut private key"


def test_exact_values_are_taken_out_wherever_they_stand() -> None:
    assert redact("a=correct-horse!b", ["correct-horse"]) == f"a={MARK}!b"


def test_ordinary_text_stays() -> None:
    lines = (
        "token count: 3",
        "http://127.0.0.1:80/x?a=1 password",
        "bash: line 1: DB_PASSWORD: unbound variable",
        "sh: my-secret: command not found",
    )
    text = "\n".join(lines)

    assert redact(text) == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["a-", "x", "a_b-", "x://", "password=", "eyJ", "-----BEGIN PRIVATE KEY-----", "u:p@"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    assert len(redact(piece * 200_000)) > 0
