"""The decisions of the scheduler: order, fewest workers, memory, fairness."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduling import PATIENCE_SECONDS, RISE_SECONDS, Place, Site, Waiting, decide, misfit, usable
from workers.memory_need import Need

GB = 10**9
SMALL = Need(GB, 0)
OWN = Place("", 8 * GB)
NEVER = 1e9


def waiting(
    name: str, *, workers: int | None = None, need: Need = SMALL, waited: float = 0, priority: int = 0
) -> Waiting:
    return Waiting(name, int(name[1:]), priority, waited, workers, need)


def cluster(*gigabytes: float, busy: Sequence[int] = ()) -> Site:
    places = [Place(f"w{n}", int(size * GB), n in busy, f"host{n % 2}") for n, size in enumerate(gigabytes)]
    return Site(tuple(places), OWN)


def started(jobs: Sequence[Waiting], site: Site) -> dict[str, tuple[str, ...]]:
    return {start.job_id: start.addresses for start in decide(jobs, site, NEVER).starts}


def test_small_jobs_start_side_by_side_one_a_worker() -> None:
    jobs = [waiting(f"j{n}") for n in range(1, 5)]
    assert started(jobs, cluster(4, 4, 4)) == {"j1": ("w0",), "j2": ("w1",), "j3": ("w2",)}


def test_a_large_job_takes_the_fewest_workers_that_it_fits_on() -> None:
    # 1 GB each and 9 GB of rows: two workers of 6.2 GB (of which nine tenths are for jobs) hold 5.5 GB each.
    job = waiting("j1", need=Need(GB, 9 * GB))
    assert len(started([job], cluster(6.2, 6.2, 6.2, 6.2))["j1"]) == 2
    assert len(started([job], cluster(6, 6, 6, 6))["j1"]) == 3
    assert started([job], cluster(4, 12, 4)) == {"j1": ("w1",)}


def test_small_jobs_leave_the_large_workers_free() -> None:
    jobs = [waiting("j1"), waiting("j2", need=Need(GB, 9 * GB))]
    assert started(jobs, cluster(12, 4)) == {"j1": ("w1",), "j2": ("w0",)}


def test_priority_then_waiting_then_order() -> None:
    jobs = [waiting("j1"), waiting("j2", priority=1), waiting("j3", waited=RISE_SECONDS), waiting("j4", priority=-1)]
    order = list(started(jobs, cluster(4, 4, 4, 4)))
    assert order == ["j2", "j3", "j1", "j4"]


def test_jobs_in_the_runners_own_process_wait_for_each_other_only() -> None:
    jobs = [waiting("j1", workers=0), waiting("j2", workers=0), waiting("j3")]
    assert started(jobs, cluster(4)) == {"j1": (), "j3": ("w0",)}
    assert started(jobs, Site(None, OWN)) == {"j1": ()}


def test_what_fits_nowhere_says_so_in_figures() -> None:
    found = misfit(waiting("j1", workers=2, need=Need(GB, 20 * GB)), cluster(4, 6))
    assert str(found) == (
        "needs 11.00 GB on each of 2 worker(s); the largest has 6.00 GB, of which jobs may use 5.40 GB; "
        "5 worker(s) of that size would do"
    )
    assert misfit(waiting("j1", workers=3), cluster(4, 6)) == "needs 3 worker(s); the cluster has 2"
    assert "no number of workers" in str(misfit(waiting("j1", need=Need(6 * GB, 1)), cluster(4, 6)))
    assert "the server's own process" in str(misfit(waiting("j1", workers=0, need=Need(9 * GB, 0)), cluster(4)))


def test_a_job_that_fits_nowhere_holds_up_nobody_and_is_refused_in_the_end() -> None:
    jobs = [waiting("j1", need=Need(9 * GB, 0), waited=1e6), waiting("j2")]
    assert started(jobs, cluster(4)) == {"j2": ("w0",)}
    stuck = Waiting("j1", 1, 0, 700, None, Need(9 * GB, 0), stuck=600)
    [refused] = decide([stuck], cluster(4), 600).refused
    assert "waited 600 s" in refused.reason


def test_smaller_jobs_pass_a_patient_one_only() -> None:
    small = waiting("j2")
    assert started([waiting("j1", workers=2), small], cluster(4, 4, busy=[0])) == {"j2": ("w1",)}
    patient = waiting("j1", workers=2, waited=PATIENCE_SECONDS)
    decision = decide([patient, small], cluster(4, 4, busy=[0]), NEVER)
    assert decision.starts == ()
    assert decision.waits[1].reason.endswith("free ones are kept for job j1")
    # A worker that would not serve it anyway is not kept.
    large = waiting("j1", workers=2, need=Need(3 * GB, 0), waited=PATIENCE_SECONDS)
    assert started([large, small], cluster(4, 2, 4, busy=[0])) == {"j2": ("w1",)}


@given(
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    busy=st.sets(st.integers(0, 5)),
    jobs=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.integers(0, 3), st.integers(0, 12), st.integers(-2, 2)),
        max_size=8,
    ),
)
@settings(max_examples=150, deadline=None)
def test_no_worker_is_given_twice_and_every_one_given_has_the_memory(
    sizes: list[int], busy: set[int], jobs: list[tuple[int | None, int, int, int]]
) -> None:
    queue = [
        waiting(f"j{n}", workers=workers, need=Need(own * GB, rows * GB), priority=priority)
        for n, (workers, own, rows, priority) in enumerate(jobs)
    ]
    site = cluster(*sizes, busy=list(busy))
    assert site.workers is not None
    memory = {place.address: place.memory_bytes for place in site.workers if not place.busy}
    decision = decide(queue, site, NEVER)
    given_away = [address for start in decision.starts for address in start.addresses]
    assert len(given_away) == len(set(given_away))
    assert set(given_away) <= set(memory)
    by_id = {job.job_id: job for job in queue}
    for start in decision.starts:
        job, count = by_id[start.job_id], len(start.addresses)
        if job.workers is not None:
            assert count == job.workers
        assert all(job.need.on(count) <= usable(memory[address]) for address in start.addresses)
        if job.workers is None and count > 1:  # one fewer would not have done, even if all were free
            large = [place for place in site.workers if usable(place.memory_bytes) >= job.need.on(count - 1)]
            assert len(large) < count - 1
    told = [each.job_id for each in (*decision.starts, *decision.stuck, *decision.waits)]
    assert len(told) == len(set(told))


@given(
    seconds=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    step=st.integers(1, 20),
    priority=st.integers(0, 2),
    n_workers=st.integers(2, 4),
)
@settings(max_examples=60, deadline=None)
def test_a_stream_of_small_jobs_never_starves_a_large_one(
    seconds: list[int], step: int, priority: int, n_workers: int
) -> None:
    """The workers are never idle for want of small jobs, of a higher priority too; each takes a minute at most."""
    large = waiting("j0", workers=n_workers)
    free_at = [0.0] * n_workers
    bound = (priority + 1) * RISE_SECONDS + PATIENCE_SECONDS + max(seconds) + 2 * step
    now, number = 0.0, 0
    while True:
        jobs = [Waiting("j0", 0, 0, now, large.workers, SMALL)]
        jobs += [waiting(f"j{number + n + 1}", priority=priority) for n in range(n_workers)]
        number += n_workers
        busy = [n for n, until in enumerate(free_at) if until > now]
        given_away = started(jobs, cluster(*[4] * n_workers, busy=busy))
        if "j0" in given_away:
            break
        for n, (address,) in enumerate(given_away.values()):
            free_at[int(address[1:])] = now + seconds[(number + n) % len(seconds)]
        now += step
        assert now <= bound


@pytest.mark.parametrize("members", [1, 2, 7])
def test_a_need_is_shared_by_its_members(members: int) -> None:
    need = Need(100, 1001)
    assert need.on(members) == 100 + -(-1001 // members)
    assert need.fewest(need.on(members)) == members
    assert need.fewest(100) is None
