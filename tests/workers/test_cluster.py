"""Connecting: to an embedded cluster, to an external scheduler, and to what is neither."""

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client

from tests.service.polling import wait_until
from tests.workers.test_gang import Running, members, new_job
from workers import plugin
from workers.cluster import LOOPBACK, connect
from workers.cluster_calls import call_workers, known_workers
from workers.errors import GangUnavailable
from workers.gang import train_on_gang
from workers.job import NoProgress

pytestmark = pytest.mark.alone


def processes() -> set[int]:
    """Children of this process but Python's own resource tracker, which lives as long as this process."""
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if "resource_tracker" not in " ".join(child.cmdline())}


def holders(client: Client) -> list[object]:
    return list(call_workers(client, plugin.holder, sorted(known_workers(client, 10.0)), seconds=10.0).values())


def test_an_embedded_cluster_comes_and_goes_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = processes()
    with connect("local:2") as client:
        workers = known_workers(client, 10.0)
        assert [worker.host for worker in workers.values()] == [LOOPBACK] * 2
        assert all(worker.threads >= 1 for worker in workers.values())
        assert holders(client) == [None, None]
        assert len(processes() - before) == 2
        assert any(tmp_path.iterdir())
    assert processes() == before
    assert not any(tmp_path.iterdir())


def test_an_embedded_cluster_listens_on_loopback_only() -> None:
    with connect("local:1"):
        mine = psutil.Process()
        family = [mine, *mine.children(recursive=True)]
        listening = [each.laddr.ip for one in family for each in one.net_connections() if each.status == "LISTEN"]
        assert set(listening) == {LOOPBACK}


def test_closing_twice_is_harmless() -> None:
    connection = connect("local:1")
    connection.close()
    connection.close()
    assert connection.client.status == "closed"


def test_a_killed_worker_comes_back_however_soon_dask_looks_for_it() -> None:
    dask.config.set({"distributed.deploy.lost-worker-timeout": "0 s"})  # as if it looked just when the worker is away
    with connect("local:1") as client:
        [address] = known_workers(client, 10.0)
        os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
        wait_until(lambda: known_workers(client, 10.0), lambda known: address not in known)
        client.wait_for_workers(1, timeout=60)
        assert address not in known_workers(client, 10.0)


def test_workers_that_join_later_take_part_in_gangs() -> None:
    with connect("local:1") as client:
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        outcome = train_on_gang(new_job(), client, 2, NoProgress(), members("happy"))
        assert outcome.workers == 2


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tls://127.0.0.1:8786", "needs the certificates of its members"),
        ("local:0", "local:N with at least one worker"),
        ("local:two", "local:N with at least one worker"),
        ("local:", "local:N with at least one worker"),
        ("http://127.0.0.1", "give local:N, tcp://host:port or tls://host:port"),
        ("", "give local:N, tcp://host:port or tls://host:port"),
        ("tcp://127.0.0.1:no", "no Dask scheduler answers at tcp://127.0.0.1:no"),
    ],
)
def test_what_is_no_cluster_is_refused_by_name(target: str, words: str) -> None:
    with pytest.raises(GangUnavailable) as caught:
        connect(target, seconds=2.0)
    assert words in str(caught.value)


def test_a_scheduler_that_does_not_answer_is_named() -> None:
    """Nobody listens there; somebody listens and says nothing."""
    with socket.create_server((LOOPBACK, 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(GangUnavailable, match=f"no Dask scheduler answers at tcp://{LOOPBACK}:{port} within 0.5 s"):
            connect(f"tcp://{LOOPBACK}:{port}", seconds=0.5)
    with pytest.raises(GangUnavailable, match=f"no Dask scheduler answers at tcp://{LOOPBACK}:{port}"):
        connect(f"tcp://{LOOPBACK}:{port}", seconds=0.5)


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", bytes(64), b""])
def test_a_server_of_another_kind_is_no_scheduler(words: bytes) -> None:
    class Other(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(words)

    with socketserver.TCPServer((LOOPBACK, 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            port = server.server_address[1]
            with pytest.raises(GangUnavailable, match=f"no Dask scheduler answers at tcp://{LOOPBACK}:{port}"):
                connect(f"tcp://{LOOPBACK}:{port}", seconds=1.0)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def external(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A scheduler and two workers as separate programs, as an operator starts them: its address, its process."""
    python = [sys.executable, "-m"]
    environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    options = ["--host", LOOPBACK, "--port", "0", "--no-dashboard", "--dashboard-address", f"{LOOPBACK}:0"]
    command = [*python, "distributed.cli.dask_scheduler", *options]
    scheduler = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert scheduler.stderr is not None
    told = next(line for line in scheduler.stderr if "Scheduler at:" in line)
    address = told.split()[-1]
    options = [address, "--host", LOOPBACK, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    command = [*python, "distributed.cli.dask_worker", *options]
    workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) for _ in range(2)]
    yield address, scheduler
    for process in [*workers, scheduler]:
        process.kill()
        process.wait()
    scheduler.stderr.close()


@pytest.mark.faults
def test_an_external_cluster_trains_and_its_death_is_noticed(external: tuple[str, subprocess.Popen[str]]) -> None:
    address, scheduler = external
    with connect(address) as client:
        client.wait_for_workers(2, timeout=60)
        outcome = train_on_gang(new_job(), client, None, NoProgress(), members("happy"))
        assert outcome.workers == 2
        with Running(client, 2, members("endless")) as running:
            scheduler.send_signal(signal.SIGKILL)
            reason = running.failure()
        assert "the scheduler" in reason
        assert address in reason
