"""API keys over SQL."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, RowMapping, func, select, update

from service.errors import KeyNotFound
from service.keys import ApiKey, Scope
from service.sql_engine import insert_ignoring
from service.sql_session import Sessions, storable
from service.tables import KeyRecord

KEYS = KeyRecord.__table__


class SqlKeys:
    """Implements keys.KeyStore."""

    def __init__(self, engine: Engine) -> None:
        self._sessions = Sessions(engine)

    def add_key(self, key: ApiKey) -> bool:
        row: dict[str, Any] = {
            "id": key.id,
            "name": key.name,
            "secret_sha256": key.secret_sha256,
            "scopes": sorted(key.scopes),
        }
        row |= {"created_at": key.created_at, "revoked_at": key.revoked_at}
        with self._sessions.writing() as connection:
            added = connection.execute(insert_ignoring(connection.dialect, KeyRecord).values(**row)).rowcount
        return bool(added)

    def find_key_by_id(self, key_id: str) -> ApiKey | None:
        with self._sessions.reading() as connection:
            row = connection.execute(select(KEYS).where(KEYS.c.id == key_id)).mappings().first()
        return None if row is None else _key(row)

    def list_keys(self) -> list[ApiKey]:
        with self._sessions.reading() as connection:
            rows = connection.execute(select(KEYS).order_by(KEYS.c.created_at, KEYS.c.id)).mappings().all()
        return [_key(row) for row in rows]

    def revoke_key(self, key_id: str) -> ApiKey:
        in_force = (KEYS.c.id == key_id) & KEYS.c.revoked_at.is_(None)
        if storable(key_id):
            with self._sessions.writing() as connection:
                connection.execute(update(KeyRecord).where(in_force).values(revoked_at=datetime.now(UTC)))
            if found := self.find_key_by_id(key_id):
                return found
        raise KeyNotFound(f"there is no key {key_id!r:.50}; `edgewise keys list` shows them")

    def has_keys(self) -> bool:
        query = select(func.count()).select_from(KEYS).where(KEYS.c.revoked_at.is_(None))
        with self._sessions.reading() as connection:
            return bool(connection.execute(query).scalar())


def _key(row: RowMapping) -> ApiKey:
    scopes = frozenset(Scope(name) for name in row["scopes"])
    return ApiKey(**{**row, "scopes": scopes})
