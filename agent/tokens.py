"""Session tokens: what a session may show to the CLI server, signed with a secret that is new on every boot."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from store.clock import now

PREFIX = "cms_"
MOST_CHARS = 512


@dataclass(frozen=True)
class SessionClaim:
    """What a valid token says: `expires` in epoch seconds."""

    session_id: int
    scope: str
    expires: int


class SessionTokens:
    """Mints and verifies.  A token of an earlier boot is worth nothing."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def mint(self, session_id: int, scope: str, ttl_secs: int) -> str:
        """A url-safe token for the session.  Raises ValueError for a scope that makes it too long to be verified."""
        payload = f"{session_id}.{int(now().timestamp()) + ttl_secs}.{scope}".encode()
        token = PREFIX + _encode(payload) + "." + _encode(self._sign(payload))
        if len(token) > MOST_CHARS:
            raise ValueError("the scope is too long")
        return token

    def verify(self, token: str) -> SessionClaim | None:
        """What the token says; None for one that is forged, expired, of another boot, or no token at all."""
        if not token.startswith(PREFIX) or len(token) > MOST_CHARS or not token.isascii():
            return None
        payload_text, dot, signature_text = token.removeprefix(PREFIX).partition(".")
        try:
            payload, signature = _decode(payload_text), _decode(signature_text)
        except ValueError:
            return None
        if not dot or not hmac.compare_digest(signature, self._sign(payload)):
            return None
        session_id, expires, scope = payload.decode().split(".", 2)
        claim = SessionClaim(int(session_id), scope, int(expires))
        return claim if now().timestamp() < claim.expires else None

    def _sign(self, payload: bytes) -> bytes:
        return hmac.new(self._secret, payload, hashlib.sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _encode(data) != text:  # one token has one spelling
        raise ValueError("not canonical")
    return data
