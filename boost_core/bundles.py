"""Features of few bins counted together: one vector addition a row for all features of a bundle, instead of one each.

    joint bin = (bin of its first feature * bins of the second + bin of the second) * bins of the third + ...

A histogram of joint bins is added up like one of a feature's bins; then every joint bin whose sums are not 0 is
added to the bin of each feature. Sums are integers, so they are what they would be without. LightGBM (Ke et al., 2017)
bundles features of which no row has two; here any features go together whose joint bins fit a byte, since nothing is
merged.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.cut import Offer
from boost_core.histogram import add_gains
from boost_core.intrinsics import add_lanes, width_of
from boost_core.jit import inlined_step, step

Integers = NDArray[np.int64]
MOST_JOINT = 256  # joint bins of a bundle: their codes are bytes
# Bundles are quicker from so many rows for every addition of a joint bin, by the additions that each row is saved.
ROWS_AN_ADDITION = 5
COUNTED = 65_536  # rows by which it is said how many joint bins are filled: NumPy makes int64 of them
CODE_BYTES = 1 << 26  # of joint codes at most: where memory is short, bundles of the most features
ROOM_BYTES = 1 << 25  # of histograms of joint bins at most, else there are none


class Bundles(NamedTuple):
    """Bundles, numbered in the order of their features.

    codes: uint8 [n_bundles, n_rows], joint bins; start: int64 [n_bundles + 1], their joint bins one after another;
    numbers: int64 [n_bundles], 0, 1, ...; first: int64 [n_bundles + 1], where a bundle's features begin in: features
    int64 [k]; digits uint8 [k, MOST_JOINT], a feature's bin in each joint bin of its bundle; worth: rows from which
    bundles are worth it.
    """

    codes: NDArray[np.uint8]
    start: Integers
    numbers: Integers
    first: Integers
    features: Integers
    digits: NDArray[np.uint8]
    worth: int

    def singles(self, features: Integers) -> Integers:
        """Those of the features that are in no bundle."""
        return features[np.isin(features, self.features, invert=True)] if len(self.features) else features

    def columns(self, features: Integers) -> Integers:
        """Where columns begin among the features (int64 [k], in order), among those in no bundle and among bundles,
        int64 [n_columns + 1, 3]: a column is a bundle's features or a feature by itself."""
        if not len(self.features):  # a sample of the features each round has none
            places = np.arange(len(features) + 1)
            return np.stack([places, places, np.zeros_like(places)], axis=1)
        begins = np.isin(features, self.features, invert=True) | np.isin(features, self.features[self.first[:-1]])
        places = np.append(np.flatnonzero(begins), len(features))
        bundled = np.diff(places) > 1
        return np.stack([places, np.cumsum([0, *~bundled]), np.cumsum([0, *bundled])], axis=1).astype(np.int64)


def neighbours(sizes: Integers, features: Integers) -> list[list[int]]:
    """Which features are counted together: those that follow one another, as long as their joint bins fit.

    sizes: int64 [n_features], bins of each; features: int64 [k], which there are, in order. Bundles of one are left
    out. Neighbours only, so that a bundle's features are searched in the order that decides between equal cuts.
    """
    groups: list[list[int]] = [[]]
    joint = 1
    for j in features.tolist():
        joint *= int(sizes[j])
        if joint > MOST_JOINT:
            groups.append([])
            joint = int(sizes[j])
        groups[-1].append(j)
    return [group for group in groups if len(group) > 1]


