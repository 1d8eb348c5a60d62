"""Growth of a tree by a gang: histograms reduced by feature slice, several frontier leaves in one exchange.

The members divide the best leaves' rows on speculation, sum the histograms of the smaller children and search them;
then leaves are taken in best-first order as long as their children are known. What was computed and not taken is
dropped, so the tree and its numbering are those of growth one leaf at a time. The steps are kernels (gang_steps.py):
Python is entered a few times a level, not for every node.

    leaf --(best cut known)--> expanded (children's histograms and best cuts known) --> taken (node of the tree)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty
from boost_core.binning import Binning
from boost_core.collective import Collective
from boost_core.cut import RECORD_FIELDS, FeatureSlices
from boost_core.gain_matrix import GainMatrix
from boost_core.gang_steps import (
    N_LEAVES,
    N_NODES,
    N_SLOTS,
    SMALL,
    Frontier,
    build,
    name_rows,
    new_frontier,
    next_level,
    note,
    search,
    settle,
    start,
)
from boost_core.intrinsics import Lanes, lanes_for
from boost_core.kernel_times import HISTOGRAMS, KERNELS, PARTITION, SEARCH
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.tree import NO_LIMIT, Tree

Integers = NDArray[np.int64]
# Vector additions (about 1 ns each) that expanding a leaf may cost a member though it may never be taken: about as long
# as the two exchanges that it saves.
CHEAP_WORK = 200_000


@dataclass
class GangMember:
    """What gang growth needs of a member, kept over the rounds."""

    shard: Shard
    binning: Binning
    slices: FeatureSlices
    collective: Collective
    team: Team

    def __post_init__(self) -> None:
        self.rows = np.arange(self.shard.n_rows, dtype=np.int32)
        self.order = np.empty_like(self.rows)
        self.scratch = np.empty_like(self.rows)
        self._local = np.empty((0, 0, 0), np.int64)
        self._hists = np.empty((0, 0, 0), np.int64)

    @property
    def layout(self) -> tuple[Integers, Integers, NDArray[np.bool_], int]:
        """What cut_search needs to know of this member's slice; what the binning offers may change by the round."""
        binning = self.binning
        origin = int(self.slices.bins[self.slices.rank])
        return binning.bin_start, binning.n_thresholds, binning.has_missing, origin

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
        lanes = lanes_for(gains.n_channels + 1)
        work_a_row = self.shard.n_features * len(lanes)
        cheap_rows = CHEAP_WORK * self.collective.size // max(work_a_row, 1)
        front = new_frontier(max_leaves, gains.n_channels, n_outputs, max_depth, cheap_rows)
        self.order[:] = self.rows
        self.team.timed(KERNELS, start, front, objective, self.shard.n_rows, sums, gains.total_mass)
        growing = _Growing(self, objective, gains, front, lanes)
        if max_leaves > 1:
            growing.levels()
        return growing.finish()

    def local(self, n_nodes: int, n_padded: int) -> Integers:
        """Room for local histograms [n_nodes, n_bins, padded]; what is in it is left over from before."""
        n_bins = int(self.binning.bin_start[-1])
        if self._local.shape[0] < n_nodes or self._local.shape[1:] != (n_bins, n_padded):
            self._local = aligned_empty((n_nodes, n_bins, n_padded), np.int64)
        return self._local[:n_nodes]

    def hists(self, n_slots: int, n_channels: int) -> Integers:
        """This member's slice of the candidates' histograms [slots, slice bins, n_channels], n_slots of them at least.

        What was in them stays as long as a tree grows.
        """
        rank = self.slices.rank
        shape = (int(self.slices.bins[rank + 1] - self.slices.bins[rank]), n_channels)
        if self._hists.shape[1:] != shape:
            self._hists = np.empty((n_slots, *shape), np.int64)
        elif self._hists.shape[0] < n_slots:
            more = np.empty((n_slots, *shape), np.int64)
            more[: self._hists.shape[0]] = self._hists
            self._hists = more
        return self._hists


@dataclass
class _Growing:
    """One tree on its way."""

    member: GangMember
    objective: Any
    gains: GainMatrix
    front: Frontier
    lanes: Lanes

    def levels(self) -> None:
        """Exchange sums and cuts until no leaf is left to expand."""
        member, shard = self.member, self.member.shard
        chosen = np.full((self.front.leaves.shape[0], 3), -1, np.int64)
        chosen[0, SMALL] = 0  # the root: no parent, no sibling
        table = (shard.bins, member.binning.n_thresholds)
        n = 1
        while n > 0:
            self._exchange(chosen[:n])
            rows = (member.order, member.scratch)
            state = (self.front, self.objective, *rows, table, self.gains.mass, chosen)
            n = int(member.team.timed(PARTITION, next_level, *state))

    def finish(self) -> Tree:
        """A copy of what has grown."""
        front = self.front
        leaf_of_row = np.empty(self.member.shard.n_rows, np.int32)
        self.member.team.timed(KERNELS, name_rows, front, self.member.order, leaf_of_row)
        leaves = front.leaves[: front.counts[N_LEAVES]]
        nodes = front.nodes[: front.counts[N_NODES]].copy()
        return Tree(nodes, front.payload[leaves], int(front.values[leaves].sum()), leaf_of_row)

    def _exchange(self, chosen: Integers) -> None:
        """Best cuts over all members of the children of the chosen candidates."""
        member = self.member
        n_used = self.gains.n_channels + 1
        local = self._built(chosen)
        summed = np.ascontiguousarray(member.collective.reduce_scatter(local, member.slices.bins, n_used))
        hists = member.hists(int(self.front.counts[N_SLOTS]), n_used)
        found = self._searched(chosen, summed, hists)
        records = np.empty((2 * chosen.shape[0], RECORD_FIELDS + n_used), np.int64)
        member.team.timed(KERNELS, settle, self.front, chosen, hists, member.layout, found, records)
        gathered = np.stack(member.collective.all_gather(records))
        member.team.timed(KERNELS, note, self.front, chosen, gathered)

    def _built(self, chosen: Integers) -> Integers:
        """This member's histograms of the smaller children."""
        member, front = self.member, self.front
        shard, bin_start = member.shard, member.binning.bin_start
        local = member.local(chosen.shape[0], self.gains.values.shape[1])
        flat_gains = self.gains.values.reshape(-1)
        segments = front.segments[chosen[:, SMALL]]
        n_rows = int((segments[:, 1] - segments[:, 0]).sum())

        def part(first: int, stop: int) -> None:
            features = (first, stop)
            build(front, chosen, member.order, shard.bins, flat_gains, bin_start, features, self.lanes, local)

        work = (n_rows * shard.n_features + local.shape[0] * local.shape[1]) * len(self.lanes)
        member.team.over(shard.n_features, work, part, HISTOGRAMS)
        return local

    def _searched(self, chosen: Integers, summed: Integers, hists: Integers) -> Integers:
        """Best cuts in this member's slice by part of its features, [parts, 2 n_chosen, RECORD_FIELDS]."""
        member = self.member
        first, stop = member.slices.own

        def part(begin: int, end: int) -> Integers:
            found = np.zeros((2 * chosen.shape[0], RECORD_FIELDS), np.int64)
            features = (first + begin, first + end)
            search(self.front, chosen, self.objective, summed, hists, member.layout, features, found)
            return found

        return np.stack(member.team.over(stop - first, 4 * summed.size, part, SEARCH))
