"""How a member comes by the sums of its slice of the features over all members' rows: one of two ways.

ReducedHistograms   every member builds histograms of its rows and all features; they are reduced by feature slice
FeatureCopies       every member also holds the slice's bins of all other members' rows, and builds its slice alone;
                    gains travel once a tree, and of a leaf only which rows are in it

Histograms are the same whatever the table's length, so with few rows and many bins the second way sends less: mnist
(60,000 rows, 139,000 bins, 10 classes) 159 MB or 3.5 MB a round and member of two, with 21 leaves. Both give the same
sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty
from boost_core.collective import Collective
from boost_core.cut import FeatureSlices
from boost_core.gain_matrix import GainMatrix
from boost_core.gang_steps import PARENT, SMALL, Frontier, build, spread
from boost_core.intrinsics import Lanes, lanes_for
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
    """What both ways need of a member: its rows' bins, its slice, bin_start of all features, and the others."""

    shard: Shard
    slices: FeatureSlices
    bin_start: Integers
    collective: Collective
    team: Team


class SliceSums(Protocol):
    """A way to the sums, for one tree after the other."""

    def begin(self, gains: GainMatrix) -> int:
        """A tree of these gains begins on all members; returns the channels of its histograms, padded or not."""

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        """Whatever has to travel for the smaller children of the chosen candidates."""

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, features: tuple[int, int]) -> None:
        """The smaller children's histograms, in their slots, of a range of features within the slice."""

    @property
    def work(self) -> int:
        """Element operations that `fill` takes for all features of the slice, besides writing the histograms."""


def worth_copies(n_rows: int, n_features: int, n_bins: int, width: int, max_leaves: int) -> bool:
    """Whether copies of bins cost less than reducing histograms, about: bytes of a tree, and memory.

    n_rows, n_bins: of all members and features; width: channels of a histogram. Of either way a member of M sends
    (M - 1) / M of these bytes. Copies may take as much memory as the histograms that a tree keeps anyway. All
    arguments are equal on all members, so they all choose alike.
    """
    histograms = max_leaves * n_bins * width * SUM_BYTES
    copies = n_rows * n_features
    gains = n_rows * width * GAIN_BYTES
    return n_bins >= WIDE_BINS and copies <= histograms and 2 * gains <= histograms


class ReducedHistograms:
    """Histograms over this member's rows, reduced by feature slice."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._room = np.empty((0, 0, 0), np.int64)
        self._summed = np.empty((0, 0, 0), np.int64)

    def begin(self, gains: GainMatrix) -> int:
        self._lanes = lanes_for(gains.n_channels + 1)
        self._gains = gains.values.reshape(-1)
        self._shape = (int(self._place.bin_start[-1]), gains.values.shape[1])
        self._n_used = gains.n_channels + 1
        return self._n_used

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        local = self._built(front, chosen, order)
        summed = self._place.collective.reduce_scatter(local, self._place.slices.bins, self._n_used)
        self._summed = np.ascontiguousarray(summed)

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, features: tuple[int, int]) -> None:
        first = self._place.slices.own[0]
        start_bin, stop_bin = self._place.bin_start[[first + features[0], first + features[1]]]
        origin = self._place.bin_start[first]
        spread(self._summed, front.slots[chosen[:, SMALL]], hists, (start_bin - origin, stop_bin - origin))

    @property
    def work(self) -> int:
        return 0

    def _built(self, front: Frontier, chosen: Integers, order: Rows) -> Integers:
        """This member's histograms of the smaller children, [n_chosen, n_bins, padded]."""
        shard, bin_start, n = self._place.shard, self._place.bin_start, chosen.shape[0]
        if self._room.shape[0] < n or self._room.shape[1:] != self._shape:
            self._room = aligned_empty((n, *self._shape), np.int64)
        local = self._room[:n]
        bounds = front.segments[chosen[:, SMALL]].reshape(n, 1, 2)
        slots = np.arange(n)

        def part(first: int, stop: int) -> None:
            build(order, bounds, slots, shard.bins, self._gains, bin_start, (first, stop), self._lanes, local)

        n_rows = int((bounds[:, 0, 1] - bounds[:, 0, 0]).sum())
        work = (n_rows * shard.n_features + n * self._shape[0]) * len(self._lanes)
        self._place.team.over(shard.n_features, work, part, HISTOGRAMS)
        return local


class FeatureCopies:
    """Bins of all members' rows in the slice's features, from which every member builds the sums of its slice."""

    def __init__(self, place: Place, rows_of: Sequence[int]) -> None:
        """rows_of: how many rows each member holds. All members make theirs at the same time."""
        self._place = place
        start, stop = place.slices.own
        self._starts = np.cumsum([0, *rows_of]).astype(np.int64)
        self._everyone = np.arange(self._starts[-1], dtype=np.int32)
        self._bin_start = place.bin_start[start : stop + 1] - place.bin_start[start]
        edges = place.slices.features
        parts = [place.shard.bins[edges[rank] : edges[rank + 1]].reshape(-1) for rank in range(len(rows_of))]
        self._bins = np.empty((stop - start, int(self._starts[-1])), np.uint8)
        for rank, flat in enumerate(place.collective.all_to_all(parts)):
            self._bins[:, self._starts[rank] : self._starts[rank + 1]] = flat.reshape(stop - start, rows_of[rank])

    def begin(self, gains: GainMatrix) -> int:
        self._lanes: Lanes = lanes_for(gains.n_channels + 1)
        self._gains = np.concatenate(self._place.collective.all_gather(gains.values)).reshape(-1)
        return int(gains.values.shape[1])

    def exchange(self, front: Frontier, chosen: Integers, order: Rows) -> None:
        """Which rows are in the smaller children: their counts, then their numbers, in one message."""
        collective, n = self._place.collective, chosen.shape[0]
        if chosen[0, PARENT] < 0:  # the root holds all rows
            self._rows = self._everyone
            self._bounds = np.array([[[0, self._everyone.shape[0]]]], np.int64)
            return
        segments = front.segments[chosen[:, SMALL]]
        counts = (segments[:, 1] - segments[:, 0]).astype(np.int32)
        own_start = np.int32(self._starts[collective.rank])
        listed = [order[first:stop] + own_start for first, stop in segments.tolist()]
        gathered = collective.all_gather(np.concatenate([counts, *listed]))
        self._rows = np.concatenate(gathered)
        self._bounds = np.empty((n, len(gathered), 2), np.int64)
        begin = 0
        for rank, message in enumerate(gathered):
            ends = begin + n + np.cumsum(message[:n], dtype=np.int64)
            self._bounds[:, rank, 0], self._bounds[:, rank, 1] = ends - message[:n], ends
            begin += message.shape[0]

    def fill(self, front: Frontier, chosen: Integers, hists: Integers, features: tuple[int, int]) -> None:
        slots = front.slots[chosen[:, SMALL]]
        build(self._rows, self._bounds, slots, self._bins, self._gains, self._bin_start, features, self._lanes, hists)

    @property
    def work(self) -> int:
        n_rows = int((self._bounds[:, :, 1] - self._bounds[:, :, 0]).sum())
        return int(n_rows * self._bins.shape[0] * len(self._lanes))
