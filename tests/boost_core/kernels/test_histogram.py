"""Histograms and channel sums against plain loops, on random shapes."""

import numpy as np
import pytest

from boost_core.gain_matrix import channel_sums
from boost_core.histogram import BLOCK_SUMS, NEAR, HistogramBuilder, add_rows
from boost_core.intrinsics import lanes_for, width_for
from boost_core.team import Team
from tests import reference
from tests.builders import BinnedCodes, gain_matrix_of, random_codes

CHANNELS = [1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 17, 26]
GREATEST = 1 << 30


def random_case(seed: int, n_channels: int) -> tuple[BinnedCodes, np.ndarray, np.random.Generator]:
    random = np.random.default_rng(seed)
    n_rows, n_features = int(random.integers(0, 70)), int(random.integers(1, 5))
    sizes = [(int(random.integers(0, 9)), bool(random.integers(2))) for _ in range(n_features)]
    gains = random.integers(-GREATEST, GREATEST + 1, (n_rows, n_channels))
    return random_codes(random, n_rows, sizes), gains, random


def flat_twin(case: BinnedCodes, gains: np.ndarray, rows: list[int]) -> list[list[int]]:
    """The naive histogram with all features' bins one after another."""
    if not rows:
        return [[0] * (gains.shape[1] + 1)] * int(case.binning.bin_start[-1])
    n_bins = np.diff(case.binning.bin_start).tolist()
    by_feature = reference.histogram(case.codes.T.tolist(), gains.tolist(), rows, n_bins)
    return [channels for feature in by_feature for channels in feature]


def test_rows_are_filled_up_where_it_costs_little_memory():
    widths = {n: width_for(n) for n in range(1, 70)}
    assert [widths[n] for n in (2, 3, 8, 9, 10, 11, 27)] == [2, 4, 8, 9, 10, 12, 28]
    for n, width in widths.items():
        assert n <= width < n + 4
        assert width == n or width % 4 == 0
        assert width == n or n % 4 == 3 or width <= 1.1 * n
        assert width_for(width) == width  # kernels are told the lanes by the width


@pytest.mark.parametrize("n_channels", CHANNELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_histogram_of_all_and_of_some_rows(seed: int, n_channels: int):
    case, gains, random = random_case(seed, n_channels)
    matrix = gain_matrix_of(gains)
    chosen = np.flatnonzero(random.random(len(gains)) < 0.5).astype(np.int32)
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        whole, some = builder.empty(2, matrix.values.shape[1])
        builder.add(matrix, None, whole)
        builder.add(matrix, chosen, some)
    used = n_channels + 1
    assert whole[:, :used].tolist() == flat_twin(case, gains, list(range(len(gains))))
    assert some[:, :used].tolist() == flat_twin(case, gains, chosen.tolist())
    assert not whole[:, used:].any()


def test_rows_in_any_order_and_in_parts_give_the_same_sums():
    case, gains, random = random_case(3, 5)
    matrix = gain_matrix_of(gains)
    order = random.permutation(len(gains)).astype(np.int32)
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        whole, parts = builder.empty(2, matrix.values.shape[1])
        builder.add(matrix, None, whole)
        for part in np.array_split(order, 4):
            builder.add(matrix, np.ascontiguousarray(part), parts)
    assert (whole == parts).all()


def test_the_sibling_is_the_difference():
    case, gains, random = random_case(4, 3)
    matrix = gain_matrix_of(gains)
    left = random.random(len(gains)) < 0.4
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        whole, one, other = builder.empty(3, matrix.values.shape[1])
        builder.add(matrix, None, whole)
        builder.add(matrix, np.flatnonzero(left).astype(np.int32), one)
        builder.add(matrix, np.flatnonzero(~left).astype(np.int32), other)
    assert (whole - one == other).all()


def test_arrays_that_come_back_are_zero_again():
    case, gains, _ = random_case(5, 2)
    matrix = gain_matrix_of(gains)
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        first = builder.empty(1, matrix.values.shape[1])
        builder.add(matrix, None, first[0])
        builder.give_back(first)
        again = builder.empty(1, matrix.values.shape[1])
    assert again.shape == first.shape
    assert not again.any()


@pytest.mark.parametrize("n_channels", CHANNELS)
def test_channel_sums(n_channels: int):
    _, gains, _ = random_case(n_channels, n_channels)
    with Team(1) as team:
        got = channel_sums(gain_matrix_of(gains), team)
    twin = reference.column_sums(gains.tolist(), range(len(gains)), n_channels)
    assert got.tolist() == [*twin, len(gains)]


def test_sums_beyond_int32_are_exact():
    gains = np.full((64, 1), GREATEST)
    case = BinnedCodes(random_codes(np.random.default_rng(0), 64, [(0, False)]).binning, np.zeros((1, 64), np.uint8))
    matrix = gain_matrix_of(gains)
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        [hist] = builder.empty(1, matrix.values.shape[1])
        builder.add(matrix, None, hist)
        assert channel_sums(matrix, team).tolist() == [64 << 30, 64]
    assert hist[0, 0] == 64 << 30


@pytest.mark.parametrize("n_features", [1, 4, 7, 21])
def test_blocks_of_features_hold_all_of_them(n_features: int):
    """More bins than a block takes; what is not listed stays, what was there before is added to or not."""
    random, n_channels = np.random.default_rng(n_features), 26
    case = random_codes(random, 30, [(254, False)] * n_features)
    gains = random.integers(-GREATEST, GREATEST + 1, (30, n_channels))
    matrix, lanes = gain_matrix_of(gains), lanes_for(n_channels + 1)
    totals = np.full((int(case.binning.bin_start[-1]), matrix.values.shape[1]), 5, np.int64)
    assert (totals.size > BLOCK_SUMS) == (n_features == 21)
    listed, rows = np.flatnonzero(np.arange(n_features) != 2), np.arange(30, dtype=np.int32)
    state = (case.codes, rows, matrix.flat, case.binning.bin_start, listed, lanes, totals.reshape(-1))
    expected = np.array(flat_twin(case, gains, list(range(30))))
    is_listed = np.repeat(np.isin(np.arange(n_features), listed), np.diff(case.binning.bin_start))
    for afresh, times in ((True, 1), (False, 2), (True, 1)):
        add_rows(*state, afresh)
        assert np.array_equal(totals[is_listed, : n_channels + 1], times * expected[is_listed])
        assert (totals[~is_listed] == 5).all()


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("n_channels", [6, 16])
@pytest.mark.parametrize("far", [False, True])
def test_passes_of_a_few_features_take_all_of_them(far: bool, n_channels: int, n_features: int):
    """Rows that are narrow or wide, gains that stay in the near caches or do not; several tiles of them."""
    random, n_padded = np.random.default_rng(n_features), width_for(n_channels + 1)
    n_rows = (NEAR if far else NEAR // 2) // n_padded + 100
    case = random_codes(random, n_rows, [(5, False)] * n_features)
    gains = random.integers(-GREATEST, GREATEST + 1, (n_rows, n_channels))
    matrix, rows = gain_matrix_of(gains), np.flatnonzero(random.random(n_rows) < 0.7).astype(np.int32)
    assert (matrix.values.size > NEAR) == far
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        [hist] = builder.empty(1, n_padded)
        builder.add(matrix, rows, hist)
    expected = np.zeros(hist.shape, np.int64)
    for codes, start in zip(case.codes, case.binning.bin_start, strict=False):
        np.add.at(expected, start + codes[rows].astype(np.int64), matrix.values[rows])
    assert np.array_equal(hist, expected)
