"""One suite for every implementation of the collective: what any of them answers equals NumPy's answer."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from boost_core.collective import Alone, Collective
from tests.workers.meshes import certificates, connected, in_threads
from workers.thread_group import ThreadGroup

pytestmark = pytest.mark.alone

KINDS = [("alone", 1), *(("threads", n) for n in (1, 2, 3, 5)), *(("mesh", n) for n in (1, 2, 3, 4)), ("tls", 3)]
random_cases = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32 - 1)
Gang = list[Collective]


def members_of(kind: str, size: int, stack: ExitStack) -> Gang:
    if kind == "alone":
        return [Alone()]
    if kind == "threads":
        group = ThreadGroup(size)
        return [group.collective(rank) for rank in range(size)]
    encrypted = certificates() if kind == "tls" else None
    return [stack.enter_context(end) for end in connected(size, certificates=encrypted)]


@pytest.fixture(params=KINDS, ids=lambda param: f"{param[0]}-{param[1]}")
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    with ExitStack() as stack:
        yield members_of(*request.param, stack)


def each(gang: Gang, operation: Callable[[Collective], Any]) -> list[Any]:
    """The operation's result on every member, called at the same time."""
    results = in_threads(lambda rank: operation(gang[rank]), len(gang))
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def random_integers(gang: Gang, shape: tuple[int, ...], seed: int, largest: int = 2**40) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-largest, largest, shape) for _ in gang]


def test_ranks_and_size(gang: Gang) -> None:
    assert [member.rank for member in gang] == list(range(len(gang)))
    assert {member.size for member in gang} == {len(gang)}


@random_cases
@given(shape=st.lists(st.integers(0, 7), max_size=4).map(tuple), seed=seeds)
def test_sum_equals_numpy(gang: Gang, shape: tuple[int, ...], seed: int) -> None:
    parts = random_integers(gang, shape, seed)
    for total in each(gang, lambda member: member.sum(parts[member.rank])):
        assert total.dtype == np.int64
        assert_array_equal(total, np.sum(parts, axis=0))


@random_cases
@given(data=st.data())
def test_sums_near_the_limit_of_int64(gang: Gang, data: st.DataObject) -> None:
    """Values up to 2^62 whose partial sums may pass int64 while the whole sum fits."""
    limit = 2**62
    columns = st.lists(st.integers(-limit, limit), min_size=len(gang), max_size=len(gang))
    fitting = columns.filter(lambda column: -(2**63) <= sum(column) < 2**63)
    values = data.draw(st.lists(fitting, min_size=1, max_size=5))
    parts = np.array(values, np.int64).T.copy()
    for total in each(gang, lambda member: member.sum(parts[member.rank])):
        assert total.tolist() == [sum(column) for column in values]


@random_cases
@given(n=st.integers(1, 50), seed=seeds, floats=st.booleans())
def test_max_equals_numpy(gang: Gang, n: int, seed: int, floats: bool) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=n) if floats else rng.integers(-(2**62), 2**62, n) for _ in gang]
    for largest in each(gang, lambda member: member.max(parts[member.rank])):
        assert largest.dtype == parts[0].dtype
        assert_array_equal(largest, np.max(parts, axis=0))


def test_max_keeps_infinities(gang: Gang) -> None:
    parts = [np.array([-np.inf, float(rank), np.inf if rank == 0 else 0.0]) for rank in range(len(gang))]
    for largest in each(gang, lambda member: member.max(parts[member.rank])):
        assert_array_equal(largest, [-np.inf, len(gang) - 1, np.inf])


@random_cases
@given(
    n_nodes=st.integers(0, 4),
    n_bins=st.integers(0, 40),
    n_channels=st.integers(1, 5),
    seed=seeds,
)
def test_reduce_scatter_equals_numpy(gang: Gang, n_nodes: int, n_bins: int, n_channels: int, seed: int) -> None:
    """Random bounds: slices may be empty, at either end too."""
    parts = random_integers(gang, (n_nodes, n_bins, n_channels), seed)
    inner = np.sort(np.random.default_rng(seed).integers(0, n_bins + 1, len(gang) - 1))
    bounds = np.concatenate([[0], inner, [n_bins]]).astype(np.int64)
    sums = each(gang, lambda member: member.reduce_scatter(parts[member.rank], bounds))
    expected = np.sum(parts, axis=0)
    for rank, total in enumerate(sums):
        assert_array_equal(total, expected[:, bounds[rank] : bounds[rank + 1]])


