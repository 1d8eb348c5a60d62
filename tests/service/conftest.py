"""What the service's tests share: a folder of data, and servers over it."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.settings import Settings
from tests.service.bench import Bench
from tests.service.live_server import in_thread
from tests.service.postgres_server import PostgresServer, running_server
from tests.service.tables_of_data import write_trees


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with trees.parquet and trees.test.parquet; nobody writes there."""
    root = tmp_path_factory.mktemp("data")
    write_trees(root / "trees.parquet")
    write_trees(root / "trees.test.parquet", n_rows=45, seed=1)
    return root


@pytest.fixture
def make_settings(data_root: Path, tmp_path: Path) -> Callable[..., Settings]:
    """Settings of a server with its own state; keywords change them."""

    def make(**changes: Any) -> Settings:
        values: dict[str, Any] = {
            "data_root": data_root,
            "state_dir": tmp_path / "state",
            "poll_seconds": 0.2,
        }
        return Settings(**(values | changes))

    return make


@pytest.fixture
def client(make_settings: Callable[..., Settings]) -> Iterator[httpx.Client]:
    """A client of a server of this test's own."""
    with in_thread(make_settings()) as (client, _app):
        yield client


@pytest.fixture(scope="module")
def shared_client(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server that the tests of a module share."""
    state = tmp_path_factory.mktemp("shared") / "state"
    with in_thread(Settings(data_root=data_root, state_dir=state, poll_seconds=0.2)) as (client, _app):
        yield client


@pytest.fixture
def unused_tcp_address() -> Iterator[str]:
    """The address of a port that is held, so nobody can come to listen there, and where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def bench(data_root: Path) -> Iterator[Bench]:
    bench = Bench(data_root)
    yield bench
    bench.trainer.go_on.set()
    for runner in bench.runners:
        runner.stop(60)
    bench.store.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the tests of a session share; each takes a database of its own."""
    with running_server() as server:
        yield server
