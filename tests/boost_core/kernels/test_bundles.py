"""Features counted together against each by itself, on random shapes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core import bundles
from boost_core.bundles import MOST_JOINT, add_columns, bundles_of, make_bundles, neighbours
from boost_core.cut import Offer
from boost_core.histogram import add_rows
from boost_core.intrinsics import lanes_for, width_for
from boost_core.jit import kernel
from tests.builders import BinnedCodes, gain_matrix_of, random_codes


@kernel
def add_some_columns(bins, rows, gains, bin_start, parts, bundles, lanes, totals):
    """bundles.add_columns, callable from Python."""
    add_columns(bins, rows, gains, bin_start, parts, bundles, lanes, totals)


SIZES = st.lists(st.integers(2, 300), min_size=1, max_size=30)


@given(sizes=SIZES, seed=st.integers(0, 99))
def test_neighbours_are_bundled_as_long_as_they_fit_a_byte(sizes: list[int], seed: int):
    offered = np.flatnonzero(np.random.default_rng(seed).random(len(sizes)) < 0.8)
    groups = neighbours(np.array(sizes), offered)
    for group in groups:
        assert len(group) > 1
        assert np.prod([sizes[j] for j in group]) <= MOST_JOINT
    together = [j for group in groups for j in group]
    assert together == sorted(set(together))
    assert set(together) <= set(offered.tolist())
    place = {j: number for number, j in enumerate(offered.tolist())}
    assert all(place[b] == place[a] + 1 for group in groups for a, b in itertools.pairwise(group))
    for a, b in itertools.pairwise(offered):  # no two that lie apart would have fitted
        alone = not {int(a), int(b)} & set(together)
        assert not alone or sizes[a] * sizes[b] > MOST_JOINT


def codes_of(sizes: list[tuple[int, bool]], n_rows: int, seed: int = 0) -> BinnedCodes:
    return random_codes(np.random.default_rng(seed), n_rows, sizes)


@pytest.mark.parametrize(("n_channels", "n_sums"), [(1, 2), (3, 4), (4, 4), (7, 8), (10, 10), (10, 11), (26, 27)])
@pytest.mark.parametrize("n_rows", [0, 1, 50])
def test_sums_are_those_of_each_feature_by_itself(n_channels: int, n_sums: int, n_rows: int):
    random = np.random.default_rng(n_channels)
    case = codes_of([(1, False), (2, True), (60, False), (1, True), (200, False), (0, True), (3, False)], n_rows)
    matrix = gain_matrix_of(random.integers(-(1 << 30), 1 << 30, (n_rows, n_channels)))
    rows = np.flatnonzero(random.random(n_rows) < 0.7).astype(np.int32)
    features = np.arange(7)
    made = make_bundles(case.codes, Offer(features, case.binning.bin_start))._replace(worth=0)
    assert [group.tolist() for group in np.split(made.features, made.first[1:-1])] == [[0, 1], [2, 3], [5, 6]]
    flat, width, lanes = matrix.flat, width_for(n_sums), lanes_for(n_sums)
    starts = case.binning.bin_start
    expected, found = (np.zeros(starts[-1] * width, np.int64) for _ in range(2))
    joint = np.zeros(made.start[-1] * width, np.int64)
    add_rows(case.codes, rows, flat, starts, features, lanes, expected, False)
    found[:] = -1
    for some, singles, span in (([0, 1], [], (0, 1)), ([2, 3, 4, 5, 6], [4], (1, 3))):
        parts = np.array(some, np.int64), np.array(singles, np.int64), span, joint
        add_some_columns(case.codes, rows, flat, starts, parts, made, lanes, found)
    assert found.tolist() == expected.tolist()
    assert not joint.any()


def test_columns_say_where_features_singles_and_bundles_begin():
    case = codes_of([(1, False), (1, False), (200, False), (0, False), (3, False), (3, False), (3, False)], 9)
    made = make_bundles(case.codes, Offer.of(case.binning))
    # {0, 1}, 2 and {4, 5, 6}; feature 3 has no cuts
    assert made.columns(np.array([0, 1, 2, 4, 5, 6])).tolist() == [[0, 0, 0], [2, 0, 1], [3, 1, 1], [6, 1, 2]]
    none = bundles_of([], case.codes, np.diff(case.binning.bin_start))
    assert none.columns(np.array([2, 4])).tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 0]]
    assert none.columns(np.empty(0, np.int64)).tolist() == [[0, 0, 0]]


def test_where_memory_is_short_the_largest_bundles_are_made(monkeypatch: pytest.MonkeyPatch):
    case = codes_of([(1, False), (100, False), (1, False), (1, False), (1, False), (200, False), (9, False)], 10)
    groups = [[0, 1], [2, 3, 4]]
    assert neighbours(np.diff(case.binning.bin_start), np.arange(7)) == groups
    monkeypatch.setattr(bundles, "CODE_BYTES", 19)  # of 10 rows: one bundle
    assert make_bundles(case.codes, Offer.of(case.binning)).features.tolist() == groups[1]
    monkeypatch.setattr(bundles, "CODE_BYTES", 9)
    assert make_bundles(case.codes, Offer.of(case.binning)).codes.shape == (0, 10)


def test_bundles_of_many_rows_a_joint_bin_are_worth_it_sooner():
    flags, tens = codes_of([(1, False)] * 8, 4_000), codes_of([(9, False)] * 2, 4_000)
    worth = [make_bundles(case.codes, Offer.of(case.binning)).worth for case in (flags, tens)]
    assert worth == [5 * 256 * 8 // 7, 5 * 100 * 2 // 1]  # all joint bins are filled
