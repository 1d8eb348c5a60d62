"""How a member comes by the sums of its slice of the features over all members' rows: one of two ways.

ReducedHistograms   every member builds histograms of its rows and all features; they are reduced by feature slice
FeatureCopies       every member also holds the slice's bins of all other members' rows, and builds its slice alone;
                    gains travel once a tree, and of a leaf only which rows are in it

Histograms are the same whatever the table's length, so with few rows and many bins the second way sends less: mnist
(60,000 rows, 139,000 bins, 10 classes) 159 MB or 3.5 MB a round and member of two, with 21 leaves. Both give the same
sums.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty
from boost_core.bundles import Bundles, Bundling, bundles_of
from boost_core.collective import Collective
from boost_core.common_bins import NO_FOURS, CommonBins
from boost_core.cut import FeatureSlices, Offer, slice_bins
from boost_core.gain_matrix import GainMatrix
from boost_core.gang_steps import PARENT, SMALL, Frontier, build, spread
from boost_core.intrinsics import Lanes, lanes_for, width_for
from boost_core.kernel_times import HISTOGRAMS
from boost_core.shard import Shard
from boost_core.team import Team

Integers = NDArray[np.int64]
Rows = NDArray[np.int32]
# Tables of fewer bins are reduced whatever their length: their histograms fit few messages.
WIDE_BINS = 10_000
SUM_BYTES, GAIN_BYTES = 8, 4


@dataclass(frozen=True)
class Place:
    """What both ways need of a member: its rows' bins and the others."""

    shard: Shard
    collective: Collective
    team: Team


class SliceSums(Protocol):
    """A way to the sums, for one tree after the other.

    slices: of the features and, only of those that are offered, bins.
    """

    slices: FeatureSlices

    def offer(self, offer: Offer) -> None:
        """From now on only these features are cut; said before any tree."""

    def begin(self, gains: GainMatrix, n_sums: int) -> int:
        """A tree of these gains begins on all members, whose histograms have so many sums in a bin
        (objective.sums_in_bins); returns these, padded or not."""

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        """Whatever has to travel for the smaller children of the chosen candidates."""

    @property
    def n_columns(self) -> int:
        """Parts of the slice's histograms, what is offered of it."""

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, begin: int, end: int) -> None:
        """The smaller children's histograms, in their slots, of some columns."""

    @property
    def work(self) -> int:
        """Element operations that `fill` takes for all columns, besides writing the histograms."""


def worth_copies(n_rows: int, n_features: int, n_bins: int, width: int, max_leaves: int) -> bool:
    """Whether copies of bins cost less than reducing histograms, about: bytes of a tree, and memory.

    n_rows, n_bins: of all members and features; width: gains of a row, about the sums of a bin. Of either way a
    member of M sends (M - 1) / M of these bytes. Copies may take as much memory as the histograms that a tree keeps
    anyway. All arguments are equal on all members, so they all choose alike.
    """
    histograms = max_leaves * n_bins * width * SUM_BYTES
    copies = n_rows * n_features
    gains = n_rows * width * GAIN_BYTES
    return n_bins >= WIDE_BINS and copies <= histograms and 2 * gains <= histograms


class ReducedHistograms:
    """Histograms over this member's rows, reduced by feature slice."""

    slices: FeatureSlices

    def __init__(self, place: Place, whole: Offer) -> None:
        """whole: all features that are ever offered."""
        self._place, self._bundling = place, Bundling(place.shard.bins, whole)
        self._room = np.empty(0, np.int64)
        self._summed = np.empty((0, 0, 0), np.int64)

    def offer(self, offer: Offer) -> None:
        """What is not offered is neither built nor sent, and each member gets a like part of the rest."""
        collective = self._place.collective
        self._offer, self.slices = offer, slice_bins(offer.bin_start, collective.rank, collective.size)
        self._own = offer.within(*self.slices.own)
        self._bundles: Bundles | None = None

    def begin(self, gains: GainMatrix, n_sums: int) -> int:
        self._lanes, self._gains, self._n_used = lanes_for(n_sums), gains.flat, n_sums
        self._shape = (int(self._offer.bin_start[-1]), width_for(n_sums))
        bundles, self._joint = self._bundling.of(self._offer.features, self._shape[1])
        if bundles is not self._bundles:
            features = self._offer.features
            self._bundles, self._columns, self._singles = bundles, bundles.columns(features), bundles.singles(features)
        return self._n_used

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        local = self._built(front, chosen, order)
        summed = self._place.collective.reduce_scatter(local, self.slices.bins, self._n_used)
        self._summed = np.ascontiguousarray(summed)

    @property
    def n_columns(self) -> int:
        return len(self._own)

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, begin: int, end: int) -> None:
        slots, origin = front.slots[chosen[:, SMALL]], int(self.slices.bins[self.slices.rank])
        spread(self._summed, slots, hists, self._offer.bin_start, origin, self._own[begin:end])

    @property
    def work(self) -> int:
        return 0

    def _built(self, front: Frontier, chosen: Integers, order: Rows) -> Integers:
        """This member's histograms of the smaller children, [n_chosen, n_bins, padded]."""
        bins, n = self._place.shard.bins, chosen.shape[0]
        features, bin_start = self._offer.features, self._offer.bin_start
        self._room, local = kept(self._room, (n, *self._shape))
        bounds = front.segments[chosen[:, SMALL]]
        slots, bundles, columns = np.arange(n), self._bundles, self._columns

        def part(begin: int, end: int) -> None:
            (first, single, bundle), (last, last_single, last_bundle) = columns[[begin, end]].tolist()
            parts = (features[first:last], self._singles[single:last_single], (bundle, last_bundle), self._joint)
            build(order, bounds, slots, bins, self._gains, bin_start, parts, bundles, NO_FOURS, self._lanes, local)

        n_columns = len(columns) - 1
        n_rows = int((bounds[:, 1] - bounds[:, 0]).sum())
        work = (n_rows * n_columns + n * self._shape[0]) * len(self._lanes)
        self._place.team.over(n_columns, work, part, HISTOGRAMS)
        return local


