"""One suite for every job store: SQLite in memory, in a file, and PostgreSQL."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service.errors import JobNotFound, KeyReused, LeaseLost, ModelNotFound, WrongState
from service.job_states import JobState
from service.migrate import upgrade
from service.sql_engine import file_engine, memory_engine, postgres_engine
from service.sql_store import SqlStore
from service.store import Job, Lease, NewJob, NewVersion, RoundEntry
from tests.service.postgres_server import PostgresServer

LEASE = 30.0
START = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
FIGURES = {
    "edge": 0.5,
    "alpha": 0.25,
    "loss": 0.75,
    "ln_loss": -0.2877,
    "bound": 0.9,
    "ln_bound": -0.1054,
    "error_bound": 1.0,
    "train_error": 0.25,
    "strict_train_error": 0.5,
    "valid_error": None,
    "n_leaves": 4,
    "bytes_reduced": 2**40,
    "conditions": {"uniform": 0.25, "mr": None},
    "stages": {"growing": 0.5, "outside_kernels": 0.25},
}


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "memory":
        return memory_engine()
    if request.param == "file":
        return file_engine(tmp_path / "jobs.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return postgres_engine(server.database())


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[SqlStore]:
    engine = make_engine(request, tmp_path)
    upgrade(engine)
    store = SqlStore(engine, clock)
    yield store
    store.close()


def new_job(name: str = "trees", key: str | None = None, body_hash: str = "a" * 64) -> NewJob:
    return NewJob(name, {"rounds": 5, "ünïcode": [1, None]}, body_hash, 5, key)


def submitted(store: SqlStore, name: str = "trees") -> Job:
    job, is_new = store.submit(new_job(name))
    assert is_new
    return job


def taken(store: SqlStore, owner: str = "runner") -> tuple[Job, Lease]:
    job = store.take(owner, LEASE)
    assert job is not None
    return job, Lease(job.id, job.run, owner)


def running(store: SqlStore) -> tuple[Job, Lease]:
    submitted(store)
    _job, lease = taken(store)
    return store.change(lease, JobState.RUNNING), lease


def entries(first: int, last: int) -> list[RoundEntry]:
    return [RoundEntry(number, dict(FIGURES), 0.001) for number in range(first, last + 1)]


def version(name: str = "trees", sha256: str = "f" * 64) -> NewVersion:
    return NewVersion(name, sha256, f"{sha256[:6]}.model", {"classes": ["a", "b"]})


def states(store: SqlStore, job: Job) -> list[str]:
    return [transition.state.value for transition in store.transitions(job.id)]


def test_a_submitted_job_reads_back(store: SqlStore) -> None:
    job = submitted(store)
    assert store.get(job.id) == job
    assert (job.state, job.run, job.rounds_done, job.submitted_at) == (JobState.QUEUED, 0, 0, START)
    assert job.body == {"rounds": 5, "ünïcode": [1, None]}
    assert job.submitted_at.tzinfo is UTC
    assert states(store, job) == ["queued"]


def test_unknown_jobs_are_named(store: SqlStore) -> None:
    calls: list[Callable[[str], object]] = [store.get, store.transitions, store.delete, store.request_cancel]
    calls.append(lambda job_id: store.rounds(job_id, 0, 10))
    for call, job_id in itertools.product(calls, ("nowhere", "nowhere\0", "nowhere\udcff")):
        with pytest.raises(JobNotFound, match="nowhere"):
            call(job_id)
    for name in ("nowhere", "nowhere\0"):
        with pytest.raises(ModelNotFound, match="nowhere"):
            store.versions(name)


def in_threads(calls: Sequence[Callable[[], object]]) -> None:
    """All calls at once; the first error that one of them met, if any."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        gate.wait()
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(run, call) for call in calls]:
            done.result()


def test_jobs_that_end_at_once_get_a_version_each(store: SqlStore) -> None:
    leases = [running(store)[1] for _ in range(6)]
    in_threads([partial(store.complete, lease, {}, version()) for lease in leases])
    assert [item.version for item in store.versions("trees")] == [6, 5, 4, 3, 2, 1]


