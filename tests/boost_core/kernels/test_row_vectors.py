"""Vector instructions over rows against NumPy, at every length around the vectors' and at the ends of an array."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.intrinsics import fused
from boost_core.jit import kernel
from boost_core.row_vectors import (
    EXCESS,
    add_row,
    add_row_watched,
    count_at_least,
    greatest_excess,
    scan_bins,
)

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 26, 40]
KINDS = [np.int32, np.int64]


@kernel
def _add(values, at, added, first, n):  # type: ignore[no-untyped-def]
    add_row(values, at, added, first, n)


@kernel
def _count(values, at, n, bound):  # type: ignore[no-untyped-def]
    return count_at_least(values, at, n, bound)


@kernel
def _watched(values, at, added, first, n, own, greatest, lowest):  # type: ignore[no-untyped-def]
    return add_row_watched(values, at, added, first, n, own, greatest, lowest)


@kernel
def _scan(apart, hist, at, n, n_bins, floors, excess):  # type: ignore[no-untyped-def]
    scan_bins(apart, hist, at, n, n_bins, floors, excess)


@kernel
def _greatest(excess, n_bins):  # type: ignore[no-untyped-def]
    return greatest_excess(excess, n_bins)


@kernel
def _fused(a, b, c):  # type: ignore[no-untyped-def]
    return fused(a, b, c)


@pytest.mark.parametrize("n_bins", [0, 4, 8, 252])
def test_the_greatest_excess_of_all_bins_in_any_place(n_bins: int) -> None:
    for at in range(n_bins + 3):  # what lies behind them does not count
        excess = np.random.default_rng(at).integers(0, 1 << 55, (n_bins + 3, EXCESS))
        excess[at, at % EXCESS] += 1 << 58
        assert _greatest(excess.reshape(-1), n_bins) == excess[:n_bins].sum(axis=1).max(initial=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_row_is_added_and_its_neighbours_stay(kind: type[np.signedinteger], n: int) -> None:
    rng = np.random.default_rng(n)
    values, added = (rng.integers(-(2**30), 2**30, 3 * n).astype(kind) for _ in range(2))
    for at in (0, n, 2 * n):
        wanted = values.copy()
        wanted[at : at + n] += added[n : 2 * n]
        _add(values, at, added, n, n)
        assert (values == wanted).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_numbers_at_least_a_bound(kind: type[np.signedinteger], n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(-3, 4, 3 * n).astype(kind)
    values[::3] = np.iinfo(kind).min
    for at in (0, n, 2 * n):
        for bound in (np.iinfo(kind).min, -1, 0, 3, np.iinfo(kind).max):
            assert _count(values, at, n, kind(bound)) == (values[at : at + n] >= bound).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_row_is_watched_while_it_is_added(kind: type[np.signedinteger], n: int) -> None:
    rng = np.random.default_rng(n)
    for own in {0, n // 2, n - 1}:
        values, added = (rng.integers(-3, 4, 3 * n).astype(kind) for _ in range(2))
        greatest = rng.integers(-3, 4, n + 1).astype(kind)
        wanted, tops = values.copy(), greatest.copy()
        wanted[n : 2 * n] += added[2 * n :]
        row, others = wanted[n : 2 * n], np.arange(n) != own
        tops[:n][others] = np.maximum(tops[:n], row)[others]
        lowest = np.iinfo(kind).min
        assert _watched(values, n, added, 2 * n, n, own, greatest, kind(lowest)) == (row[others] >= row[own]).any()
        assert (values == wanted).all()
        assert (greatest == tops).all()


@pytest.mark.parametrize("n_bins", [0, 1, 2, 9])
@pytest.mark.parametrize("n", LENGTHS)
def test_what_two_sides_are_worth_as_bins_move_left(n: int, n_bins: int) -> None:
    rng = np.random.default_rng(n)
    bins = rng.integers(-(2**50), 2**50, (n_bins + 1, n))
    bins[:, 0] = [2**61, *[0] * n_bins]
    sums, left = bins.sum(axis=0), bins.cumsum(axis=0)[:n_bins]
    sums[0] = -(2**61)
    apart, hist = -sums, np.concatenate([[7, -7], bins.reshape(-1)])
    for floors, worth in (
        (abs(sums), abs(left) + abs(sums - left)),  # leaves that vote for themselves
        (np.zeros(n, np.int64), abs(sums - 2 * left)),  # leaves that vote opposite ways
    ):
        excess = np.arange(EXCESS * n_bins + 1)
        _scan(apart, hist, 2, n, n_bins, floors, excess)
        found = excess[:-1].reshape(n_bins, EXCESS).sum(axis=1)
        assert (found + floors.sum()).tolist() == worth.sum(axis=1).tolist()
        assert excess[-1] == EXCESS * n_bins
        assert (apart == -sums).all()


doubles = st.floats(-(2.0**60), 2.0**60, allow_subnormal=False)


@given(doubles, doubles, doubles)
def test_fused_rounds_once(a: float, b: float, c: float) -> None:
    assert _fused(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))
