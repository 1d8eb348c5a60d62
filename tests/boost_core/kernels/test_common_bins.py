"""Rows that are in the commonest bins left out, against all of them added, on random shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.common_bins import BLOCK_SUMS, SAMPLED, CommonBins, add_uncommon
from boost_core.histogram import TILE_CHANNELS, add_rows
from boost_core.intrinsics import lanes_for, width_for
from tests.builders import BinnedCodes, random_codes
from tests.calling import called

SIZES = [(9, False), (200, True), (1, False), (0, True), (30, False), (3, False), (1, True), (250, False), (5, True)]


def table(n_rows: int, share: float, seed: int = 0) -> BinnedCodes:
    """Of each feature a share of the cells has its greatest code, which is 255 in the last one."""
    random = np.random.default_rng(seed)
    case = random_codes(random, n_rows, [*SIZES, (254, True)])
    usual = (np.diff(case.binning.bin_start) - 1)[:, None]
    codes = np.where(random.random(case.codes.shape) < share, usual, case.codes).astype(np.uint8)
    return BinnedCodes(case.binning, codes)


@pytest.mark.parametrize("share", [0.0, 0.9, 1.0])
@pytest.mark.parametrize(
    ("n_rows", "n_sums", "gain_type"), [(0, 11, np.int32), (1, 11, np.int32), (90, 10, np.int32), (50, 4, np.int64)]
)
def test_sums_are_those_of_all_rows(n_rows: int, n_sums: int, share: float, gain_type: type):
    """Whatever was there before is gone, and features that are in no four keep theirs."""
    random = np.random.default_rng(n_sums)
    case, width, lanes = table(n_rows, share), width_for(n_sums), lanes_for(n_sums)
    pitch = width + 2  # more gains in a row than are summed up
    gains = random.integers(-(1 << 30), 1 << 30, n_rows * pitch).astype(gain_type)
    rows = np.flatnonzero(random.random(n_rows) < 0.7).astype(np.int32)
    starts, fours = case.binning.bin_start, np.array([[0, 1, 2, 4], [5, 7, 8, 9]])
    expected, found = (np.full(starts[-1] * width, 7, np.int64) for _ in range(2))
    add_rows(case.codes, rows, (gains, pitch), starts, fours.reshape(-1), lanes, expected, True)
    called(add_uncommon)(case.codes, rows, (gains, pitch), starts, fours, CommonBins(case.codes).common, lanes, found)
    assert found.tolist() == expected.tolist()


def test_many_rows_and_fours_in_tiles_and_blocks():
    """More rows than a tile holds, more sums than a block: as of all rows."""
    case, width, lanes = table(3 * TILE_CHANNELS // 12 + 5, 0.8), width_for(11), lanes_for(11)
    assert case.binning.bin_start[-1] * width < BLOCK_SUMS
    codes = np.tile(case.codes, (12, 1))
    sizes = np.tile(np.diff(case.binning.bin_start), 12)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    assert starts[-1] * width > 2 * BLOCK_SUMS
    gains = np.random.default_rng(1).integers(-(1 << 30), 1 << 30, codes.shape[1] * width).astype(np.int32)
    rows, features = np.arange(codes.shape[1], dtype=np.int32), np.arange(len(codes))
    expected, found = (np.empty(starts[-1] * width, np.int64) for _ in range(2))
    add_rows(codes, rows, (gains, width), starts, features, lanes, expected, True)
    called(add_uncommon)(
        codes, rows, (gains, width), starts, features.reshape(-1, 4), CommonBins(codes).common, lanes, found
    )
    assert (found == expected).all()


@given(share=st.floats(0, 1), n_rows=st.integers(0, 3 * SAMPLED), seed=st.integers(0, 99))
def test_every_feature_is_in_a_four_or_left(share: float, n_rows: int, seed: int):
    case = table(n_rows, share, seed)
    offered = np.flatnonzero(np.random.default_rng(seed).random(len(case.codes)) < 0.8)
    fours, left = CommonBins(case.codes).fours(offered)
    assert sorted([*fours.reshape(-1).tolist(), *left.tolist()]) == offered.tolist()
    assert left.tolist() == sorted(left.tolist())
    assert (np.diff(fours, axis=1) > 0).all()


def test_fours_are_those_of_which_few_rows_are_added():
    """A four's rows count that are in another bin in any feature: many if these are independent, few if they go
    together."""
    random = np.random.default_rng(0)
    codes = random.integers(1, 9, (14, 40 * SAMPLED)).astype(np.uint8)
    codes[0:4, random.random(codes.shape[1]) < 0.6] = 0  # 40 % are added
    codes[4:8][random.random((4, codes.shape[1])) < 0.6] = 0  # 87 %
    codes[8:12][random.random((4, codes.shape[1])) < 0.9] = 0  # 34 %
    made = CommonBins(codes)
    assert made.common[:12].tolist() == [0] * 12
    fours, left = made.fours(np.arange(14))
    assert fours.tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert left.tolist() == [4, 5, 6, 7, 12, 13]
    fours, left = made.fours(np.array([0, 1, 8, 9, 10]))
    assert (fours.tolist(), left.tolist()) == ([[0, 1, 8, 9]], [10])