def test_a_cancellation_and_a_change_at_once_both_count(store: SqlStore) -> None:
    """Whichever comes first, the other sees it: no heartbeat, round or cancellation is lost or fails oddly."""
    for _ in range(8):
        job, lease = running(store)
        append = partial(store.append_rounds, lease, entries(1, 3))
        in_threads([partial(store.request_cancel, job.id), append, partial(store.extend, lease, LEASE)])
        assert store.extend(lease, LEASE) is JobState.CANCELLING
        assert store.get(job.id).rounds_done == 3
        store.change(lease, JobState.CANCELLED)


def test_a_silent_job_is_released_once(store: SqlStore, clock: Clock) -> None:
    jobs = [running(store)[0].id for _ in range(5)]
    clock.advance(LEASE + 1)
    lost: list[str] = []
    in_threads([lambda: lost.extend(job.id for job in store.release(None, "silent"))] * 4)
    assert sorted(lost) == sorted(jobs)


def test_a_lease_that_is_kept_in_the_moment_it_expires_is_not_released(store: SqlStore, clock: Clock) -> None:
    job, lease = running(store)
    clock.advance(LEASE + 1)
    answers: list[object] = []

    def keep() -> None:
        try:
            answers.append(store.extend(lease, LEASE))
        except LeaseLost:
            answers.append(None)

    in_threads([keep, lambda: answers.append(store.release(None, "silent"))])
    kept = JobState.RUNNING in answers
    assert store.get(job.id).state is (JobState.RUNNING if kept else JobState.QUEUED)
    assert ([] in answers) is kept


def test_a_batch_sent_again_is_stored_once(store: SqlStore) -> None:
    job, lease = running(store)
    for _ in range(2):
        store.append_rounds(lease, entries(1, 3))
    assert [entry.round for entry in store.rounds(job.id, 0, 10)[1]] == [1, 2, 3]


def test_a_reason_may_hold_anything(store: SqlStore) -> None:
    job, lease = running(store)
    store.change(lease, JobState.FAILED, "no column 'a\0\udcff'")
    assert store.get(job.id).reason == r"no column 'a\x00\udcff'"


def test_the_same_key_is_the_same_job(store: SqlStore) -> None:
    first, is_new = store.submit(new_job(key="k"))
    again, again_new = store.submit(new_job(key="k"))
    assert (is_new, again_new, again.id) == (True, False, first.id)
    assert store.find_key("k") == first
    assert store.find_key("other") is None
    with pytest.raises(KeyReused, match=f"'k'.*{first.id}"):
        store.submit(new_job(key="k", body_hash="b" * 64))
    assert len(store.list_jobs(None, 10, None)) == 1


def test_submitting_one_key_from_many_threads_gives_one_job(store: SqlStore) -> None:
    gate = threading.Barrier(8)
    ids: list[str] = []

    def submit() -> None:
        gate.wait()
        ids.append(store.submit(new_job(key="k"))[0].id)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_pages_go_from_new_to_old(store: SqlStore) -> None:
    jobs = [submitted(store, f"job{number}") for number in range(5)]
    first = store.list_jobs(None, 2, None)
    rest = store.list_jobs(None, 10, first[-1].number)
    assert [job.id for job in first + rest] == [job.id for job in reversed(jobs)]
    store.request_cancel(jobs[2].id)
    assert [job.id for job in store.list_jobs(JobState.CANCELLED, 10, None)] == [jobs[2].id]


def test_take_gives_the_oldest_queued_job_once(store: SqlStore, clock: Clock) -> None:
    first, second = submitted(store), submitted(store)
    clock.advance(1)
    job, _lease = taken(store, "one")
    assert (job.id, job.state, job.run, job.lease_owner) == (first.id, JobState.STARTING, 1, "one")
    assert job.lease_expires == START + timedelta(seconds=1 + LEASE)
    assert job.started_at == START + timedelta(seconds=1)
    assert taken(store, "two")[0].id == second.id
    assert store.take("three", LEASE) is None


