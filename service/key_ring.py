"""Says whose key a call has and whether it allows the call."""

import threading
import time
from datetime import UTC, datetime

from service.errors import KeyUnknown, ScopeMissing, StartRefused
from service.keys import ApiKey, KeyStore, Scope, digest, key_of, parse_text
from service.settings import Settings, read_secret

# A revoked key works this long at most; a prediction asks the database only once in that time.
TRUST_SECONDS = 5.0
ADMIN_NAME = "admin, from admin_key_file"


class KeyRing:
    """Checks keys against the store. Safe to use from several threads."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._trusted: dict[str, tuple[float, ApiKey]] = {}
        self._lock = threading.Lock()

    def prepare(self, settings: Settings) -> None:
        """Make the admin key valid that a file names. Raises StartRefused where keys are needed and none is there."""
        if settings.admin_key_file is not None:
            text = read_secret(settings.admin_key_file, "admin_key_file")
            try:
                key = key_of(text, ADMIN_NAME, [Scope.ADMIN], datetime.now(UTC))
            except KeyUnknown as error:
                raise StartRefused(f"admin_key_file: {error}; `edgewise init` makes one") from None
            self._store.add_key(key)
        if settings.keys_required and not self._store.has_keys():
            raise StartRefused(
                f"host {settings.host!r} can be reached by others, so calls need API keys, and there is none yet; "
                "make one (`edgewise keys create NAME --scope admin`) or listen on 127.0.0.1"
            )

    def check(self, text: str, needed: Scope) -> ApiKey:
        """The key of a call. Raises KeyUnknown if it is not in force, ScopeMissing if it does not allow the call."""
        key = self._find(text)
        if not key.allows(needed):
            scopes = ", ".join(sorted(key.scopes))
            raise ScopeMissing(f"key {key.id} ({key.name}) has scope {scopes}; this call needs {needed}")
        return key

    def _find(self, text: str) -> ApiKey:
        key_id, secret = parse_text(text)
        name = digest(text)
        now = time.monotonic()
        with self._lock:
            until, known = self._trusted.get(name, (0.0, None))
        if known is not None and now < until:
            return known
        key = self._store.find_key_by_id(key_id)
        if key is None or not key.fits(secret):
            with self._lock:
                self._trusted.pop(name, None)
            raise KeyUnknown("the API key is not known or was revoked")
        with self._lock:
            self._trusted[name] = (now + TRUST_SECONDS, key)
        return key
