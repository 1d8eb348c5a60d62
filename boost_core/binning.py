"""From feature values to bins: exact thresholds where values are few, sampled quantiles elsewhere.

    value          NaN      x < t0     t0 <= x < t1   ...   x >= t[m-1]
    code           m + 1    0          1              ...   m               for the m thresholds of a feature

A cut at bin b sends codes 0..b left, so "x >= threshold[b] goes right". The code m + 1 means missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import make_grid
from boost_core.intrinsics import bits_of
from boost_core.jit import inner, kernel
from boost_core.sample_cells import between, thresholds_by_cells
from boost_core.team import Team

MAX_BINS = 255  # value bins; with the missing bin the codes fit uint8
SAMPLE_ROWS = 65_536  # about 257 rows a bin at 255 bins: quantiles within 6 % of a bin's mass
SAMPLE_CELLS = 1 << 25  # bounds the sample's memory (256 MB) where there are very many features
SLOTS = 1024  # of the table that counts distinct values: a power of two, at least 4 times MAX_BINS
HASH_TILE = 1024  # rows whose hashes are in work at a time: 8 KB

NUMBERED = 65_536  # rows whose numbers are made at a time

Floats = NDArray[np.float64]
NumbersOf = Callable[[int, int], NDArray[np.int64]]


@dataclass(frozen=True)
class Binning:
    """Thresholds of all features and which of them have missing values in the training rows.

    thresholds: float64, ascending within a feature; threshold_start: int64 [n_features + 1];
    has_missing: bool [n_features]. Histograms hold one bin a value bin and, if has_missing, one more.
    """

    thresholds: Floats
    threshold_start: NDArray[np.int64]
    has_missing: NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return int(self.has_missing.shape[0])

    @cached_property
    def n_thresholds(self) -> NDArray[np.int64]:
        """Thresholds of each feature, int64 [n_features]."""
        return np.diff(self.threshold_start)

    @cached_property
    def bin_start(self) -> NDArray[np.int64]:
        """First histogram bin of each feature, int64 [n_features + 1]."""
        sizes = self.n_thresholds + 1 + self.has_missing
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])

    def of_feature(self, feature: int) -> Floats:
        """Thresholds of one feature."""
        return self.thresholds[self.threshold_start[feature] : self.threshold_start[feature + 1]]


def make_binning(thresholds: Sequence[Floats], has_missing: Sequence[bool]) -> Binning:
    """Join the features' thresholds."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(t) for t in thresholds], dtype=np.int64)])
    flat = np.concatenate([np.empty(0), *thresholds])
    return Binning(flat, starts, np.array(has_missing, np.bool_))


@inner
def mix64(x):  # type: ignore[no-untyped-def]
    """Bijective 64-bit mixer (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _slot(value):  # type: ignore[no-untyped-def]
    """Where a value is looked for first among SLOTS: the upper bits of a product depend on all bits below them."""
    return np.int64((np.uint64(np.int64(bits_of(value))) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(54))


@kernel
def add_distinct(values, limit, table, count):  # type: ignore[no-untyped-def]
    """Add the distinct values of float64 `values` to an open-addressed table (IN, OUT; NaN = free) that holds `count`.

    Returns how many it holds then; the scan stops when they are more than `limit`. NaN is skipped.
    """
    for i in range(values.shape[0]):
        value = values[i] + 0.0  # -0.0 and 0.0 are one value
        slot = _slot(value)
        if table[slot] == value:
            continue
        if value != value:
            continue
        while table[slot] == table[slot] and table[slot] != value:
            slot = (slot + 1) & (SLOTS - 1)
        if table[slot] != value:
            table[slot] = value
            count += 1
            if count > limit:
                break
    return count


class Distinct:
    """Collects the distinct values of a column a part at a time, up to `limit` + 1 of them."""

    def __init__(self, limit: int) -> None:
        self._limit, self._table, self._count = limit, np.full(SLOTS, np.nan), 0

    def add(self, values: Floats) -> None:
        """float64 values; NaN is skipped."""
        with np.errstate(over="ignore"):  # the hash wraps around
            self._count = int(add_distinct(values, self._limit, self._table, self._count))

    @property
    def crowded(self) -> bool:
        """Whether there are more than `limit`: then nothing more need be added."""
        return self._count > self._limit

    def values(self) -> Floats:
        """Sorted; if there are too many, those that came first."""
        return np.sort(self._table[~np.isnan(self._table)])


def distinct_values(values: Floats, limit: int) -> tuple[Floats, bool]:
    """Sorted distinct values of a column, and whether it has missing ones.

    More than `limit` distinct values are reported by a result longer than `limit` (its values then mean nothing).
    """
    distinct = Distinct(limit)
    distinct.add(np.ascontiguousarray(values, np.float64))
    return distinct.values(), bool(np.isnan(values).any())


@dataclass(frozen=True)
class Tally:
    """Distinct values of a column in order, float64 without NaN, and how often each occurs, int64."""

    values: Floats
    counts: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Values in all."""
        return int(self.counts.sum())


