"""Transactions of the store, and what their failures mean."""

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.errors import StoreUnavailable
from service.sql_engine import POSTGRES, READ_ONLY

UNAVAILABLE = "the job store does not answer; try again in some seconds"


class Sessions:
    """Opens transactions on one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read_engine = engine.execution_options(**READ_ONLY)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write. Raises StoreUnavailable if the database does not answer."""
        with _translated(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads. Raises StoreUnavailable if the database does not answer."""
        with _translated(), self._read_engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @property
    def shared(self) -> bool:
        """Whether several machines can use the database at once."""
        return self._engine.dialect.name == POSTGRES


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not _is_gone(error):
            raise
        # The driver's text names hosts and users: it belongs into the log, behind the cause.
        raise StoreUnavailable(UNAVAILABLE) from error
    except PoolTimeout as error:
        raise StoreUnavailable(UNAVAILABLE) from error


def _is_gone(error: DBAPIError) -> bool:
    """Whether the database, and not the statement, is the trouble."""
    state = getattr(error.orig, "sqlstate", None)
    # Classes 08 and 57P (PostgreSQL, appendix A): connections, and a server that shuts down or starts up.
    refused = isinstance(state, str) and state.startswith(("08", "57P", "53"))
    unreachable = type(error.orig).__module__.startswith("psycopg") and state is None
    return error.connection_invalidated or refused or (unreachable and type(error.orig).__name__ == "OperationalError")


def storable(text: str) -> bool:
    """Whether a database can hold a text at all: PostgreSQL has no NUL, and nothing has halves of surrogates."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def stored_text(text: str | None) -> str | None:
    """A text for people in a form that every database can hold."""
    if text is None:
        return None
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
