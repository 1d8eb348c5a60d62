"""Scheduler and workers as processes of their own: they train together, and let nobody in without a certificate."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from service.certificates import make_certificates
from tests.workers.registered import registered_workers
from tests.workers.test_gang import members, new_job
from workers.cluster import connect
from workers.errors import GangUnavailable
from workers.gang import train_on_gang
from workers.job import NoProgress
from workers.machine_limits import cpu_limit, memory_limit

pytestmark = pytest.mark.alone


@contextmanager
def role(name: str, *arguments: str, log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A member that runs; the address that it told."""
    command = [sys.executable, "-m", "service.cli", name, *arguments]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=errors, text=True, start_new_session=True)
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "listens on" in line:
                break
        assert lines, "it ended without a word"
        assert "listens on" in lines[-1], "".join(lines)
        yield process, lines[-1].split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("members")
    assert make_certificates(folder)
    return folder


def test_members_with_certificates_train_and_strangers_stay_out(tls_dir: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    make_certificates(strange)
    tls = ("--tls-dir", str(tls_dir))
    with ExitStack() as stack:
        scheduler, address = stack.enter_context(role("scheduler", "--port", "0", *tls, log=tmp_path / "s"))
        assert address.startswith("tls://127.0.0.1:")
        worker, _ = stack.enter_context(role("worker", address, "--threads", "1", *tls, log=tmp_path / "w"))
        with connect(address, tls_dir=tls_dir) as client:
            client.wait_for_workers(1, timeout=60)
            outcome = train_on_gang(new_job(), client, 1, NoProgress(), members("happy"))
            assert outcome.workers == 1
            [known] = registered_workers(client).values()
            assert (known["nthreads"], known["memory_limit"]) == (1, memory_limit())
        # In the clear, with a certificate of another authority, and without one.
        for target, folder in ((address.replace("tls://", "tcp://"), None), (address, strange)):
            with pytest.raises(GangUnavailable, match="no Dask scheduler answers"):
                connect(target, 3.0, folder)
        for folder in (None, tmp_path):
            with pytest.raises(GangUnavailable, match="certificate"):
                connect(address, 3.0, folder)
        # A worker ends with its scheduler, and says by its status that it should be started again.
        scheduler.send_signal(signal.SIGTERM)
        assert scheduler.wait(60) == 0
        assert worker.wait(60) == 1


def test_members_with_certificates_leave_no_failed_handshake_in_the_log(tls_dir: Path, tmp_path: Path) -> None:
    with role("scheduler", "--port", "0", "--tls-dir", str(tls_dir), log=tmp_path / "s") as (scheduler, address):
        with connect(address, tls_dir=tls_dir):
            pass
        scheduler.send_signal(signal.SIGTERM)
        assert scheduler.wait(60) == 0
        assert scheduler.stderr is not None
        assert "handshake" not in scheduler.stderr.read()


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_nobody_listens_for_others_without_certificates(name: str) -> None:
    command = [sys.executable, "-m", "service.cli", name, "--host", "0.0.0.0"]
    environment = os.environ | {"EDGEWISE_CLUSTER": "tcp://127.0.0.1:1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 2
    assert "can run code there" in done.stderr


CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        ({}, CORES, None),
        ({"cpu.max": "max 100000", "memory.max": "max"}, CORES, None),
        ({"cpu.max": "100000 100000", "memory.max": "1073741824"}, 1, 1 << 30),
        ({"cpu.max": "50000 100000"}, 1, None),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, CORES, None),
        ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, 1, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, CORES, None),
        ({"memory/memory.limit_in_bytes": "536870912"}, CORES, 1 << 29),
        ({"cpu.max": "6400000 100000"}, CORES, None),
    ],
)
def test_limits_of_a_container(tmp_path: Path, files: dict[str, str], cores: int, memory: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert cpu_limit(tmp_path) == cores
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory_limit(tmp_path) == (memory or physical)