def make_bundles(bins: NDArray[np.uint8], offer: Offer) -> Bundles:
    """The bundles of the features that are offered, as many as there is memory for; bins uint8 [d, n]."""
    sizes, n_rows = np.diff(offer.bin_start), bins.shape[1]
    groups = neighbours(sizes, offer.features)
    largest_first = sorted(range(len(groups)), key=lambda number: -len(groups[number]))
    affordable = sorted(largest_first[: CODE_BYTES // max(n_rows, 1)])
    return bundles_of([groups[number] for number in affordable], bins, sizes)


def bundles_of(groups: list[list[int]], bins: NDArray[np.uint8], sizes: Integers) -> Bundles:
    """Bundles of these features; bins uint8 [d, n]; sizes: int64 [d], bins of each."""
    codes = np.empty((len(groups), bins.shape[1]), np.uint8)
    digits = np.zeros((sum(map(len, groups)), MOST_JOINT), np.uint8)
    joint_sizes, additions, place = [], 0, 0
    for number, group in enumerate(groups):
        shape = tuple(sizes[group].tolist())
        joint_sizes.append(int(np.prod(shape)))
        code = codes[number]
        code[:] = bins[group[0]]
        for j in group[1:]:
            np.multiply(code, np.uint8(sizes[j]), out=code)
            np.add(code, bins[j], out=code)
        additions += int(np.count_nonzero(np.bincount(code[:COUNTED]))) * len(group)
        for own in np.unravel_index(np.arange(joint_sizes[-1]), shape):
            digits[place, : joint_sizes[-1]] = own
            place += 1
    return Bundles(
        codes,
        np.cumsum([0, *joint_sizes]).astype(np.int64),
        np.arange(len(groups), dtype=np.int64),
        np.cumsum([0, *map(len, groups)]).astype(np.int64),
        np.array([j for group in groups for j in group], np.int64),
        digits,
        ROWS_AN_ADDITION * additions // max(sum(len(group) - 1 for group in groups), 1),
    )


class Bundling:
    """A member's bundles, made when they are first wanted, with room for their histograms."""

    def __init__(self, bins: NDArray[np.uint8], whole: Offer) -> None:
        """whole: all features that are ever offered."""
        self._bins, self._whole = bins, whole
        self._made: Bundles | None = None
        self._none = bundles_of([], bins, np.diff(whole.bin_start))
        self._joint = np.empty(0, np.int64)

    def of(self, features: Integers, n_padded: int) -> tuple[Bundles, Integers]:
        """The bundles where all features are offered, else none, and the room that add_columns wants; n_padded:
        channels of a histogram."""
        if len(features) < len(self._whole.features):
            return self._none, self._joint
        self._made = self._made or make_bundles(self._bins, self._whole)
        n_joint = int(self._made.start[-1]) * n_padded
        if 8 * n_joint > ROOM_BYTES:
            return self._none, self._joint
        if self._joint.shape[0] != n_joint:
            self._joint = aligned_zeros((n_joint,), np.int64)
        return self._made, self._joint


@inlined_step
def add_columns(bins, rows, gains, bin_start, parts, bundles, lanes, totals):  # type: ignore[no-untyped-def]
    """totals (OUT, flat int64) = gains of the rows, for some features; other arguments: see add_gains.

    parts = (features, in order; of these, those in no bundle; (first bundle, the one after the last); joint: flat
    int64, room for bundles.start[-1] rows of the histogram, all 0 before and after).

    One place adds gains up, of features and then of bundles: it takes most of the time to compile.
    """
    features, singles, span, joint = parts
    bundled = span[0] < span[1] and rows.shape[0] >= bundles.worth
    if bundled:
        width = width_of(lanes)
        for j in features:
            for k in range(bin_start[j] * width, bin_start[j + 1] * width):
                totals[k] = 0
    codes, starts, columns, sums = bins, bin_start, singles if bundled else features, totals
    for _ in range(2 if bundled else 1):
        add_gains(codes, rows, gains, starts, columns, lanes, sums, not bundled)
        codes, starts, columns, sums = bundles.codes, bundles.start, bundles.numbers[span[0] : span[1]], joint
    if bundled:
        _spread(bundles, span, lanes, bin_start, joint, totals)


@step
def _spread(bundles, span, lanes, bin_start, joint, totals):  # type: ignore[no-untyped-def]
    """totals += sums of joint bins of bundles span[0]..span[1], which are 0 afterwards."""
    width = width_of(lanes)
    for bundle in range(span[0], span[1]):
        begin, stop = bundles.start[bundle], bundles.start[bundle + 1]
        for joint_bin in range(begin, stop):
            at = joint_bin * width
            filled = np.int64(0)
            for c in range(width):
                filled |= joint[at + c]
            if filled != 0:
                _add_to_each(bundle, joint_bin - begin, at, bundles, lanes, bin_start, joint, totals)
                for c in range(width):
                    joint[at + c] = 0


@inlined_step
def _add_to_each(bundle, joint_bin, at, bundles, lanes, bin_start, joint, totals):  # type: ignore[no-untyped-def]
    """Add joint[at : at + width] to the bin of each of a bundle's features, two of them at once."""
    place, stop, width = bundles.first[bundle], bundles.first[bundle + 1], width_of(lanes)
    while place + 2 <= stop:
        first = bin_start[bundles.features[place]] + np.int64(bundles.digits[place, joint_bin])
        second = bin_start[bundles.features[place + 1]] + np.int64(bundles.digits[place + 1, joint_bin])
        add_lanes(totals, (first * width, second * width), joint, at, lanes)
        place += 2
    if place < stop:
        last = bin_start[bundles.features[place]] + np.int64(bundles.digits[place, joint_bin])
        add_lanes(totals, (last * width,), joint, at, lanes)
