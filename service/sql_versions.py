"""Names and versions of registered models over SQL."""

from contextlib import AbstractContextManager
from datetime import datetime

from sqlalchemy import Connection, Engine, RowMapping, func, insert, select, update

from service.errors import ModelNotFound
from service.sql_engine import READ_ONLY
from service.store import NewVersion, Version
from service.tables import ModelRecord, VersionRecord

VERSIONS = VersionRecord.__table__


class SqlVersions:
    """Implements store.VersionStore."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read_engine = engine.execution_options(**READ_ONLY)

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._read_engine.begin()

    def list_models(self) -> list[Version]:
        newest = select(VERSIONS.c.name, func.max(VERSIONS.c.version).label("version")).group_by(VERSIONS.c.name)
        found = newest.subquery()
        same = (VERSIONS.c.name == found.c.name) & (VERSIONS.c.version == found.c.version)
        query = select(VERSIONS).join(found, same).order_by(VERSIONS.c.name)
        with self._reading() as connection:
            return [_version(row) for row in connection.execute(query).mappings()]

    def versions(self, name: str) -> list[Version]:
        query = select(VERSIONS).where(VERSIONS.c.name == name).order_by(VERSIONS.c.version.desc())
        with self._reading() as connection:
            found = [_version(row) for row in connection.execute(query).mappings()]
        if not found:
            raise ModelNotFound(f"there is no model {name!r:.120}")
        return found

    def version(self, name: str, number: int | None) -> Version:
        query = select(VERSIONS).where(VERSIONS.c.name == name).order_by(VERSIONS.c.version.desc()).limit(1)
        if number is not None:
            query = query.where(VERSIONS.c.version == number)
        with self._reading() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            which = "" if number is None else f" with a version {number}"
            raise ModelNotFound(f"there is no model {name!r:.120}{which}")
        return _version(row)


def register(connection: Connection, new: NewVersion, job_id: str, now: datetime) -> int:
    """Add a version under the model's next number, within the caller's transaction; returns the number."""
    number = connection.execute(select(ModelRecord.next_version).where(ModelRecord.name == new.name)).scalar()
    if number is None:
        number = 1
        connection.execute(insert(ModelRecord).values(name=new.name, next_version=2, created_at=now))
    else:
        connection.execute(update(ModelRecord).where(ModelRecord.name == new.name).values(next_version=number + 1))
    row = {"name": new.name, "version": number, "sha256": new.sha256, "artifact": new.artifact}
    row |= {"job_id": job_id, "created_at": now, "description": new.description}
    connection.execute(insert(VersionRecord).values(row))
    return number


def _version(row: RowMapping) -> Version:
    values = dict(row)
    description = values.pop("metadata")
    return Version(**values, description=description)
