"""Migrations bring a database exactly to the shape of tables.py, and running them again changes nothing."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from service.migrate import upgrade
from service.sql_engine import file_engine
from service.tables import Base


def test_the_migrated_shape_is_that_of_the_tables(tmp_path: Path) -> None:
    engine = file_engine(tmp_path / "jobs.db")
    upgrade(engine)
    upgrade(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    engine.dispose()


def test_the_database_is_set_up_for_many_threads(tmp_path: Path) -> None:
    engine = file_engine(tmp_path / "jobs.db")
    with engine.connect() as connection:
        read = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")}
        assert read == {"journal_mode": "wal", "foreign_keys": 1}
    engine.dispose()
