"""Vector instructions over rows against NumPy, at every length around the vectors' and at the ends of an array."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.intrinsics import fused
from boost_core.jit import kernel
from boost_core.row_vectors import add_row, add_row_watched, count_at_least, move_left, negate_row

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 26, 40]
KINDS = [np.int32, np.int64]


@kernel
def _add(values, at, added, first, n):  # type: ignore[no-untyped-def]
    add_row(values, at, added, first, n)


@kernel
def _count(values, at, n, bound):  # type: ignore[no-untyped-def]
    return count_at_least(values, at, n, bound)


@kernel
def _negate(into, at, values, first, n):  # type: ignore[no-untyped-def]
    return negate_row(into, at, values, first, n)


@kernel
def _watched(values, at, added, first, n, own, greatest):  # type: ignore[no-untyped-def]
    return add_row_watched(values, at, added, first, n, own, greatest)


@kernel
def _moved(apart, hist, at, n, floors):  # type: ignore[no-untyped-def]
    return move_left(apart, hist, at, n, floors)


@kernel
def _fused(a, b, c):  # type: ignore[no-untyped-def]
    return fused(a, b, c)


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
def test_a_row_is_negated_and_summed(kind: type[np.signedinteger], n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(0, 2**30, 3 * n, endpoint=True).astype(np.int32)
    values[-n:] = 2**30  # a sum beyond int32
    for at in (0, n, 2 * n):
        into = np.full(3 * n, 7, kind)
        wanted = into.copy()
        wanted[at : at + n] = -values[2 * n :]
        assert _negate(into, at, values, 2 * n, n) == n * 2**30
        assert (into == wanted).all()


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
        assert _watched(values, n, added, 2 * n, n, own, greatest) == (row[others] >= row[own]).any()
        assert (values == wanted).all()
        assert (greatest == tops).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_what_two_sides_are_worth_as_bins_move_left(n: int) -> None:
    rng = np.random.default_rng(n)
    sums, left = (rng.integers(-(2**50), 2**50, n) for _ in range(2))
    sums[0], left[0] = -(2**61), 2**61
    first = left // 3
    hist = np.concatenate([[7, -7], first, left - first, [5]])
    for floors, worth in (
        (abs(sums), lambda below: abs(below) + abs(sums - below)),  # leaves that vote for themselves
        (np.zeros(n, np.int64), lambda below: abs(sums - 2 * below)),  # leaves that vote opposite ways
    ):
        apart = np.concatenate([-sums, [3]])
        for at, below in ((2, first), (2 + n, left)):
            assert _moved(apart, hist, at, n, floors) == worth(below).sum()
            assert apart.tolist() == [*(2 * below - sums), 3]


doubles = st.floats(-(2.0**60), 2.0**60, allow_subnormal=False)


@given(doubles, doubles, doubles)
def test_fused_rounds_once(a: float, b: float, c: float) -> None:
    assert _fused(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))
