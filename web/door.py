"""The door of the pages: one-use keys that become a session cookie, and the tokens that guard every change."""

import hashlib
import hmac
import secrets
import threading
import time

KEY_SECS = 60.0
MOST_SESSIONS = 64


class Door:
    """Keys live in memory alone, are good for one use within a minute, and end with the app."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._keys: dict[str, float] = {}
        self._sessions: list[str] = []
        self._lock = threading.Lock()

    def mint(self) -> str:
        """A key for one login."""
        key = secrets.token_urlsafe(24)
        with self._lock:
            self._keys = {known: until for known, until in self._keys.items() if until > time.monotonic()}
            self._keys[key] = time.monotonic() + KEY_SECS
        return key

    def redeem(self, key: str) -> str | None:
        """The session that the key opens, None for one that is used up, too old or made up."""
        with self._lock:
            until = self._keys.pop(key, 0.0)
            if until < time.monotonic():
                return None
            session = secrets.token_urlsafe(32)
            self._sessions = [*self._sessions[-MOST_SESSIONS + 1 :], session]
            return session

    def knows(self, session: str) -> bool:
        """Whether the cookie is that of a login of this start of the app."""
        with self._lock:
            return any(hmac.compare_digest(session.encode(), known.encode()) for known in self._sessions)

    def guard_of(self, session: str) -> str:
        """The token that every change made from a page of this session must carry."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()
