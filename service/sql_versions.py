"""Names and versions of registered models over SQL."""

from datetime import datetime

from sqlalchemy import Connection, Engine, RowMapping, bindparam, func, insert, select, update

from service.errors import ModelNotFound
from service.sql_engine import insert_ignoring
from service.sql_session import Sessions, storable
from service.store import NewVersion, Version
from service.tables import ModelRecord, VersionRecord

VERSIONS = VersionRecord.__table__
# Made once: every prediction looks up its model's version, and making a statement takes longer than running it.
NUMBERED = select(VERSIONS).where(VERSIONS.c.name == bindparam("name"), VERSIONS.c.version == bindparam("number"))
NEWEST = select(VERSIONS).where(VERSIONS.c.name == bindparam("name")).order_by(VERSIONS.c.version.desc()).limit(1)


class SqlVersions:
    """Implements store.VersionStore."""

    def __init__(self, engine: Engine) -> None:
        self._sessions = Sessions(engine)

    def list_models(self) -> list[Version]:
        newest = select(VERSIONS.c.name, func.max(VERSIONS.c.version).label("version")).group_by(VERSIONS.c.name)
        found = newest.subquery()
        same = (VERSIONS.c.name == found.c.name) & (VERSIONS.c.version == found.c.version)
        query = select(VERSIONS).join(found, same).order_by(VERSIONS.c.name)
        with self._sessions.reading() as connection:
            return [_version(row) for row in connection.execute(query).mappings()]

    def versions(self, name: str) -> list[Version]:
        query = select(VERSIONS).where(VERSIONS.c.name == name).order_by(VERSIONS.c.version.desc())
        with self._sessions.reading() as connection:
            found = [_version(row) for row in connection.execute(query).mappings()] if storable(name) else []
        if not found:
            raise ModelNotFound(f"there is no model {name!r:.120}")
        return found

    def version(self, name: str, number: int | None) -> Version:
        query, which_one = (NEWEST, {}) if number is None else (NUMBERED, {"number": number})
        with self._sessions.reading() as connection:
            found = connection.execute(query, {"name": name, **which_one}) if storable(name) else None
            row = None if found is None else found.mappings().first()
        if row is None:
            which = "" if number is None else f" with a version {number}"
            raise ModelNotFound(f"there is no model {name!r:.120}{which}")
        return _version(row)


def register(connection: Connection, new: NewVersion, job_id: str, now: datetime) -> int:
    """Add a version under the model's next number, within the caller's transaction; returns the number."""
    model = {"name": new.name, "next_version": 1, "created_at": now}
    connection.execute(insert_ignoring(connection.dialect, ModelRecord).values(**model))
    # One statement counts up and locks the name: two jobs that end at once get two numbers.
    count = update(ModelRecord).where(ModelRecord.name == new.name)
    count = count.values(next_version=ModelRecord.next_version + 1)
    number = int(connection.execute(count.returning(ModelRecord.next_version)).scalar_one()) - 1
    row = {"name": new.name, "version": number, "sha256": new.sha256, "artifact": new.artifact}
    row |= {"job_id": job_id, "created_at": now, "description": new.description}
    connection.execute(insert(VersionRecord).values(row))
    return number


def _version(row: RowMapping) -> Version:
    values = dict(row)
    description = values.pop("metadata")
    return Version(**values, description=description)
