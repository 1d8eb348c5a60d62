"""Migrations bring a database exactly to the shape of tables.py, and running them again changes nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from service.migrate import upgrade
from service.sql_engine import file_engine, postgres_engine
from service.tables import Base


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A database without tables."""
    if request.param == "sqlite":
        engine = file_engine(tmp_path / "jobs.db")
    else:
        engine = postgres_engine(request.getfixturevalue("postgres").database("template0"))
    yield engine
    engine.dispose()


def test_the_migrated_shape_is_that_of_the_tables(empty: Engine) -> None:
    engine = empty
    # As servers do that start at once.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade, [engine] * 4))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_database_is_set_up_for_many_threads(tmp_path: Path) -> None:
    engine = file_engine(tmp_path / "jobs.db")
    with engine.connect() as connection:
        read = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")}
        assert read == {"journal_mode": "wal", "foreign_keys": 1}
    engine.dispose()
