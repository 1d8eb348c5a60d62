"""Brings a database to the shape of tables.py, at every start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from service.sql_engine import POSTGRES

LOCK = 4_183_771_209  # any number that nobody else locks in this database
SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine) -> None:
    """Run the migrations that the database has not seen, in one transaction; servers that start at once take turns."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        if connection.dialect.name == POSTGRES:  # SQLite's transactions take turns by themselves
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
