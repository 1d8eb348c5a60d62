"""Bins, thresholds, samples and fingerprints against their naive twins."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from boost_core import binning, sample_cells, tile
from tests import reference

INF, TINY = math.inf, 5e-324
cases = settings(max_examples=60, deadline=None, derandomize=True, database=None, print_blob=True)
floats = st.floats(allow_nan=False, width=64)
few = st.sampled_from([-INF, -1.5, -0.0, 0.0, 1.0, 2.0**-1074, 1e300, INF, math.nan])
columns = st.one_of(
    arrays.arrays(np.float64, st.integers(0, 40), elements=few),
    arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(width=64)),
)


@cases
@given(columns)
def test_distinct_values(column: np.ndarray):
    wanted, missing = reference.distinct_values(column)
    got, got_missing = binning.distinct_values(column, 255)
    assert got.tolist() == wanted
    assert got_missing is missing
    assert not np.signbit(got[got == 0]).any()  # -0.0 and 0.0 are one value, written one way


@pytest.mark.parametrize(("n_values", "limit"), [(3, 2), (4, 2), (300, 255), (5000, 255), (256, 255)])
def test_too_many_distinct_values_are_more_than_the_limit(n_values: int, limit: int):
    column = np.random.default_rng(n_values).permutation(np.arange(n_values) * 0.37)
    got, missing = binning.distinct_values(np.append(column, np.nan), limit)
    assert len(got) > limit
    assert missing


def test_as_many_distinct_values_as_the_limit_are_exact():
    column = np.random.default_rng(0).permutation(np.repeat(np.arange(255) * 0.37, 3))
    got, missing = binning.distinct_values(column, 255)
    assert got.tolist() == sorted(set(column.tolist()))
    assert not missing


@pytest.mark.parametrize(
    ("low", "high", "threshold"),
    [
        (1.0, 2.0, 1.5),
        (-1.0, 1.0, 0.0),
        (0.0, 1.0, 0.5),
        (-INF, 0.0, 0.0),  # no finite midpoint: the right neighbour itself
        (0.0, INF, INF),
        (-INF, INF, INF),
        (1e308, 1.7e308, 1.35e308),  # the sum overflows, the midpoint does not
        (-1.7e308, 1.7e308, 0.0),
        (1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 2.0)),  # nothing lies between
        (math.nextafter(1.0, 0.0), 1.0, 1.0),
        (0.0, TINY, TINY),
        (-TINY, 0.0, 0.0),
        (TINY, 3 * TINY, 2 * TINY),
        (1.7976931348623155e308, 1.7976931348623157e308, 1.7976931348623157e308),
    ],
)
def test_midpoints_of_neighbours(low: float, high: float, threshold: float):
    [got] = binning.midpoints(np.array([low, high]))
    assert got == threshold
    assert got == reference.midpoint(low, high)


@cases
@given(st.lists(floats, min_size=2, max_size=20, unique_by=lambda x: x + 0.0))
def test_midpoints_separate_their_neighbours(values: list[float]):
    distinct = np.array(sorted(values))
    got = binning.midpoints(distinct)
    assert got.tolist() == reference.midpoints(distinct.tolist())
    assert (distinct[:-1] < got).all()
    assert (got <= distinct[1:]).all()


@cases
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_a_midpoint_is_the_exact_one_rounded(one: float, other: float):
    low, high = sorted((one, other))
    exact = float((Fraction(low) + Fraction(high)) / 2)
    far = abs(exact) > 1e-290  # below, halves are denormal and round themselves
    [got] = binning.midpoints(np.array([low, high]))
    if far and low < exact < high and abs(low) > 1e-290 and abs(high) > 1e-290:
        assert got == exact


def test_a_feature_of_one_or_no_value_has_no_threshold():
    assert binning.midpoints(np.array([3.0])).shape == (0,)
    assert binning.midpoints(np.empty(0)).shape == (0,)


@cases
@given(
    st.lists(st.integers(-20, 20).map(float), max_size=120),
    st.integers(2, 12),
)
def test_quantile_thresholds(sample: list[float], max_bins: int):
    got = binning.quantile_thresholds(np.array(sample, np.float64), max_bins)
    assert got.tolist() == reference.quantile_thresholds(sample, max_bins)
    assert len(got) <= max_bins - 1
    assert (np.diff(got) > 0).all()


@pytest.mark.parametrize("max_bins", [2, 16, 255])
def test_quantile_bins_hold_about_equal_mass(max_bins: int):
    sample = np.random.default_rng(5).lognormal(size=max_bins * 80)
    thresholds = binning.quantile_thresholds(sample, max_bins)
    masses = np.bincount(np.searchsorted(thresholds, sample, side="right"), minlength=max_bins)
    assert len(thresholds) == max_bins - 1
    assert abs(masses - 80).max() <= 1


def test_a_value_that_fills_many_ranks_takes_one_bin():
    sample = np.concatenate([np.full(900, 7.0), np.arange(100.0) + 100])
    thresholds = binning.quantile_thresholds(sample, 10)
    assert thresholds.tolist() == reference.quantile_thresholds(sample, 10)
    assert np.searchsorted(thresholds, 7.0, side="right") == 0
    assert thresholds[0] <= 100.0


def samples() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    normal, uniform = random.standard_normal(4_000), random.random(4_000)
    holes = np.where(uniform < 0.3, math.nan, normal)
    return {
        "normal": normal,
        "skewed": np.exp(1.5 * normal),
        "of two sizes": np.where(uniform < 0.5, normal, 1e6 * normal),
        "one value again and again": np.where(uniform < 0.6, -0.0, np.where(uniform < 0.7, 0.0, normal)),
        "equal ones": np.round(normal, 2),
        "missing": holes,
        "infinite": np.where(np.arange(4_000) % 51 == 1, INF * normal, holes),
        "few": normal[:300],
    }


@pytest.mark.parametrize("max_bins", [2, 7, 255])
@pytest.mark.parametrize("name", [*samples()])
def test_quantiles_without_sorting_all_are_the_same(name: str, max_bins: int):
    sample = samples()[name]
    given = sample.copy()
    got = sample_cells.thresholds_by_cells(given, max_bins)
    if max_bins < 255:
        assert got is not None
    if got is not None:
        assert got.tobytes() == binning.quantiles_of(binning.tally_of(sample), max_bins).tobytes()
    assert given.tobytes() == sample.tobytes()


@pytest.mark.parametrize(
    "sample",
    [
        np.empty(0),
        np.full(2_000, 3.0),
        np.full(2_000, math.nan),
        np.append(np.arange(1_000.0), np.full(1_000, -INF)),
        np.arange(2_000.0) % 255,  # as many values as bins
        np.append(np.arange(1_999) * 1e-6, 1e9),  # all but one in one cell
        np.array([-1.7e308, 1.7e308] * 300),
    ],
    ids=["none", "one", "missing", "infinite", "few", "one far away", "too far apart"],
)
def test_other_samples_are_sorted(sample: np.ndarray):
    assert sample_cells.thresholds_by_cells(sample, 255) is None
    wanted = binning.quantiles_of(binning.tally_of(sample), 255)
    assert binning.quantile_thresholds(sample, 255).tolist() == wanted.tolist()


@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0])
def test_what_stands_in_place_of_a_missing_value_is_not_looked_at(type_: type, spread: float):
    random = np.random.default_rng(1)
    column = np.exp(spread * random.normal(size=3_000)).astype(type_)
    thresholds = binning.quantile_thresholds(column.astype(np.float64), 255)
    wanted = np.searchsorted(thresholds, column.astype(np.float64), side="right")
    valid, codes = np.arange(3_000) % 7 > 0, np.empty(3_000, np.uint8)
    column[~valid] = random.choice([INF, -INF, math.nan, 0.0, 1.0], int((~valid).sum()))
    assert tile.tile_binner(None, thresholds)(tile.Tile(column, valid), codes)
    assert codes.tolist() == np.where(valid, wanted, len(thresholds) + 1).tolist()
    assert not tile.tile_binner(None, thresholds)(tile.Tile(column[valid]), codes[: valid.sum()])


@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
def test_sampled_floats(type_: type, missing: bool):
    values, places = np.arange(100).astype(type_), np.array([0, 3, 4, 99]) + 1_000
    valid = np.arange(100) % 3 > 0 if missing else None
    found = np.empty(4)
    tile.sample_floats(tile.Tile(values, valid), places, 1_000, found)
    assert found.tolist() == pytest.approx([math.nan, math.nan, 4, math.nan] if missing else [0, 3, 4, 99], nan_ok=True)


@cases
@given(columns, st.lists(floats, max_size=12, unique_by=lambda x: x + 0.0))
def test_bin_column(column: np.ndarray, thresholds: list[float]):
    ordered = np.array(sorted(thresholds), np.float64)
    codes = np.empty(len(column), np.uint8)
    binning.bin_column(column, ordered, codes)
    assert codes.tolist() == [reference.bin_code(value, ordered.tolist()) for value in column.tolist()]


def test_bin_column_with_most_thresholds():
    thresholds = np.arange(254) - 100.0
    column = np.array([-INF, -100.5, -100.0, -99.75, 0.0, 152.5, 153.0, INF, math.nan])
    codes = np.empty(len(column), np.uint8)
    binning.bin_column(column, thresholds, codes)
    assert codes.tolist() == [0, 0, 1, 1, 101, 253, 254, 254, 255]


@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize(
    "thresholds",
    [[], [1.0], [INF], [-INF, INF], [-INF, 1.0, INF], [1.0, 1.0 + 2**-20], [TINY, 2 * TINY], [-1.7e308, 1.7e308]],
)
def test_infinity_is_no_missing_value_where_equal_cells_have_no_size(type_: type, thresholds: list[float]):
    with np.errstate(over="ignore"):
        column = np.array([-INF, -1.7e308, -0.0, TINY, 1.0, 1.0 + 2**-20, 1.7e308, INF], type_)
    codes, wanted = np.empty(9, np.uint8), np.searchsorted(thresholds, column.astype(np.float64), side="right").tolist()
    assert not binning.bin_column(column, np.array(thresholds), codes[:8])
    assert codes[:8].tolist() == wanted
    assert binning.bin_column(np.append(column, type_(math.nan)), np.array(thresholds), codes)
    assert codes.tolist() == [*wanted, len(thresholds) + 1]


@pytest.mark.parametrize("spread", [0.0, 3.0, 40.0])
def test_bins_of_skewed_values(spread: float):
    """The grid by exponent, the grid of equal cells, and a search among thresholds that share a cell."""
    random = np.random.default_rng(int(spread))
    column = np.exp(spread * random.normal(size=2_000)) * random.choice([1.0, -1.0], 2_000) ** (spread > 30)
    thresholds = binning.quantile_thresholds(column, 255)
    column[:4] = [INF, -INF, math.nan, -0.0]
    codes = np.empty(len(column), np.uint8)
    assert binning.bin_column(column, thresholds, codes)
    wanted = np.where(np.isnan(column), len(thresholds) + 1, np.searchsorted(thresholds, column, side="right"))
    assert codes.tolist() == wanted.tolist()


@pytest.mark.parametrize("type_", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_tiles_of_any_type_are_like_their_floats(type_: str, wide: bool, missing: bool):
    random, limits = np.random.default_rng(0), np.iinfo(type_ if type_[0] != "f" else "i2")
    high = int(limits.max) if wide else min(int(limits.max), 2**53)
    low = int(limits.min) if wide else high - 90
    column = random.integers(low, high, 400, dtype=np.uint64 if type_ == "u8" else np.int64, endpoint=True)
    column = column.astype(type_)
    valid = random.random(400) < 0.7 if missing else None
    given, floats = tile.Tile(column, valid), column.astype(np.float64)
    if valid is not None:
        floats[~valid] = math.nan
    window = tile.window_of([given.rows(0, 150), given.rows(150, 400)])
    assert (window is None) == (type_[0] == "f" or (wide and type_[1] != "1"))

    wanted, _ = reference.distinct_values(floats)
    distinct = binning.Distinct(255)
    tile.add_tile(distinct, given)
    assert distinct.values().tolist() == wanted if len(wanted) <= 255 else distinct.crowded
    if window is not None:
        seen = np.zeros(window.size, np.bool_)
        assert not window.mark(given, len(wanted), seen)
        assert window.numbers(np.flatnonzero(seen)).tolist() == wanted
        assert window.mark(given, len(wanted) - 1, seen)
        tally = window.tally([given.rows(0, 151), given.rows(151, 400)], np.split(np.arange(400), [151]), [0, 151])
        assert tally.values.tolist() == wanted
        assert tally.counts.tolist() == [int((floats == value).sum()) for value in wanted]

    thresholds = binning.quantile_thresholds(floats, 40)
    codes, expected = np.empty(400, np.uint8), np.empty(400, np.uint8)
    assert tile.tile_binner(window, thresholds)(given, codes) == missing
    binning.bin_column(floats, thresholds, expected)
    assert codes.tolist() == expected.tolist()
    assert column.flags.writeable


@pytest.mark.parametrize("spread", [3, tile.FEW_NUMBERS, tile.FEW_NUMBERS + 1, 4000])
@pytest.mark.parametrize("missing", [False, True])
def test_some_rows_of_each_tile_are_counted(spread: int, missing: bool):
    random = np.random.default_rng(spread)
    numbers = np.append(random.integers(7, 7 + spread, 998), [7, 6 + spread]).astype(np.int32)
    valid = random.random(1000) < 0.8 if missing else None
    whole, rows = tile.Tile(numbers, valid), np.flatnonzero(random.random(1000) < 0.5)
    tiles, places = [whole.rows(0, 333), whole.rows(333, 1000)], [rows[rows < 333], rows[rows >= 333]]
    window = tile.window_of(tiles)
    assert window is not None
    assert window.size == spread
    tally = window.tally(tiles, places, [0, 333])
    used = rows if valid is None else rows[valid[rows]]
    values, counts = np.unique(numbers[used], return_counts=True)
    assert tally.values.tolist() == values.tolist()
    assert tally.counts.tolist() == counts.tolist()


def test_numbers_are_close_together_by_what_a_table_may_cost():
    def window_of(n_rows: int, highest: int) -> tile.Window | None:
        return tile.window_of([tile.Tile(np.append(np.zeros(n_rows - 1, np.int32), np.int32(highest)))])

    assert window_of(10, 4095) == tile.Window(np.dtype(np.int32), 0, 4096)
    assert window_of(10, 4096) is None
    assert window_of(20_000, 9_999) == tile.Window(np.dtype(np.int32), 0, 10_000)
    assert window_of(20_000, 10_000) is None
    assert window_of(200_000, 65_535) == tile.Window(np.dtype(np.int32), 0, 65_536)
    assert window_of(200_000, 65_536) is None
    # some of these are one float
    assert tile.window_of([tile.Tile(np.array([2**53 - 1, 2**53 + 1]))]) is None
    assert tile.window_of([tile.Tile(np.array([-(2**53) - 1, 1 - 2**53]))]) is None


@cases
@given(st.lists(st.lists(st.integers(-9, 9).map(float), max_size=30), min_size=1, max_size=4))
def test_tallies_of_parts_are_that_of_the_whole(parts: list[list[float]]):
    whole = binning.tally_of(np.array([x for part in parts for x in part], np.float64))
    found = binning.merged([binning.tally_of(np.array(part, np.float64)) for part in parts])
    assert found.values.tolist() == whole.values.tolist()
    assert found.counts.tolist() == whole.counts.tolist()
    assert whole.n == sum(map(len, parts))


def test_bins_start_where_the_last_feature_ended():
    made = binning.make_binning([np.arange(3.0), np.empty(0), np.arange(2.0)], [True, False, False])
    assert made.n_features == 3
    assert made.n_thresholds.tolist() == [3, 0, 2]
    assert made.bin_start.tolist() == [0, 5, 6, 9]
    assert made.of_feature(0).tolist() == [0.0, 1.0, 2.0]
    assert made.of_feature(1).tolist() == []
    assert made.of_feature(2).tolist() == [0.0, 1.0]


# --- samples and fingerprints -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "n_features", "seed"), [(900, 3, 0), (1_021, 1 << 24, 7), (3_000, 1 << 20, 2**63 - 1)]
)
def test_sample_is_its_twin(n_rows: int, n_features: int, seed: int):
    numbers = np.arange(n_rows, dtype=np.int64)
    got = binning.sample_rows(numbers, n_rows, n_features, seed)
    assert got.dtype == np.int64
    assert got.tolist() == [i for i in range(n_rows) if reference.in_sample(i, n_rows, n_features, seed)]


def test_sample_does_not_depend_on_the_split():
    n_rows = 2_500
    whole = binning.sample_rows(np.arange(n_rows, dtype=np.int64), n_rows, 1 << 25, 3)
    pieces = np.split(np.random.default_rng(0).permutation(n_rows).astype(np.int64), [10, 10, 1_500])
    for piece in pieces:
        found = binning.sample_rows(piece, n_rows, 1 << 25, 3, first=70)
        assert found.tolist() == [70 + place for place, row in enumerate(piece) if row in set(whole.tolist())]
    assert 0 < len(whole) < n_rows


def test_all_of_few_rows_are_in_the_sample():
    assert binning.sample_rows(np.array([5, 9, 11]), 4 * binning.MAX_BINS, 1 << 25, 3, first=7).tolist() == [7, 8, 9]


def test_sample_has_about_the_wanted_size_and_follows_the_seed():
    n_rows, wanted = 8_000, 4 * binning.MAX_BINS
    numbers = np.arange(n_rows, dtype=np.int64)
    first, second = (binning.sample_rows(numbers, n_rows, 1 << 25, seed) for seed in (0, 1))
    deviation = 5 * math.sqrt(wanted)
    assert abs(len(first) - wanted) < deviation
    assert abs(len(second) - wanted) < deviation
    assert first.tolist() != second.tolist()


def random_rows(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    n_rows, n_features = int(random.integers(1, 40)), int(random.integers(0, 5))
    codes = random.integers(0, 256, (n_features, n_rows)).astype(np.uint8)
    labels = random.integers(0, 1000, n_rows).astype(np.int32)
    return codes, labels, np.sort(random.choice(1 << 40, n_rows, replace=False)).astype(np.int64)


@pytest.mark.parametrize("seed", range(6))
def test_fingerprint_is_its_twin_and_adds_up_over_any_split(seed: int):
    codes, labels, numbers = random_rows(seed)
    whole = binning.fingerprint(codes, labels, numbers)
    assert whole == reference.fingerprint(codes.T.tolist(), labels.tolist(), numbers.tolist())
    order = np.random.default_rng(seed).permutation(len(labels))
    parts = [
        binning.fingerprint(np.ascontiguousarray(codes[:, rows]), labels[rows], numbers[rows])
        for rows in np.array_split(order, 3)
    ]
    assert sum(parts) % 2**64 == whole


def test_fingerprint_sees_every_change():
    codes, labels, numbers = random_rows(1)
    codes = np.concatenate([codes, codes[:1] if len(codes) else np.zeros((1, len(labels)), np.uint8)])
    whole = binning.fingerprint(codes, labels, numbers)
    other_codes, other_labels, other_numbers = codes.copy(), labels.copy(), numbers.copy()
    other_codes[0, 0] ^= 1
    other_labels[0] ^= 1
    other_numbers[-1] += 1
    assert binning.fingerprint(other_codes, labels, numbers) != whole
    assert binning.fingerprint(codes, other_labels, numbers) != whole
    assert binning.fingerprint(codes, labels, other_numbers) != whole
    assert binning.fingerprint(codes[:, :0], labels[:0], numbers[:0]) == 0