def test_many_takers_never_share_a_job(store: SqlStore) -> None:
    jobs = {submitted(store).id for _ in range(12)}
    gate = threading.Barrier(4)
    got: list[str] = []

    def take_all(owner: str) -> None:
        gate.wait()
        while (job := store.take(owner, LEASE)) is not None:
            got.append(job.id)

    threads = [threading.Thread(target=take_all, args=(f"owner{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(jobs)


def test_a_whole_life(store: SqlStore, clock: Clock) -> None:
    job, lease = running(store)
    assert job.running_at == START
    store.append_rounds(lease, entries(1, 3))
    store.append_rounds(lease, [])
    store.append_rounds(lease, entries(4, 5))
    assert [entry.round for entry in store.rounds(job.id, 0, 100)[1]] == [1, 2, 3, 4, 5]
    assert store.rounds(job.id, 2, 2) == (1, entries(3, 4))
    assert [entry.round for entry in store.rounds(job.id, 0, 2, every=2)[1]] == [2, 4]
    assert store.rounds(job.id, 4, 2, every=2) == (1, [])
    clock.advance(7)
    registered = store.complete(lease, {"rounds": 5}, version())
    done = store.get(job.id)
    assert (registered.name, registered.version, registered.job_id) == ("trees", 1, job.id)
    assert (done.state, done.answer, done.workers, done.rounds_done) == (
        JobState.SUCCEEDED,
        {"rounds": 5},
        0,
        5,
    )
    assert (done.model_name, done.model_version) == ("trees", 1)
    assert done.finished_at == START + timedelta(seconds=7)
    assert (done.lease_owner, done.lease_expires) == (None, None)
    assert states(store, job) == ["queued", "starting", "running", "succeeded"]


def test_the_last_rounds_are_those_of_the_current_runs(store: SqlStore, clock: Clock) -> None:
    first, first_lease = running(store)
    _second, second_lease = running(store)
    store.append_rounds(first_lease, entries(1, 3))
    store.append_rounds(second_lease, entries(1, 2))
    waiting = submitted(store)
    jobs = [store.get(each) for each in (first.id, second_lease.job_id, waiting.id)]
    latest = store.latest_rounds(jobs)
    assert {job: entry.round for job, entry in latest.items()} == {first.id: 3, second_lease.job_id: 2}
    assert latest[first.id] == entries(3, 3)[0]
    clock.advance(LEASE + 1)
    store.release(None, "silent")
    _again, lease = taken(store)
    assert store.latest_rounds([store.get(lease.job_id)]) == {}
    assert store.latest_rounds([]) == {}


def test_what_the_table_refuses_changes_nothing(store: SqlStore) -> None:
    submitted(store)
    job, lease = taken(store)
    with pytest.raises(WrongState):
        store.complete(lease, {}, version())
    assert store.get(job.id) == job
    with pytest.raises(ModelNotFound):
        store.versions("trees")


def test_an_older_run_can_write_nothing(store: SqlStore, clock: Clock) -> None:
    job, old = running(store)
    store.append_rounds(old, entries(1, 4))
    clock.advance(LEASE + 1)
    assert [lost.id for lost in store.release(None, "silent")] == [job.id]
    assert store.get(job.id).state is JobState.QUEUED
    # The owner may even be the same: the run number is what fences.
    again, new = taken(store)
    assert (again.run, again.rounds_done, store.rounds(job.id, 0, 10)) == (2, 0, (2, []))
    writes: list[Callable[[], object]] = [
        lambda: store.extend(old, LEASE),
        lambda: store.change(old, JobState.RUNNING),
        lambda: store.append_rounds(old, entries(5, 5)),
        lambda: store.give_back(old, "late"),
        lambda: store.complete(old, {}, version()),
    ]
    for write in writes:
        with pytest.raises(LeaseLost, match="run 1"):
            write()
    assert store.get(job.id) == again
    store.append_rounds(new, entries(1, 1))
    assert states(store, job) == ["queued", "starting", "running", "paused", "queued", "starting"]


def test_a_kept_lease_does_not_expire(store: SqlStore, clock: Clock) -> None:
    job, lease = running(store)
    for _ in range(5):
        clock.advance(LEASE * 0.9)
        assert store.extend(lease, LEASE) is JobState.RUNNING
        assert store.release(None, "silent") == []
    assert store.get(job.id).state is JobState.RUNNING


def test_release_takes_back_what_a_dead_owner_had(store: SqlStore) -> None:
    jobs = [submitted(store) for _ in range(4)]
    taken(store, "dead")
    _job, lease = taken(store, "alive")
    taken(store, "dead")
    lost = store.release("dead", "the server is gone")
    assert [job.id for job in lost] == [jobs[0].id, jobs[2].id]
    assert all(job.state is JobState.QUEUED and job.reason == "the server is gone" for job in lost)
    assert store.extend(lease, LEASE) is JobState.STARTING
    # What was first stays first.
    assert taken(store)[0].id == jobs[0].id


def test_cancel_while_queued_is_at_once(store: SqlStore) -> None:
    job = submitted(store)
    assert store.request_cancel(job.id).state is JobState.CANCELLED
    assert store.request_cancel(job.id).state is JobState.CANCELLED
    assert store.take("runner", LEASE) is None
    assert states(store, job) == ["queued", "cancelled"]


def test_cancel_while_running_waits_for_the_runner(store: SqlStore) -> None:
    job, lease = running(store)
    assert store.request_cancel(job.id).state is JobState.CANCELLING
    assert store.extend(lease, LEASE) is JobState.CANCELLING
    with pytest.raises(WrongState):
        store.complete(lease, {}, version())
    assert store.change(lease, JobState.CANCELLED, "on request").state is JobState.CANCELLED
    assert store.get(job.id).finished_at == START


def test_a_cancelled_job_whose_runner_dies_is_cancelled(store: SqlStore) -> None:
    job, _lease = running(store)
    store.request_cancel(job.id)
    store.release("runner", "gone")
    assert store.get(job.id).state is JobState.CANCELLED


def test_cancel_of_an_ended_job_is_refused(store: SqlStore) -> None:
    job, lease = running(store)
    store.change(lease, JobState.FAILED, "bad data")
    with pytest.raises(WrongState, match="failed"):
        store.request_cancel(job.id)


def test_delete_forgets_ended_jobs_only(store: SqlStore) -> None:
    job, lease = running(store)
    with pytest.raises(WrongState, match="running"):
        store.delete(job.id)
    store.append_rounds(lease, entries(1, 2))
    store.complete(lease, {}, version())
    store.delete(job.id)
    with pytest.raises(JobNotFound):
        store.get(job.id)
    assert store.version("trees", None).job_id == job.id


def test_versions_count_up_under_a_name(store: SqlStore) -> None:
    for sha256 in ("a" * 64, "b" * 64):
        _job, lease = running(store)
        store.complete(lease, {}, version(sha256=sha256))
    _job, lease = running(store)
    store.complete(lease, {}, version(name="other"))
    assert [item.version for item in store.versions("trees")] == [2, 1]
    assert store.version("trees", None).sha256 == "b" * 64
    assert store.version("trees", 1).sha256 == "a" * 64
    assert [(item.name, item.version) for item in store.list_models()] == [("other", 1), ("trees", 2)]
    for name, number in itertools.product(("nowhere",), (None, 1)):
        with pytest.raises(ModelNotFound, match=name):
            store.version(name, number)
    with pytest.raises(ModelNotFound, match="version 3"):
        store.version("trees", 3)


def test_infinite_figures_survive(store: SqlStore) -> None:
    _job, lease = running(store)
    figures = FIGURES | {"ln_loss": float("-inf"), "loss": 0.0}
    store.append_rounds(lease, [RoundEntry(1, figures, 0.1)])
    assert store.rounds(lease.job_id, 0, 1)[1][0].figures["ln_loss"] == float("-inf")


def test_check_passes(store: SqlStore) -> None:
    store.check()