@kernel
def _runs(ordered, values, counts):  # type: ignore[no-untyped-def]
    """values, counts (OUT, like ordered): of ascending values, NaN last, the distinct ones; returns how many."""
    found = 0
    for i in range(ordered.shape[0]):
        value = ordered[i] + 0.0  # -0.0 and 0.0 are one value
        if value != value:
            break
        if found > 0 and value == values[found - 1]:
            counts[found - 1] += 1
        else:
            values[found], counts[found] = value, 1
            found += 1
    return found


def tally_of(sample: Floats) -> Tally:
    """Of values in any order; NaN is left out."""
    ordered = np.sort(np.ascontiguousarray(sample, np.float64))
    values, counts = np.empty(len(ordered)), np.empty(len(ordered), np.int64)
    found = int(_runs(ordered, values, counts))
    return Tally(values[:found], counts[:found])


def merged(tallies: Sequence[Tally]) -> Tally:
    """Of all values that were counted."""
    if len(tallies) == 1:
        return tallies[0]
    values, place = np.unique(np.concatenate([each.values for each in tallies]), return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, np.concatenate([each.counts for each in tallies]))
    return Tally(values, counts)


@kernel
def fill_midpoints(distinct, middles):  # type: ignore[no-untyped-def]
    """middles (OUT): one less."""
    for i in range(middles.shape[0]):
        middles[i] = between(distinct[i], distinct[i + 1])


def midpoints(distinct: Floats) -> Floats:
    """A threshold between each two neighbours a < b: their midpoint if it is finite and above a, else b."""
    middles = np.empty(max(len(distinct) - 1, 0))
    with np.errstate(over="ignore", invalid="ignore"):
        fill_midpoints(distinct, middles)
    return middles


@kernel
def quantiles(values, counts, n, max_bins, thresholds):  # type: ignore[no-untyped-def]
    """thresholds (OUT, at least max_bins - 1): one before each distinct value that holds a target rank; returns how
    many there are. counts: > 0, n in all.
    """
    place, after, found, last = 0, counts[0], 0, 0  # after: how many come before the next value
    for part in range(1, max_bins):
        target = part * n // max_bins
        while after <= target:
            place += 1
            after += counts[place]
        if place > last:
            thresholds[found] = between(values[place - 1], values[place])
            found, last = found + 1, place
    return found


