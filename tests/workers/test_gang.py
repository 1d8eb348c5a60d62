"""Gangs on a real Dask cluster of three processes: how they train, and how they end when something dies."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from distributed import Client, Scheduler

from boost_core.config import Choice, TrainingConfig
from boost_core.errors import BoundBroken
from boost_core.model import Feature
from boost_core.records import StopReason
from tests.workers.gang_members import ROUNDS, record
from tests.workers.registered import registered_workers
from workers import plugin
from workers.cluster import connect
from workers.cluster_calls import call_workers
from workers.data_plan import DataPlan, ParquetRows, TableRows
from workers.errors import DataError, GangUnavailable, TrainingFailed
from workers.gang import WAITING, GangSettings, train_on_gang
from workers.job import NoProgress, RoundProgress, TrainingJob, TrainingOutcome
from workers.model_file import from_bytes, model_sha256, to_bytes

pytestmark = [pytest.mark.alone, pytest.mark.faults]

N_WORKERS = 3
N_ROWS = 100
SOON = 10.0  # seconds: a gang that fails has failed by then; the deadlines in these tests are far longer
CONFIG = TrainingConfig(Choice("adaboost_mh", {}), Choice("stump", {}), ROUNDS, 255, 0)
PLAN = DataPlan(TableRows((ParquetRows("nowhere", (N_ROWS,)),)), None, "label", (Feature("x", "double"),), ("a", "b"))
numbers = count()


@pytest.fixture(scope="module")
def shared_client() -> Iterator[Client]:
    with connect(f"local:{N_WORKERS}") as client:
        yield client


@pytest.fixture
def client(shared_client: Client) -> Client:
    """A cluster with all its workers, also after a test has killed one."""
    shared_client.wait_for_workers(N_WORKERS, timeout=60)
    return shared_client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def new_job(run: int = 1) -> TrainingJob:
    return TrainingJob(f"job-{next(numbers)}", run, PLAN, CONFIG)


def members(function: str, **settings: Any) -> GangSettings:
    """One attempt: how a gang forms again is tested in tests/faults."""
    return GangSettings(member=f"tests.workers.gang_members:{function}", **({"recoveries": 0} | settings))


class Follower:
    """Records what it is told; a test waits for a phase or a round, and asks to cancel."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.rounds: list[RoundProgress] = []
        self.training = threading.Event()
        self.asked = threading.Event()
        self.cancel = threading.Event()

    def phase(self, name: str) -> None:
        self.phases.append(name)
        if name == "train":
            self.training.set()

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        self.rounds.extend(batch)

    def cancel_requested(self) -> bool:
        self.asked.set()
        return self.cancel.is_set()


class Running:
    """A gang that trains in a thread of its own; entered once its members are in their rounds."""

    def __init__(self, client: Client, n_workers: int | None, settings: GangSettings) -> None:
        self.follower = Follower()
        self.job = new_job()
        self._pool = ThreadPoolExecutor(1)
        self.result: Future[TrainingOutcome] = self._pool.submit(
            train_on_gang, self.job, client, n_workers, self.follower, settings
        )

    def __enter__(self) -> "Running":
        assert self.follower.training.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.follower.cancel.set()
        self._pool.shutdown()

    def failure(self) -> str:
        """Why it failed; at once, that is."""
        with pytest.raises(TrainingFailed) as caught:
            self.result.result(timeout=SOON)
        return str(caught.value)


def addresses(client: Client) -> list[str]:
    """Workers in the order of ranks: on one host, gangs take them sorted."""
    return sorted(registered_workers(client))


def signal_worker(client: Client, address: str, number: signal.Signals) -> int:
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, number)
    return int(pid)


def holders(client: Client) -> set[object]:
    return set(call_workers(client, plugin.holder, addresses(client), seconds=SOON).values())


def scheduler_leftovers(dask_scheduler: Scheduler) -> list[str]:
    """Tasks and event topics of gangs that the scheduler still knows."""
    names = [*dask_scheduler.tasks, *dask_scheduler._broker._topics]
    return [str(name) for name in names if "edgewise" in str(name)]


def assert_usable(client: Client) -> None:
    """Every worker can be leased, and no gang has left anything behind."""
    client.wait_for_workers(N_WORKERS, timeout=60)
    outcome = train_on_gang(new_job(), client, N_WORKERS, NoProgress(), members("happy", lease_seconds=30.0))
    assert outcome.workers == N_WORKERS
    assert holders(client) == {None}
    assert client.submit(int, "7", pure=False).result(timeout=SOON) == 7  # sent after all releases of futures
    assert client.run_on_scheduler(scheduler_leftovers) == []
    assert [key for key in client.futures if "edgewise" in str(key)] == []