class FeatureCopies:
    """Bins of all members' rows in the slice's features, from which every member builds the sums of its slice."""

    slices: FeatureSlices

    def __init__(self, place: Place, rows_of: Sequence[int], whole: Offer) -> None:
        """rows_of: how many rows each member holds; whole: all features that are ever offered. All members make theirs
        at the same time."""
        self._place = place
        collective, bins = place.collective, place.shard.bins
        self._features = slice_bins(whole.bin_start, collective.rank, collective.size).features
        start, stop = self._features[collective.rank : collective.rank + 2]
        self._starts = np.cumsum([0, *rows_of]).astype(np.int64)
        self._everyone = np.arange(self._starts[-1], dtype=np.int32)
        self._gains, self._joint = np.empty(0, np.int32), np.empty(0, np.int64)
        parts = [bins[begin:end].reshape(-1) for begin, end in itertools.pairwise(self._features)]
        self._bins = np.empty((stop - start, int(self._starts[-1])), np.uint8)
        for rank, flat in enumerate(collective.all_to_all(parts)):
            self._bins[:, self._starts[rank] : self._starts[rank + 1]] = flat.reshape(stop - start, rows_of[rank])
        self._no_bundles, self._common = bundles_of([], self._bins, np.empty(0, np.int64)), CommonBins(self._bins)

    def offer(self, offer: Offer) -> None:
        """Each member keeps its features, of which it builds what is offered."""
        rank = self._place.collective.rank
        self.slices = FeatureSlices(self._features, offer.bin_start[self._features], rank)
        start, stop = self.slices.own
        self._bin_start = offer.bin_start[start : stop + 1] - offer.bin_start[start]
        offered = offer.within(start, stop) - start
        self._n_offered, (self._fours, self._singles) = len(offered), self._common.fours(offered)

    def begin(self, gains: GainMatrix, n_sums: int) -> int:
        self._lanes: Lanes = lanes_for(n_sums)
        collective, rows, width = self._place.collective, gains.rows, gains.values.shape[1]
        shape = (self._everyone.shape[0], width)
        if self._gains.shape[0] != shape[0] * width or self._gains.dtype != gains.values.dtype:
            self._gains = aligned_empty(shape, gains.values.dtype).reshape(-1)
        whole = self._gains.reshape(shape)
        if rows is None:
            np.concatenate(collective.all_gather(gains.values), out=whole)
            self._in_root = self._everyone
        else:  # only these travel; the gains of others, of an earlier tree, are not read
            own_start = np.int32(self._starts[collective.rank])
            self._in_root = np.concatenate(collective.all_gather(rows + own_start))
            whole[self._in_root] = np.concatenate(collective.all_gather(gains.values[rows]))
        self._pitch = width
        return width_for(n_sums)

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        """Which rows are in the smaller children: their counts, then their numbers, in one message."""
        collective, n = self._place.collective, chosen.shape[0]
        if chosen[0, PARENT] < 0:
            self._rows = self._in_root
            self._bounds = np.array([[0, self._rows.shape[0]]], np.int64)
            return
        segments = front.segments[chosen[:, SMALL]]
        counts = (segments[:, 1] - segments[:, 0]).astype(np.int32)
        own_start = np.int32(self._starts[collective.rank])
        listed = [order[first:stop] + own_start for first, stop in segments.tolist()]
        gathered = collective.all_gather(np.concatenate([counts, *listed]))
        parts = [np.split(message[n:], np.cumsum(message[: n - 1])) for message in gathered]
        self._rows = np.concatenate([part[e] for e in range(n) for part in parts])
        ends = np.cumsum(np.sum([message[:n] for message in gathered], axis=0, dtype=np.int64))
        self._bounds = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)

    @property
    def n_columns(self) -> int:
        """A four is one, of the others each."""
        return len(self._fours) + len(self._singles)

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, begin: int, end: int) -> None:
        slots, n_fours = front.slots[chosen[:, SMALL]], len(self._fours)
        singles = self._singles[max(begin - n_fours, 0) : max(end - n_fours, 0)]
        parts, rest = (singles, singles, (0, 0), self._joint), (self._fours[begin:end], self._common.common)
        table = (self._bins, (self._gains, self._pitch), self._bin_start, parts, self._no_bundles, rest)
        build(self._rows, self._bounds, slots, *table, self._lanes, hists)

    @property
    def work(self) -> int:
        return len(self._rows) * self._n_offered * len(self._lanes)


def kept(room: Integers, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """A room that is large enough, flat, and an array of this shape in it: what was in the room is at its front."""
    size = math.prod(shape)
    if room.shape[0] < size:
        larger = aligned_empty((size,), np.int64)
        larger[: room.shape[0]] = room
        room = larger
    return room, room[:size].reshape(shape)