@random_cases
@given(data=st.data(), tail=st.lists(st.integers(0, 3), max_size=2).map(tuple), seed=seeds)
def test_all_gather_of_different_lengths(gang: Gang, data: st.DataObject, tail: tuple[int, ...], seed: int) -> None:
    lengths = data.draw(st.lists(st.integers(0, 20), min_size=len(gang), max_size=len(gang)))
    dtype = data.draw(st.sampled_from([np.int64, np.float64, np.int32, np.uint8, np.bool_, np.uint64]))
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 2, (length, *tail)).astype(dtype) for length in lengths]
    for gathered in each(gang, lambda member: member.all_gather(parts[member.rank])):
        assert len(gathered) == len(parts)
        for got, part in zip(gathered, parts, strict=True):
            assert got.dtype == part.dtype
            assert_array_equal(got, part)


@random_cases
@given(data=st.data(), seed=seeds)
def test_all_to_all_brings_every_member_what_is_meant_for_it(gang: Gang, data: st.DataObject, seed: int) -> None:
    lengths = [data.draw(st.lists(st.integers(0, 20), min_size=len(gang), max_size=len(gang))) for _ in gang]
    dtype = data.draw(st.sampled_from([np.uint8, np.int32, np.int64]))
    rng = np.random.default_rng(seed)
    parts = [[rng.integers(0, 100, length).astype(dtype) for length in row] for row in lengths]
    for rank, received in enumerate(each(gang, lambda member: member.all_to_all(parts[member.rank]))):
        assert len(received) == len(gang)
        for sender, got in enumerate(received):
            assert got.dtype == dtype
            assert_array_equal(got, parts[sender][rank])


def test_all_to_all_wants_a_part_for_each_member(gang: Gang) -> None:
    if len(gang) > 1:
        with pytest.raises(ValueError, match=f"one array for each of {len(gang)} members is wanted, got 1"):
            gang[0].all_to_all([np.zeros(3)])


def test_inputs_are_left_alone(gang: Gang) -> None:
    """Results do not share memory with what another member, or the caller later, may change."""
    bounds = np.linspace(0, 12, len(gang) + 1).astype(np.int64)

    def work(member: Collective) -> list[NDArray[Any]]:
        histograms = np.full((2, 12, 3), member.rank + 1, np.int64)
        values = np.arange(12, dtype=np.int64)
        results = [member.sum(values), member.reduce_scatter(histograms, bounds), *member.all_gather(values)]
        assert_array_equal(values, np.arange(12))
        assert_array_equal(histograms, np.full((2, 12, 3), member.rank + 1))
        if member.size > 1:
            for result in results[:2]:
                assert not np.shares_memory(result, values)
                assert not np.shares_memory(result, histograms)
        return results

    results = each(gang, work)
    for mine, other in itertools.pairwise(results):
        assert not any(np.shares_memory(one, two) for one, two in zip(mine, other, strict=True))


