"""Workers of `edgewise worker` with several jobs at once: each computes with the threads it was given, and no more."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from tests.builders import make_table
from tests.faults.processes import Member
from tests.service.polling import wait_until
from tests.workers.held_members import prepare, threads
from tests.workers.parquet_tables import columns_of, plan_of, small_config, write
from workers.cluster import connect
from workers.cluster_calls import known_workers
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import CheckpointSettings, NoProgress, TrainingJob
from workers.machine_limits import cpu_limit
from workers.model_file import model_sha256

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc"),
]

GIVEN = ("2", "2", "1", "3", "0")  # --threads of each worker; 0: as many as it may use cores


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Client, list[str]]]:
    """A scheduler and workers as an operator starts them; their addresses in the order of GIVEN."""
    with ExitStack() as stack:

        def member(name: str, *arguments: str) -> Member:
            started = Member(folder / f"{name}.log", *arguments)
            stack.callback(started.kill)
            return started

        scheduler = member("scheduler", "scheduler", "--port", "0").address()
        workers = [member(f"worker{n}", "worker", scheduler, "--threads", given) for n, given in enumerate(GIVEN)]
        addresses = [worker.address() for worker in workers]
        client = stack.enter_context(connect(scheduler))
        client.wait_for_workers(len(GIVEN), timeout=60)
        yield client, addresses


def opened(gate: Path) -> int:
    """The other end of a member's pipe, once the member waits there."""

    def attempt() -> int:
        try:
            return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            return -1

    return wait_until(attempt, lambda end: end >= 0, 60)


def test_every_member_has_the_threads_that_its_worker_gives(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path / "t.parquet", columns_of(make_table(300, 4, 4, seed=3)), 50))
    gates = tmp_path / "gates"
    gates.mkdir()
    kept = CheckpointSettings(str(gates), 1000.0)
    job = TrainingJob("", 1, plan, small_config(), None, checkpoints=kept)
    # name: what it asks for, and its workers; a gang, one that asks for less than there is, one for more, one for all
    asked = {"gang": (None, [0, 1]), "less": (1, [3]), "more": (8, [2]), "all": (None, [4])}
    given = {"gang": [2, 2], "less": [1], "more": [1], "all": [cpu_limit()]}
    with cluster(tmp_path) as (client, addresses), ThreadPoolExecutor(len(asked)) as pool:
        news = known_workers(client, 10.0)
        assert [news[address].threads for address in addresses] == [2, 2, 1, 3, cpu_limit()]
        client.run(prepare)
        before = client.run(threads)
        assert all(each["team"] == 0 for each in before.values())

        def train(name: str) -> str:
            wanted, places = asked[name]
            only = tuple(addresses[place] for place in places)
            settings = GangSettings(member="tests.workers.held_members:held", only=only, place_seconds=30.0)
            mine = replace(job, job_id=name, threads=wanted)
            return model_sha256(train_on_gang(mine, client, len(places), NoProgress(), settings).model)

        paths = {name: [gates / f"{name}.{rank}" for rank in range(len(asked[name][1]))] for name in asked}
        for path in (each for found in paths.values() for each in found):
            os.mkfifo(path)
        trainings = [pool.submit(train, name) for name in asked]
        ends = {path: opened(path) for found in paths.values() for path in found}
        try:
            # All members are in the middle of a round now.
            during = client.run(threads)
        finally:
            for end in ends.values():
                os.close(end)
        hashes = {training.result() for training in trainings}
        after = client.run(threads)
    assert hashes == {model_sha256(train_in_process(replace(job, job_id="here", checkpoints=None), NoProgress()).model)}
    assert helpers(during, addresses, asked) == {name: [n - 1 for n in counts] for name, counts in given.items()}
    for address in addresses:
        assert during[address]["native"] - before[address]["native"] <= 1
        assert not during[address]["numba"]
        assert after[address]["team"] == 0


def helpers(found: dict[str, Any], addresses: list[str], asked: dict[str, Any]) -> dict[str, list[int]]:
    """Threads beside the member's own, by job and rank."""
    return {name: [found[addresses[place]]["team"] for place in places] for name, (_, places) in asked.items()}
