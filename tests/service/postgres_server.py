"""A real PostgreSQL server for tests: Debian's binaries, a folder of its own, a Unix socket, gone afterwards."""

import contextlib
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL

from service.migrate import upgrade
from service.sql_engine import postgres_engine

TEMPLATE = "migrated"
# Nothing here must survive a power cut, and nobody but this machine may come in.
FAST = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "listen_addresses=", "-c", "max_connections=60"]


def find_binaries() -> Path | None:
    """The folder of initdb and postgres: on the path, or where Debian puts them."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


def unprivileged() -> dict[str, str]:
    """Arguments of a subprocess that must not be root: PostgreSQL refuses to be."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody"}


class PostgresServer:
    """A running server; `database` gives an address of a fresh database with the store's tables."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(folder / "data"), "-U", "edgewise", "-A", "trust", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        """Start the server; it answers when this returns."""
        with (self._folder / "log").open("ab") as log:
            command = [self._binaries / "postgres", "-D", self._folder / "data", "-k", self._folder, *FAST]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, start_new_session=True, **unprivileged()
            )
        while self._run("pg_isready", "-h", str(self._folder), "-t", "1", check=False):
            assert self._process.poll() is None, (self._folder / "log").read_text()

    def stop(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop", check=False)
            self._process.wait(30)
            self._process = None

    def address(self, database: str) -> URL:
        """Where a database is."""
        query = {"host": str(self._folder)}
        return URL.create("postgresql+psycopg", username="edgewise", database=database, query=query)

    def prepare(self) -> None:
        """Make the database that others are copies of."""
        self.statement(f"CREATE DATABASE {TEMPLATE}")
        engine = postgres_engine(self.address(TEMPLATE))
        upgrade(engine)
        engine.dispose()

    def database(self, template: str = TEMPLATE) -> URL:
        """A fresh database of the test's own."""
        name = f"test{next(self._numbers)}"
        self.statement(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.address(name)

    def statement(self, statement: str) -> None:
        """Run one statement outside any transaction."""
        engine = postgres_engine(self.address("postgres")).execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        command = [self._binaries / program, *arguments]
        done = subprocess.run(command, capture_output=True, cwd=self._folder, check=False, **unprivileged())
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.returncode


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server that ends with the block. Skips where PostgreSQL is not installed, except in CI."""
    binaries = find_binaries()
    if binaries is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is not installed; CI installs it (apt-get install postgresql)")
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="edgewise-postgres-") as name:
        folder = Path(name)
        if user := unprivileged().get("user"):
            shutil.chown(folder, user)
        server = PostgresServer(binaries, folder)
        server.start()
        try:
            server.prepare()
            yield server
        finally:
            server.stop()
