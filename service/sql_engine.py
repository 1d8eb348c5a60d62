"""Database engines as the store needs them: SQLite in a file (WAL) or in memory, or PostgreSQL."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

BUSY_MILLISECONDS = 10_000  # a writer waits this long for another one before it fails
POOL_SIZE = 8  # and as many again in a rush; a server of PostgreSQL has 100 connections by default
CONNECT_SECONDS = 10
STATEMENT_MILLISECONDS = 30_000  # no statement of the store takes long; a lock that is held longer is a dead server's
POSTGRES = "postgresql"
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


def postgres_engine(url: URL) -> Engine:
    """An engine over a PostgreSQL server, for any number of processes. Rows are locked, not tables.

    A pooled connection is tried before it is used, so that a restart of the server fails no later call.
    """
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        max_overflow=POOL_SIZE,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "options": f"-c statement_timeout={STATEMENT_MILLISECONDS} -c timezone=UTC",
        },
    )


def postgres_url(text: str, password: str | None = None) -> URL:
    """A PostgreSQL address for the driver that the project uses; a password given apart wins.

    Errors: ValueError, which never repeats the text, since it may hold a password.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        raise ValueError("is no database address; use postgresql://user@host:5432/database") from None
    if url.drivername not in {POSTGRES, f"{POSTGRES}+psycopg"}:
        raise ValueError(f"{url.drivername}: only postgresql:// databases can be used; leave it empty for SQLite")
    url = url.set(drivername=f"{POSTGRES}+psycopg")
    return url if password is None else url.set(password=password)


def insert_ignoring(dialect: Dialect, table: Any) -> Any:
    """INSERT that leaves rows alone which are there already; the result's rowcount says how many were not."""
    insert = postgresql.insert if dialect.name == POSTGRES else sqlite.insert
    return insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


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
