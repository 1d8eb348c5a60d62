"""Database engines as the store needs them: SQLite in a file (WAL) or in memory."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

BUSY_MILLISECONDS = 10_000  # a writer waits this long for another one before it fails
READ_ONLY: dict[str, Any] = {"edgewise_begin": "DEFERRED"}


def file_engine(path: Path) -> Engine:
    """An engine over a SQLite file: readers and one writer at a time, from any number of threads."""
    return _prepared(create_engine(f"sqlite:///{path}"))


def memory_engine() -> Engine:
    """An engine over a database in memory, for tests: its one connection serves one transaction at a time."""
    engine = create_engine(
        "sqlite://",
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )
    return _prepared(engine)


def _prepared(engine: Engine) -> Engine:
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    # The driver's own transactions begin too late (at the first write); `_begin` opens them instead.
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout={BUSY_MILLISECONDS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # A transaction that writes takes the write lock first: one that read before would fail with "database is
    # locked" instead of waiting.
    kind = connection.get_execution_options().get("edgewise_begin", "IMMEDIATE")
    connection.exec_driver_sql(f"BEGIN {kind}")