def test_a_gang_trains_and_leaves_nothing(client: Client) -> None:
    follower = Follower()
    outcome = train_on_gang(new_job(), client, None, follower, members("happy"))
    assert outcome.stop_reason is StopReason.ROUNDS
    assert outcome.workers == N_WORKERS
    assert outcome.rows_per_member == (33, 33, 34)
    assert outcome.rounds == tuple(RoundProgress(record(number), 0.001) for number in range(1, ROUNDS + 1))
    assert outcome.seconds == {"total": 2.0}
    assert outcome.peak_memory_bytes == 1002
    assert outcome.model.classes == ("a", "b")
    assert follower.phases == ["read", "train"]
    assert tuple(follower.rounds) == outcome.rounds
    assert_usable(client)


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_a_gang_has_the_size_asked_for(client: Client, n_workers: int) -> None:
    outcome = train_on_gang(new_job(), client, n_workers, NoProgress(), members("happy"))
    assert len(outcome.rows_per_member) == outcome.workers == n_workers
    assert sum(outcome.rows_per_member) == N_ROWS


def test_rows_can_be_shuffled_and_members_idle(client: Client) -> None:
    settings = members("happy", shuffle_seed=3, idle=(1,))
    outcome = train_on_gang(new_job(), client, 3, NoProgress(), settings)
    assert outcome.rows_per_member[1] == 0
    assert sum(outcome.rows_per_member) == N_ROWS


def test_too_few_workers_are_told_with_numbers(client: Client) -> None:
    with pytest.raises(GangUnavailable, match=r"needs 4 workers; tcp://.* has 3, 3 of them free; waited 0 s"):
        train_on_gang(new_job(), client, 4, NoProgress(), members("happy", lease_seconds=0.0))


def test_busy_workers_are_told_with_who_has_them(client: Client) -> None:
    with Running(client, 2, members("endless")) as running, pytest.raises(GangUnavailable) as caught:
        train_on_gang(new_job(), client, 2, NoProgress(), members("happy", lease_seconds=0.2))
    assert "has 3, 1 of them free" in str(caught.value)
    for address in addresses(client)[:2]:
        assert f"{address}: held by job {running.job.job_id}, run 1" in str(caught.value)
    assert_usable(client)


def test_two_gangs_on_the_same_workers_train_one_after_another(client: Client, pool: ThreadPoolExecutor) -> None:
    with Running(client, 3, members("endless")) as first:
        follower = Follower()
        second = pool.submit(train_on_gang, new_job(), client, 2, follower, members("happy"))
        assert follower.asked.wait(SOON)  # it was refused once, and goes on asking
        assert not second.done()
        assert follower.phases == []
        first.follower.cancel.set()
        assert first.result.result(timeout=SOON).stop_reason is StopReason.CANCELLED
        assert second.result(timeout=SOON).stop_reason is StopReason.ROUNDS


def test_gangs_on_different_workers_train_side_by_side(client: Client) -> None:
    with Running(client, 1, members("endless")) as first:
        outcome = train_on_gang(new_job(), client, 2, NoProgress(), members("happy"))
        assert outcome.workers == 2
        assert not first.result.done()


def test_many_gangs_after_the_same_workers_all_get_them(client: Client, pool: ThreadPoolExecutor) -> None:
    """Sizes that do not fit together: nobody holds what another waits for."""
    sizes = [3, 2, 1, 2, 3, 1]
    runs = [pool.submit(train_on_gang, new_job(), client, size, NoProgress(), members("happy")) for size in sizes]
    assert [run.result(timeout=60).workers for run in runs] == sizes


def test_a_waiting_gang_can_be_given_up(client: Client) -> None:
    follower = Follower()
    follower.cancel.set()
    with Running(client, 3, members("endless")):
        outcome = train_on_gang(new_job(), client, 1, follower, members("happy"))
    assert outcome.stop_reason is StopReason.CANCELLED
    assert (outcome.workers, outcome.rounds, outcome.rows_per_member) == (0, (), ())
    assert (outcome.model.forest.n_rounds, outcome.model.forest.n_trees) == (0, 0)
    assert model_sha256(from_bytes(to_bytes(outcome.model))) == model_sha256(outcome.model)
    assert follower.phases == []


def test_an_older_run_is_refused_at_once(client: Client) -> None:
    job = new_job(run=2)
    train_on_gang(job, client, 3, NoProgress(), members("happy"))
    with pytest.raises(GangUnavailable, match=r"run 2 of job .* was seen there: run 1 is over"):
        train_on_gang(replace(job, run=1), client, 3, NoProgress(), members("happy"))
    train_on_gang(replace(job, run=3), client, 3, NoProgress(), members("happy"))


def test_cancel_reaches_the_members(client: Client) -> None:
    with Running(client, 3, members("endless")) as running:
        running.follower.cancel.set()
        assert running.result.result(timeout=SOON).stop_reason is StopReason.CANCELLED
    reported = [each.record.round for each in running.follower.rounds]
    assert reported == list(range(1, len(reported) + 1))
    assert_usable(client)


