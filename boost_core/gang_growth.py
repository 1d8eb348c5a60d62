"""Growth of a tree by a gang: histograms reduced by feature slice, several frontier leaves in one exchange.

The members divide the best leaves' rows on speculation, come by the sums of their smaller children (gang_sums.py) and
search them; then leaves are taken in best-first order as long as their children are known. What was computed and not
taken is dropped, so the tree and its numbering are those of growth one leaf at a time. The steps are kernels
(gang_steps.py): Python is entered a few times a level, not for every node.

    leaf --(best cut known)--> expanded (children's histograms and best cuts known) --> taken (node of the tree)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.collective import Collective
from boost_core.cut import RECORD_FIELDS, Offer
from boost_core.forest import route
from boost_core.gain_matrix import GainMatrix
from boost_core.gang_steps import (
    N_LEAVES,
    N_NODES,
    N_SLOTS,
    PARENT,
    SMALL,
    Frontier,
    name_rows,
    new_frontier,
    next_level,
    note,
    recount,
    search,
    settle,
    start,
)
from boost_core.gang_sums import FeatureCopies, Place, ReducedHistograms, SliceSums, kept, worth_copies
from boost_core.intrinsics import lanes_for
from boost_core.kernel_times import HISTOGRAMS, KERNELS, PARTITION, SEARCH
from boost_core.objective import sums_in_bins
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.tree import NO_LIMIT, Tree

Integers = NDArray[np.int64]
# Vector additions (about 1 ns each) that expanding a leaf may cost a member though it may never be taken: about as long
# as the two exchanges that it saves.
CHEAP_WORK = 200_000
# Vector additions that a leaf's histograms take a member at least, from which none is expanded on speculation.
DEAR_WORK = 200_000


@dataclass
class GangMember:
    """What gang growth needs of a member, kept over the rounds."""

    shard: Shard
    binning: Binning
    collective: Collective
    team: Team

    def __post_init__(self) -> None:
        self.rows = np.arange(self.shard.n_rows, dtype=np.int32)
        self.order = np.empty_like(self.rows)
        self.scratch = np.empty_like(self.rows)
        self._room = np.empty(0, np.int64)
        self._rows_of: list[int] = []  # of each member, once all of them grow a tree
        self._place = Place(self.shard, self.collective, self.team)
        self._whole = Offer.of(self.binning)
        self._reduced = ReducedHistograms(self._place, self._whole)
        self._copies: FeatureCopies | None = None  # made where they are worth it
        self.offer(self.binning)

    def offer(self, binning: Binning) -> None:
        """From now on look for cuts in the features that this binning offers, of those that the first one has."""
        self.binning = binning
        self.offered = Offer.of(binning)
        self._reduced.offer(self.offered)
        if self._copies is not None:
            self._copies.offer(self.offered)

    def sums_for(self, gains: GainMatrix, max_leaves: int) -> SliceSums:
        """The way to sums that suits a tree; all members choose the same."""
        if not self._rows_of:
            own = np.array([self.shard.n_rows], np.int64)
            self._rows_of = [int(n_rows[0]) for n_rows in self.collective.all_gather(own)]
        n_bins, width = int(self.binning.bin_start[-1]), gains.values.shape[1]
        if not worth_copies(sum(self._rows_of), self.shard.n_features, n_bins, width, max_leaves):
            return self._reduced
        if self._copies is None:
            self._copies = FeatureCopies(self._place, self._rows_of, self._whole)
            self._copies.offer(self.offered)
        return self._copies

    def grow(
        self,
        objective: Any,
        gains: GainMatrix,
        sums: Integers,
        max_leaves: int,
        n_outputs: int,
        max_depth: int = NO_LIMIT,
    ) -> Tree:
        """Grow a tree; sums: of each channel and the row count over all members."""
        n_sums = sums_in_bins(objective, gains.n_channels)
        lanes = lanes_for(n_sums)
        work_a_row = len(self.offered.features) * len(lanes)
        cheap_rows = CHEAP_WORK * self.collective.size // max(work_a_row, 1)
        dear = int(self.offered.bin_start[-1]) * len(lanes) > DEAR_WORK * self.collective.size
        front = new_frontier(max_leaves, gains.n_channels, n_outputs, max_depth, cheap_rows, 1 if dear else max_leaves)
        rows = self.rows if gains.rows is None else gains.rows
        self.order[: len(rows)] = rows
        self.team.timed(KERNELS, start, front, objective, len(rows), sums, gains.total_mass)
        way = self.sums_for(gains, max_leaves)
        growing = _Growing(self, objective, gains, front, way, way.begin(gains, n_sums))
        if max_leaves > 1:
            growing.levels()
        return growing.finish()

    def hists(self, n_slots: int, n_bins: int, width: int) -> Integers:
        """This member's slice of the candidates' histograms [slots, slice bins, width].

        What was in them stays as long as a tree grows.
        """
        self._room, hists = kept(self._room, (n_slots, n_bins, width))
        return hists


@dataclass
class _Growing:
    """One tree on its way; width: sums in a bin of its histograms."""

    member: GangMember
    objective: Any
    gains: GainMatrix
    front: Frontier
    way: SliceSums
    width: int

    def __post_init__(self) -> None:
        binning, slices = self.member.binning, self.way.slices
        self._origin, stop = (int(bound) for bound in slices.bins[slices.rank : slices.rank + 2])
        self._n_bins = stop - self._origin
        self._features = self.member.offered.within(*slices.own)
        # What cut_search needs to know of this member's slice; what the binning offers may change by the round.
        offered = self.member.offered.bin_start
        self._layout = (offered, binning.n_thresholds, binning.has_missing, self._origin)
        self._counted = self.width > self.gains.n_channels

    def levels(self) -> None:
        """Exchange sums and cuts until no leaf is left to expand."""
        member, shard = self.member, self.member.shard
        chosen = np.full((self.front.leaves.shape[0], 3), -1, np.int64)
        chosen[0, SMALL] = 0  # the root: no parent, no sibling
        table = (shard.bins, member.binning.n_thresholds)
        n = 1
        while n > 0:
            self._exchange(chosen[:n])
            state = (self.front, self.objective, member.order, member.scratch, table, chosen)
            n = int(member.team.timed(PARTITION, next_level, *state))
            if n > 0 and not self._counted:
                self._recount(chosen[:n])

    def _recount(self, chosen: Integers) -> None:
        """Which children of the chosen candidates are the smaller ones, by their rows on all members."""
        front, left = self.front, self.front.children[chosen[:, PARENT]]
        own = np.diff(front.segments[np.stack([left, left + 1], axis=1)])[:, :, 0]
        recount(front, chosen, self.member.collective.sum(np.ascontiguousarray(own)))

    def finish(self) -> Tree:
        """A copy of what has grown."""
        front, member = self.front, self.member
        leaves = front.leaves[: front.counts[N_LEAVES]]
        nodes = front.nodes[: front.counts[N_NODES]].copy()
        leaf_of_row = np.empty(member.shard.n_rows, np.int32)
        grown = Tree(nodes, front.payload[leaves], int(front.values[leaves].sum()), leaf_of_row)
        if self.gains.rows is not None:  # the others were in no leaf
            return grown._replace(leaf_of_row=route(grown, member.shard.bins, member.binning, member.team))
        member.team.timed(KERNELS, name_rows, front, member.order, leaf_of_row)
        return grown

    def _exchange(self, chosen: Integers) -> None:
        """Best cuts over all members of the children of the chosen candidates."""
        member = self.member
        self.way.exchange(self.front, chosen, member.order)
        hists = member.hists(int(self.front.counts[N_SLOTS]), self._n_bins, self.width)
        found = self._searched(chosen, hists)
        records = np.empty((2 * chosen.shape[0], RECORD_FIELDS + self.gains.n_channels + 1), np.int64)
        state = (self.front, chosen, hists, self._layout, found, member.order, self.gains.flat, records)
        member.team.timed(KERNELS, settle, *state)
        gathered = np.stack(member.collective.all_gather(records))
        member.team.timed(KERNELS, note, self.front, chosen, gathered)

    def _searched(self, chosen: Integers, hists: Integers) -> Integers:
        """Best cuts in this member's slice by part of its features, [parts, 2 n_chosen, RECORD_FIELDS]."""
        member, features = self.member, self._features

        def fill(begin: int, end: int) -> None:
            self.way.fill(self.front, chosen, hists, begin, end)

        member.team.over(self.way.n_columns, self.way.work + hists[0].size * chosen.shape[0], fill, HISTOGRAMS)

        def part(begin: int, end: int) -> Integers:
            found = np.zeros((2 * chosen.shape[0], RECORD_FIELDS), np.int64)
            search(self.front, chosen, self.objective, hists, self._layout, features[begin:end], found)
            return found

        work = 4 * chosen.shape[0] * hists[0].size
        return np.stack(member.team.over(len(features), work, part, SEARCH))
