"""Session tokens: nobody but this boot can make one."""

import base64

import pytest

from agent.tokens import SessionClaim, SessionTokens


@pytest.mark.mission("O6")
def test_a_minted_token_says_who_it_is_for() -> None:
    tokens = SessionTokens()

    claim = tokens.verify(tokens.mint(7, "heal:12", 60))

    assert claim is not None
    assert (claim.session_id, claim.scope) == (7, "heal:12")


@pytest.mark.mission("O6")
def test_a_token_is_url_safe_and_recognisable() -> None:
    token = SessionTokens().mint(7, "heal:12.ü/?&", 60)

    assert token.startswith("cms_")
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


@pytest.mark.mission("O6", "O9")
def test_a_token_of_an_earlier_boot_is_worth_nothing() -> None:
    token = SessionTokens().mint(7, "heal:12", 60)

    assert SessionTokens().verify(token) is None


@pytest.mark.mission("O6")
def test_the_same_secret_verifies_across_objects() -> None:
    token = SessionTokens(b"s" * 32).mint(7, "heal:12", 60)

    assert isinstance(SessionTokens(b"s" * 32).verify(token), SessionClaim)


@pytest.mark.mission("O6")
def test_an_expired_token_is_refused() -> None:
    tokens = SessionTokens()

    assert tokens.verify(tokens.mint(7, "heal:12", 0)) is None


@pytest.mark.mission("O6")
def test_no_single_changed_character_verifies() -> None:
    tokens = SessionTokens()
    token = tokens.mint(7, "heal:12", 60)

    forged = [token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :] for place in range(len(token))]

    assert [other for other in forged if tokens.verify(other) is not None] == []


@pytest.mark.mission("O6")
def test_the_payload_of_another_session_does_not_fit_the_signature() -> None:
    tokens = SessionTokens()
    signature = tokens.mint(7, "heal:12", 60).partition(".")[2]
    payload = base64.urlsafe_b64encode(b"8.99999999999.heal:12").rstrip(b"=").decode()

    assert tokens.verify(f"cms_{payload}.{signature}") is None


@pytest.mark.mission("O6")
@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "cms_",
        "cms_.",
        "cms_a",
        "cms_a.b.c",
        "Bearer x",
        "cms_é.é",
        "cms_\0.\0",
        "cms_" + "A" * 1_000_000,
        "cms_====.====",
    ],
)
def test_garbage_is_refused_quietly(garbage: str) -> None:
    assert SessionTokens().verify(garbage) is None


@pytest.mark.mission("O6")
def test_a_token_with_padding_or_line_ends_added_is_refused() -> None:
    tokens = SessionTokens()
    token = tokens.mint(7, "heal:12", 60)

    assert [tokens.verify(token + more) for more in ("=", "\n", " ", ".", "==")] == [None] * 5


@pytest.mark.mission("O6")
def test_a_scope_too_long_to_verify_is_refused_when_it_is_minted() -> None:
    with pytest.raises(ValueError, match="scope"):
        SessionTokens().mint(7, "x" * 1_000, 60)
