"""API keys: what they look like, what they allow, and which of them a call needs.

A key is `ew_<id>_<secret>`. The id finds it; of the secret, 256 random bits, only a SHA-256 is kept: nobody can
try out so many, so a slow hash would only slow down every call.
"""

import enum
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.errors import KeyUnknown, RequestRefused

FORM = re.compile(r"ew_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
# Whether the server lives and what it can do: nothing that is anybody's.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"})
# Web pages: the same for everybody. What they show they fetch from /v1, with the key of whoever looks.
PAGES = frozenset({"/", "/models"})
PAGE_FOLDERS = ("/jobs/", "/models/", "/assets/")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
MODELS = ("/v1/models/", "/v2/models/")
PREDICTING = ("/predict", "/infer")


class Scope(enum.StrEnum):
    """What a key allows."""

    READ = "read"
    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    @property
    def sentence(self) -> str:
        """What the scope means, for people."""
        return SENTENCES[self]


SENTENCES = {
    Scope.READ: "Read jobs, models, figures and metrics.",
    Scope.PREDICT: "Predict with models.",
    Scope.TRAIN: "Submit, steer and delete jobs, and upload data.",
    Scope.ADMIN: "Everything, deleting models included.",
}


@dataclass(frozen=True)
class ApiKey:
    """A key as stored."""

    id: str
    name: str
    secret_sha256: str
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None

    def allows(self, needed: Scope) -> bool:
        """Whether a call that needs this scope may be made."""
        return needed in self.scopes or Scope.ADMIN in self.scopes

    def fits(self, secret: str) -> bool:
        """Whether it is in force and this is its secret."""
        return self.revoked_at is None and hmac.compare_digest(self.secret_sha256, digest(secret))


class KeyStore(Protocol):
    """Keeps keys."""

    def add_key(self, key: ApiKey) -> bool:
        """Keep a key; False if its id is there already, revoked or not."""

    def find_key_by_id(self, key_id: str) -> ApiKey | None:
        """A key, revoked or not."""

    def list_keys(self) -> list[ApiKey]:
        """All keys, oldest first."""

    def revoke_key(self, key_id: str) -> ApiKey:
        """Put a key out of force for ever. Raises KeyNotFound."""

    def has_keys(self) -> bool:
        """Whether any key is in force."""


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_text() -> str:
    """A new key's text, which its owner sees once."""
    return f"ew_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"


def parse_text(text: str) -> tuple[str, str]:
    """Id and secret of a key's text. Raises KeyUnknown."""
    found = FORM.fullmatch(text)
    if found is None:
        raise KeyUnknown("the key does not look like one of this service (ew_..._...)")
    return found[1], found[2]


def key_of(text: str, name: str, scopes: Iterable[Scope], now: datetime) -> ApiKey:
    """A key's text as it is stored. Raises KeyUnknown."""
    key_id, secret = parse_text(text)
    return ApiKey(key_id, name, digest(secret), frozenset(scopes), now)


def parse_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Scopes by name. Raises RequestRefused naming the wrong one."""
    found = set()
    for name in names:
        try:
            found.add(Scope(name))
        except ValueError:
            known = ", ".join(Scope)
            raise RequestRefused([(("scope",), f"{name!r:.50} is no scope; known: {known}")]) from None
    if not found:
        raise RequestRefused([(("scope",), f"a key needs at least one scope of {', '.join(Scope)}")])
    return frozenset(found)


def scope_needed(method: str, path: str) -> Scope | None:
    """The scope that a call needs, None for what everybody may see. Whatever is not known needs much."""
    if method in READING and (path in OPEN_PATHS | PAGES or path.startswith(PAGE_FOLDERS)):
        return None
    if method in READING:
        return Scope.READ
    if method == "POST" and path.startswith(MODELS) and path.endswith(PREDICTING):
        return Scope.PREDICT
    if path.startswith(MODELS):
        return Scope.ADMIN
    return Scope.TRAIN