@pytest.mark.parametrize("n_bytes", [0, 8, 8 * 1000, 256 << 10, (256 << 10) + 8, 8 << 20, (8 << 20) + 24])
def test_sums_of_every_size(gang: Gang, n_bytes: int) -> None:
    """Around the limit between the two ways to sum, and far more than a socket's buffers hold."""
    parts = random_integers(gang, (n_bytes // 8,), seed=n_bytes)
    for total in each(gang, lambda member: member.sum(parts[member.rank])):
        assert_array_equal(total, np.sum(parts, axis=0))


@pytest.mark.parametrize("shape", [(1, 4096, 256), (64, 512, 32), (1200, 64, 14)])
def test_large_histograms(gang: Gang, shape: tuple[int, int, int]) -> None:
    """8 MB each; more nodes than the system takes views in one call."""
    parts = random_integers(gang, shape, seed=1)
    bounds = np.linspace(0, shape[1], len(gang) + 1).astype(np.int64)
    expected = np.sum(parts, axis=0)
    sums = each(gang, lambda member: member.reduce_scatter(parts[member.rank], bounds))
    for rank, total in enumerate(sums):
        assert_array_equal(total, expected[:, bounds[rank] : bounds[rank + 1]])


def test_one_member_gathers_much_and_the_others_nothing(gang: Gang) -> None:
    parts = [np.zeros((0, 4), np.int64) for _ in gang]
    parts[-1] = np.arange(1 << 20, dtype=np.int64).reshape(-1, 4)
    for gathered in each(gang, lambda member: member.all_gather(parts[member.rank])):
        for got, part in zip(gathered, parts, strict=True):
            assert_array_equal(got, part)


def test_arrays_that_are_not_contiguous(gang: Gang) -> None:
    wide = [np.arange(40, dtype=np.int64).reshape(4, 10) * (rank + 1) for rank in range(len(gang))]
    expected = np.sum(wide, axis=0).T[::2]
    for total in each(gang, lambda member: member.sum(wide[member.rank].T[::2])):
        assert_array_equal(total, expected)
    for gathered in each(gang, lambda member: member.all_gather(wide[member.rank].T[::2])):
        assert_array_equal(gathered[-1], wide[-1].T[::2])


def test_many_operations_in_a_row(gang: Gang) -> None:
    """Members run ahead of each other by themselves; steps and rounds still fit together."""

    def work(member: Collective) -> list[int]:
        totals = []
        for number in range(30):
            member.begin_round(number)
            member.barrier()
            totals.append(int(member.sum(np.array([number + member.rank], np.int64))[0]))
            totals.append(int(member.max(np.array([member.rank], np.int64))[0]))
            totals.append(sum(len(part) for part in member.all_gather(np.zeros(member.rank, np.int64))))
        return totals

    size, ranks = len(gang), sum(range(len(gang)))
    expected = [value for number in range(30) for value in (number * size + ranks, size - 1, ranks)]
    assert each(gang, work) == [expected] * size


@pytest.mark.parametrize(("value", "item"), [(2**31 - 1, 4), (-(2**31), 4), (2**31, 8), (-(2**31) - 1, 8)])
def test_bytes_sent_counts_what_leaves_a_member(gang: Gang, value: int, item: int) -> None:
    """Values that fit int32 travel as such, whatever their sum; padding channels do not travel."""
    size = len(gang)
    bounds = np.array([0, *([4] * size)], np.int64)  # member 0 owns everything

    def work(member: Collective) -> list[int]:
        counts = [member.bytes_sent]
        assert_array_equal(member.sum(np.full(10, value)), np.full(10, size * value))
        counts.append(member.bytes_sent)
        member.reduce_scatter(np.full((2, 4, 3), value), bounds, 2)
        counts.append(member.bytes_sent)
        member.barrier()
        counts.append(member.bytes_sent)
        return counts

    for rank, counts in enumerate(each(gang, work)):
        summed = 10 * item * (size - 1)
        scattered = 0 if rank == 0 else 2 * 4 * 2 * item
        assert counts == [0, summed, summed + scattered, summed + scattered]


@random_cases
@given(data=st.data(), n_channels=st.integers(1, 5), wide=st.sampled_from([2**20, 2**31, 2**40]), seed=seeds)
def test_only_the_used_channels_are_reduced(
    gang: Gang, data: st.DataObject, n_channels: int, wide: int, seed: int
) -> None:
    """Each member decides by itself whether its values are narrow: one may be and another not."""
    n_used = data.draw(st.integers(1, n_channels))
    parts = random_integers(gang, (2, 9, n_channels), seed, wide)
    parts[0] >>= 12
    bounds = np.linspace(0, 9, len(gang) + 1).astype(np.int64)
    expected = np.sum(parts, axis=0)[:, :, :n_used]
    for rank, total in enumerate(each(gang, lambda member: member.reduce_scatter(parts[member.rank], bounds, n_used))):
        assert_array_equal(total, expected[:, bounds[rank] : bounds[rank + 1]])