@pytest.mark.parametrize("rank", range(N_WORKERS))
@pytest.mark.parametrize("function", ["endless", "computes"])
def test_a_killed_member_fails_the_gang_by_name(client: Client, function: str, rank: int) -> None:
    """Its connections tell the others at once; where they do not listen, the scheduler tells the driver."""
    victim = addresses(client)[rank]
    with Running(client, 3, members(function)) as running:
        signal_worker(client, victim, signal.SIGKILL)
        reason = running.failure()
    assert f"worker {victim} (member {rank} of 3) died" in reason
    assert_usable(client)


def test_the_only_member_killed_fails_its_gang(client: Client) -> None:
    victim = addresses(client)[0]
    with Running(client, 1, members("endless")) as running:
        signal_worker(client, victim, signal.SIGKILL)
        assert f"worker {victim} (member 0 of 1) died" in running.failure()
    assert_usable(client)


def test_a_death_is_told_with_the_last_round(client: Client) -> None:
    victim = addresses(client)[-1]
    with pytest.raises(TrainingFailed) as caught:
        train_on_gang(new_job(), client, 3, NoProgress(), members("dies_in_round_3"))
    assert f"worker {victim} (member 2 of 3) died after round 3" in str(caught.value)


def test_a_frozen_member_fails_the_gang_and_is_harmless_when_it_wakes(client: Client) -> None:
    frozen = addresses(client)[1]
    with Running(client, 3, members("endless", deadline_seconds=0.5)) as running:
        pid = signal_worker(client, frozen, signal.SIGSTOP)
        try:
            reason = running.failure()
            with pytest.raises(GangUnavailable, match=f"{frozen}: does not answer"):
                train_on_gang(new_job(), client, 3, NoProgress(), members("happy", lease_seconds=0.0))
            others = train_on_gang(new_job(), client, 2, NoProgress(), members("happy"))
        finally:
            os.kill(pid, signal.SIGCONT)
    assert f"DeadlinePassed: waited {WAITING * 0.5:g} s for member 1 ({frozen}) in round" in reason
    assert others.workers == 2
    assert_usable(client)
    assert client.run(os.getpid, workers=[frozen])[frozen] == pid


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("errs", "ValueError: seven is no colour"),
        ("errs_oddly", "HoldsALock: the reel is jammed"),
        ("exits", "SystemExit: 3"),
        ("nothing_of_that_name", "AttributeError"),
    ],
)
def test_a_members_own_error_is_the_reason(client: Client, function: str, words: str) -> None:
    with pytest.raises(TrainingFailed, match=r"\(member \d of 3\) failed .*" + words):
        train_on_gang(new_job(), client, 3, NoProgress(), members(function))
    assert_usable(client)


@pytest.mark.parametrize(("function", "kind"), [("refuses_data", DataError), ("breaks_a_bound", BoundBroken)])
def test_errors_of_the_trade_keep_their_type(client: Client, function: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        train_on_gang(new_job(), client, 3, NoProgress(), members(function))
    assert f"raised by worker {addresses(client)[2]} (member 2 of 3)" in caught.value.__notes__[0]
    if isinstance(caught.value, DataError):
        assert caught.value.loc == ("data", "train")
    assert_usable(client)


def test_an_error_of_the_follower_ends_the_gang(client: Client) -> None:
    class Careless(Follower):
        def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
            raise KeyError("no such job")

    with pytest.raises(KeyError, match="no such job"):
        train_on_gang(new_job(), client, 3, Careless(), members("endless"))
    assert_usable(client)


def test_members_end_when_their_driver_is_gone(client: Client) -> None:
    """The driver's client closes under it; the scheduler drops its tasks, which the workers' plugins notice."""
    driver = Client(client.scheduler.address, set_as_default=False)
    with Running(driver, 3, members("endless")) as running:
        driver.close()
        assert "the scheduler" in running.failure()
    assert_usable(client)


def test_a_lease_without_members_does_not_outlive_its_driver(client: Client) -> None:
    """As if the driver had died between taking its workers and starting the members."""
    [address] = addresses(client)[:1]
    call_workers(client, plugin.take_seat, [address], "abandoned", 1, 0.0, seconds=SOON)
    assert_usable(client)


def test_registering_again_changes_nothing(client: Client) -> None:
    """Two drivers share a cluster: the second must not replace a plugin that holds a lease."""
    with Running(client, 1, members("endless")) as running:
        plugin.register(client)
        assert (running.job.job_id, running.job.fence) in holders(client)


def test_a_gang_does_not_keep_a_thread_of_the_pool(client: Client) -> None:
    [address] = addresses(client)[:1]
    with Running(client, 1, members("endless")):
        started = time.monotonic()
        assert client.submit(int, "7", workers=[address], pure=False).result(timeout=SOON) == 7
        assert time.monotonic() - started < SOON