def quantiles_of(tally: Tally, max_bins: int) -> Floats:
    """At most max_bins - 1 thresholds that split what was counted into bins of about equal mass."""
    if len(tally.values) <= max_bins:
        return midpoints(tally.values)
    thresholds = np.empty(max_bins - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        found = int(quantiles(tally.values, tally.counts, tally.n, max_bins, thresholds))
    return thresholds[:found]


def quantile_thresholds(sample: Floats, max_bins: int) -> Floats:
    """The same of a sample: unsorted; NaN is left out."""
    thresholds = thresholds_by_cells(sample, max_bins)
    return quantiles_of(tally_of(sample), max_bins) if thresholds is None else thresholds


@kernel
def _sample(row_numbers, first, limit, seed, places):  # type: ignore[no-untyped-def]
    """places (OUT, int64 like row_numbers): of the rows that are in, counted from `first`; returns how many."""
    found = 0
    for i in range(row_numbers.shape[0]):
        places[found] = first + i
        found += mix64(np.uint64(row_numbers[i]) ^ seed) < limit
    return found


def sample_rows(
    row_numbers: NDArray[np.int64], n_rows: int, n_features: int, seed: int, first: int = 0
) -> NDArray[np.int64]:
    """Places of the rows in the sample for quantiles, ascending, counted from `first`.

    A row is in if the hash of its global number is below wanted / n_rows: the choice needs no other row, so any
    split of the rows over members gives the same sample, of about SAMPLE_ROWS rows.
    """
    wanted = max(4 * MAX_BINS, min(SAMPLE_ROWS, SAMPLE_CELLS // max(n_features, 1)))
    if n_rows <= wanted:
        return np.arange(first, first + len(row_numbers))
    limit, places = np.uint64((wanted << 64) // n_rows), np.empty(len(row_numbers), np.int64)
    with np.errstate(over="ignore"):  # the hash wraps around
        found = int(_sample(row_numbers, first, limit, np.uint64(seed & 0xFFFFFFFFFFFFFFFF), places))
    return places[:found].copy()  # without the room for all rows


def bin_column(values: Floats, thresholds: Floats, codes: NDArray[np.uint8]) -> bool:
    """codes (OUT, uint8 [n]): the bin of each value of a column [n]; whether one is missing."""
    return make_grid(thresholds).bins(values, codes)


@inner
def _times_prime(state):  # type: ignore[no-untyped-def]
    """FNV's prime, 2^40 + 435, times a state: vectors multiply 32 bits at a time, and two such products are enough."""
    low, high = state & np.uint64(0xFFFFFFFF), state >> np.uint64(32)
    return (state << np.uint64(40)) + low * np.uint64(435) + ((high * np.uint64(435)) << np.uint64(32))


@inner
def _hash_on(codes, states):  # type: ignore[no-untyped-def]
    """states (IN, OUT): of rows, with one more of their bins."""
    for i in range(codes.shape[0]):
        states[i] = _times_prime(states[i] ^ np.uint64(codes[i]))


@inner
def _hash_four(first, second, third, fourth, states):  # type: ignore[no-untyped-def]
    """The same with four more of their bins, one after another: states are loaded and stored once."""
    for i in range(first.shape[0]):
        state = _times_prime(states[i] ^ np.uint64(first[i]))
        state = _times_prime(state ^ np.uint64(second[i]))
        state = _times_prime(state ^ np.uint64(third[i]))
        states[i] = _times_prime(state ^ np.uint64(fourth[i]))


@kernel
def _row_hashes(bins, labels, row_numbers, start, stop, states):  # type: ignore[no-untyped-def]
    """Wrap-around sum over the rows from start to stop of a hash of (global row number, bins, label); row_numbers: of
    these rows only; states: room, uint64 [HASH_TILE].

    A tile of rows at a time, its features one after another: each is then read along its rows.
    """
    total = np.uint64(0)
    for first in range(start, stop, HASH_TILE):
        end = min(stop, first + HASH_TILE)
        numbers, own = row_numbers[first - start : end - start], labels[first:end]
        for i in range(numbers.shape[0]):
            states[i] = mix64(np.uint64(numbers[i]) + np.uint64(0x9E3779B97F4A7C15))
        fours = bins.shape[0] // 4 * 4
        for j in range(0, fours, 4):
            _hash_four(
                bins[j, first:end], bins[j + 1, first:end], bins[j + 2, first:end], bins[j + 3, first:end], states
            )
        for j in range(fours, bins.shape[0]):
            _hash_on(bins[j, first:end], states)
        for i in range(numbers.shape[0]):
            total += mix64(states[i] ^ (np.uint64(own[i]) << np.uint64(32)))
    return total


def _hashes(table: tuple[NDArray[np.uint8], NDArray[np.int32]], numbers: NumbersOf, team: Team) -> int:
    """The same of a table (bins, labels), by parts of its rows."""
    bins, labels = table

    def part(start: int, stop: int) -> int:
        total, states = 0, np.empty(HASH_TILE, np.uint64)
        with np.errstate(over="ignore"):  # the hash wraps around
            for first in range(start, stop, NUMBERED):
                end = min(first + NUMBERED, stop)
                total += int(_row_hashes(bins, labels, numbers(first, end), first, end, states))
        return total

    return sum(team.over(len(labels), (bins.size + 16 * len(labels)) // 2, part))


def fingerprint(
    bins: NDArray[np.uint8],
    labels: NDArray[np.int32],
    row_numbers: NDArray[np.int64] | NumbersOf,
    weights: NDArray[np.int64] | None = None,
    sets: NDArray[np.uint8] | None = None,
    team: Team | None = None,
) -> int:
    """This member's part of the data fingerprint; parts are added modulo 2**64.

    row_numbers: of the rows, or a function of two of their places that gives those between; weights: copies of weighted
    rows; sets: uint8 [n_rows, n_labels] of multi-label data.
    """
    team = team or Team(1)
    numbers = row_numbers if callable(row_numbers) else lambda start, stop: row_numbers[start:stop]
    found = _hashes((bins, labels), numbers, team)
    # the rows' weights and sets like tables of their own, told apart by what stands for their labels
    if weights is not None:
        bytes_ = np.ascontiguousarray(weights.astype("<i8")).view(np.uint8).reshape(-1, 8)
        found += _hashes((np.ascontiguousarray(bytes_.T), labels + np.int32(1)), numbers, team)
    if sets is not None:
        found += _hashes((np.ascontiguousarray(sets.T), labels + np.int32(2)), numbers, team)
    return found % (1 << 64)
