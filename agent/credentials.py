"""The person's access to the model: read once at the start, from the system's keychain first, then the environment."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import keyring
from keyring.errors import KeyringError

log = logging.getLogger("engine")

SERVICE = "cronmend"
ENTRY = "anthropic-api-key"
KEYCHAIN_SECS = 3.0


@dataclass(frozen=True)
class Credentials:
    """At most one of key and token is used.  `origin` says where it came from, for the settings page."""

    api_key: str | None = None
    auth_token: str | None = None
    base_url: str | None = None
    origin: str = "none"

    def __repr__(self) -> str:
        return f"Credentials(origin={self.origin!r})"

    @property
    def are_there(self) -> bool:
        return bool(self.api_key or self.auth_token)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(value for value in (self.api_key, self.auth_token) if value)


def read_credentials(environment: Mapping[str, str]) -> Credentials:
    """Keychain, then ANTHROPIC_API_KEY, then ANTHROPIC_AUTH_TOKEN."""
    base_url = environment.get("ANTHROPIC_BASE_URL") or None
    if key := _from_keychain():
        return Credentials(api_key=key, base_url=base_url, origin="keychain")
    if key := environment.get("ANTHROPIC_API_KEY"):
        return Credentials(api_key=key, base_url=base_url, origin="environment")
    if token := environment.get("ANTHROPIC_AUTH_TOKEN"):
        return Credentials(auth_token=token, base_url=base_url, origin="environment")
    return Credentials(base_url=base_url)


def _from_keychain() -> str | None:
    found: list[str | None] = []

    def ask() -> None:
        try:
            found.append(keyring.get_password(SERVICE, ENTRY))
        except (KeyringError, OSError, RuntimeError) as error:
            log.info("[engine] no keychain: %s", type(error).__name__)

    # A locked keychain may open a dialog that nobody sees; the app starts without it.
    thread = threading.Thread(target=ask, name="keychain", daemon=True)
    thread.start()
    thread.join(KEYCHAIN_SECS)
    return found[0] if found else None
