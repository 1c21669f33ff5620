"""The person's access to the model: read once at the start, from the system's keychain first, then the environment."""

import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

import keyring
from keyring.errors import KeyringError

from store.errors import Refusal

log = logging.getLogger("engine")

SERVICE = "cronmend"
ENTRY = "anthropic-api-key"
KEYCHAIN_SECS = 3.0
TEST_SECS = 15.0


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


class Access:
    """The credentials in force.  A key stored later serves new sessions; every key ever used stays secret."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self.present = read_credentials(environment)
        self._secrets = set(self.present.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(self._secrets)

    def store(self, key: str) -> None:
        """Puts the key into the system's keychain and uses it from now on.  Raises Refusal where there is none."""
        self._secrets.update({key} if key else set())
        store_key(key)
        self.present = read_credentials(self._environment)
        self._secrets.update(self.present.secrets)

    def test(self) -> str:
        """Asks the model's address whether it accepts the key; one sentence."""
        return test_credentials(self.present)


def test_credentials(credentials: Credentials) -> str:
    """One sentence: whether the key works, and if not why."""
    if not credentials.are_there:
        return "There is no key yet."
    base = (credentials.base_url or "https://api.anthropic.com").rstrip("/")
    headers = {"anthropic-version": "2023-06-01"}
    if credentials.api_key:
        headers["x-api-key"] = credentials.api_key
    else:
        headers["Authorization"] = f"Bearer {credentials.auth_token}"
    if not base.startswith(("http://", "https://")):
        return "ANTHROPIC_BASE_URL is not a web address."
    try:
        with urllib.request.urlopen(  # noqa: S310 - http and https only, see above
            urllib.request.Request(f"{base}/v1/models?limit=1", headers=headers),  # noqa: S310
            timeout=TEST_SECS,
        ):
            return "The key works."
    except urllib.error.HTTPError as error:
        refused = error.code in (401, 403)
        return "The key was refused; check it." if refused else f"The model's address answered {error.code}."
    except OSError as error:
        return f"The model's address cannot be reached ({error})."


def store_key(key: str) -> None:
    """Puts the key into the system's keychain, or takes it out when empty.  Raises Refusal where there is none."""
    try:
        if key:
            keyring.set_password(SERVICE, ENTRY, key)
        else:
            keyring.delete_password(SERVICE, ENTRY)
    except (KeyringError, OSError, RuntimeError) as error:
        raise Refusal(
            "This system has no keychain that can be used. Set ANTHROPIC_API_KEY before the start instead.",
            code="no_keychain",
        ) from error


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
