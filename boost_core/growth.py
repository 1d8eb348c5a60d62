"""Best-first growth of a tree, the same on every member of the gang.

One step reduces several frontier leaves together: the members split the best leaves' rows on speculation, sum the
histograms of the smaller children, and search them; then leaves are taken in best-first order as long as their
children are known. What was computed and not taken is dropped, so the tree and its numbering are those of growth one
leaf at a time, which a lone process does directly.

    leaf --(best cut known)--> expanded (children's histograms and best cuts known) --> taken (node of the tree)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.collective import Collective
from boost_core.cut import (
    BIN,
    FEATURE,
    KIND,
    MASS,
    MISSING_LEFT,
    NO_CUT,
    RECORD_FIELDS,
    VALUE,
    FeatureSlices,
    partition,
)
from boost_core.gain_matrix import GainMatrix
from boost_core.histogram import HistogramBuilder
from boost_core.jit import kernel
from boost_core.shard import Shard
from boost_core.team import Team

Integers = NDArray[np.int64]
Votes = NDArray[np.int8]
LEFT, RIGHT = 4, 5  # columns of a node's children
GAIN_SHIFT = 28  # a growth gain counts if it exceeds the node's absolute gains >> 28: below is rounding of the gains


class Cuts(Protocol):
    """A weak learner's objective: which cut is best, and what its leaves say."""

    def best_record(self, hist: Integers, sums: Integers, team: Team) -> Integers:
        """A node's best cut in this member's feature slice (layout: cut.py)."""

    def root(self, totals: Integers) -> tuple[Votes, int]:
        """Payload and value of the tree without cuts."""

    def children(self, left: Integers, right: Integers) -> tuple[Votes, int, Votes, int]:
        """Payload and value of the left and of the right leaf."""


@dataclass
class Leaf:
    """A leaf while the tree grows. Its local rows are order[start:stop]; sums are over all members."""

    start: int
    stop: int
    sums: Integers  # [n_channels + 1], the last one counts the rows
    votes: Votes
    value: int
    depth: int
    local_mass: int
    hist: Integers | None = None  # this member's slice
    record: Integers | None = None  # its best cut over all members, once known
    gain: int = 0  # what taking that cut adds to the tree's value; 0 if there is none worth it
    children: "tuple[Leaf, Leaf] | None" = None

    def best_cut_is(self, record: Integers, mass: int) -> None:
        """Note the best cut; mass: the leaf's absolute gains over all members."""
        self.record = record
        value = int(record[VALUE])
        if value != NO_CUT and value - self.value > mass >> GAIN_SHIFT:
            self.gain = value - self.value


@dataclass(frozen=True)
class Tree:
    """A grown tree.

    nodes: int64 [n_nodes, 6]: feature, kind, bin, missing left, left, right (children as in model.Forest);
    votes: int8 [n_leaves, n_channels]; value: its sum of gains over all members;
    leaf_of_row: int32 [n_rows] of this member.
    """

    nodes: Integers
    votes: Votes
    value: int
    leaf_of_row: NDArray[np.int32]


@dataclass
class Grower:
    """What growth needs of a member, kept over the rounds."""

    shard: Shard
    binning: Binning
    slices: FeatureSlices
    collective: Collective
    team: Team

    def __post_init__(self) -> None:
        self.builder = HistogramBuilder(self.shard.bins, self.binning, self.team)
        self._rows = np.arange(self.shard.n_rows, dtype=np.int32)
        self._order = np.empty_like(self._rows)
        self._scratch = np.empty_like(self._rows)

    def grow(self, gains: GainMatrix, sums: Integers, cuts: Cuts, max_leaves: int) -> Tree:
        """Grow a tree; sums: of each channel and the row count over all members."""
        self._order[:] = self._rows
        return _Growing(self, gains, cuts, max_leaves).grow(sums)

    def divide(self, leaf: Leaf, mass: NDArray[np.int64]) -> tuple[int, int]:
        """Order the leaf's rows by its cut; returns (first right position, local mass of the left rows)."""
        assert leaf.record is not None
        feature = int(leaf.record[FEATURE])
        missing_code = int(self.binning.n_thresholds[feature]) + 1
        cut = (int(leaf.record[KIND]), int(leaf.record[BIN]), missing_code, bool(leaf.record[MISSING_LEFT]))
        codes, segment = self.shard.bins[feature], (leaf.start, leaf.stop)
        middle, left_mass = partition(self._order, codes, segment, cut, mass, self._scratch)
        return int(middle), int(left_mass)

    def rows(self, leaf: Leaf) -> NDArray[np.int32]:
        """The leaf's local rows."""
        return self._order[leaf.start : leaf.stop]

    def name_leaves(self, segments: Sequence[tuple[int, int]], leaf_of_row: NDArray[np.int32]) -> None:
        """leaf_of_row (OUT): the index of the segment each row is in."""
        _name_leaves(self._order, np.array(segments, np.int64), leaf_of_row)


@kernel
def _name_leaves(order, segments, leaf_of_row):  # type: ignore[no-untyped-def]
    for leaf in range(segments.shape[0]):
        for k in range(segments[leaf, 0], segments[leaf, 1]):
            leaf_of_row[order[k]] = leaf


class _Growing:
    """One tree on its way: its leaves in index order and the nodes taken so far."""

    def __init__(self, grower: Grower, gains: GainMatrix, cuts: Cuts, max_leaves: int) -> None:
        self._grower, self._gains, self._cuts, self._max_leaves = grower, gains, cuts, max_leaves
        self._borrowed: list[Integers] = []
        self._nodes: list[list[int]] = []
        self._parents: list[tuple[int, int] | None] = [None]  # of each leaf: the (node, column) that points to it
        self._leaves: list[Leaf] = []

    def grow(self, sums: Integers) -> Tree:
        """Take leaves, best first and lowest index first among equals, until the limit or no gain is left."""
        self._leaves.append(self._root(sums))
        while len(self._leaves) < self._max_leaves:
            best = max(range(len(self._leaves)), key=lambda index: self._leaves[index].gain)  # the first of equals
            if self._leaves[best].gain == 0:
                break
            self._make_children(best)
            self._take(best)
        return self._finish()

    def _root(self, sums: Integers) -> Leaf:
        votes, value = self._cuts.root(sums[:-1])
        root = Leaf(0, self._grower.shard.n_rows, sums, votes, value, 0, self._gains.total_mass)
        if self._max_leaves > 1:
            [root.hist] = self._reduced([None])
            self._search([root])
        return root

    def _make_children(self, best: int) -> None:
        """See to it that the best leaf has children; their histograms are needed only if more splits follow."""
        splits_left = self._max_leaves - len(self._leaves)
        if self._leaves[best].children is not None:
            return
        if splits_left == 1:
            self._divide(self._leaves[best])
        elif self._grower.collective.size == 1:
            self._expand([self._leaves[best]])
        else:
            worth = [leaf for leaf in self._leaves if leaf.gain > 0 and leaf.children is None]
            self._expand(sorted(worth, key=lambda leaf: -leaf.gain)[: splits_left - 1])

    def _expand(self, leaves: list[Leaf]) -> None:
        """Compute the children of several leaves with one reduction: build the smaller, subtract for the other."""
        pairs = [self._divide(leaf) for leaf in leaves]
        small_left = [
            2 * int(left.sums[-1]) <= int(leaf.sums[-1]) for leaf, (left, _) in zip(leaves, pairs, strict=True)
        ]
        smaller = [left if is_left else right for is_left, (left, right) in zip(small_left, pairs, strict=True)]
        for leaf, pair, small, hist in zip(leaves, pairs, smaller, self._reduced(smaller), strict=True):
            assert leaf.hist is not None
            np.subtract(leaf.hist, hist, out=leaf.hist)
            small.hist = hist
            (pair[1] if small is pair[0] else pair[0]).hist = leaf.hist
            leaf.hist = None
        self._search([child for pair in pairs for child in pair])

    def _divide(self, leaf: Leaf) -> tuple[Leaf, Leaf]:
        """Make a leaf's children and order its rows."""
        assert leaf.record is not None
        middle, left_mass = self._grower.divide(leaf, self._gains.mass)
        left_sums = leaf.record[RECORD_FIELDS:]
        right_sums = leaf.sums - left_sums
        left_votes, left_value, right_votes, right_value = self._cuts.children(left_sums[:-1], right_sums[:-1])
        depth, right_mass = leaf.depth + 1, leaf.local_mass - left_mass
        left = Leaf(leaf.start, middle, left_sums, left_votes, left_value, depth, left_mass)
        right = Leaf(middle, leaf.stop, right_sums, right_votes, right_value, depth, right_mass)
        leaf.children = (left, right)
        return leaf.children

    def _reduced(self, leaves: Sequence[Leaf | None]) -> list[Integers]:
        """This member's slice of the leaves' histograms (None: of all rows), summed over the members."""
        local = self._grower.builder.empty(len(leaves), self._gains.values.shape[1])
        for histogram, leaf in zip(local, leaves, strict=True):
            self._grower.builder.add(self._gains, None if leaf is None else self._grower.rows(leaf), histogram)
        summed = self._grower.collective.reduce_scatter(local, self._grower.slices.bins)
        if summed is local:
            self._borrowed.append(local)
        else:
            self._grower.builder.give_back(local)
        return list(summed)

    def _search(self, leaves: list[Leaf]) -> None:
        """Find the leaves' best cuts over all members: highest value, then lowest rank, whose features come first."""
        team = self._grower.team
        found = [self._cuts.best_record(_known(leaf.hist), leaf.sums, team) for leaf in leaves]
        if self._grower.collective.size == 1:
            for leaf, record in zip(leaves, found, strict=True):
                leaf.best_cut_is(record, leaf.local_mass)
            return
        records = np.stack(found)
        records[:, MASS] = [leaf.local_mass for leaf in leaves]
        gathered = np.stack(self._grower.collective.all_gather(records))
        winners = gathered[:, :, VALUE].argmax(axis=0)
        masses = gathered[:, :, MASS].sum(axis=0)
        for index, leaf in enumerate(leaves):
            leaf.best_cut_is(gathered[winners[index], index], int(masses[index]))

    def _take(self, index: int) -> None:
        """Turn a leaf into a node: its left child keeps the index, the right one gets the next free index."""
        leaf = self._leaves[index]
        assert leaf.record is not None
        assert leaf.children is not None
        node, new = len(self._nodes), len(self._leaves)
        cut = [int(leaf.record[field]) for field in (FEATURE, KIND, BIN, MISSING_LEFT)]
        self._nodes.append([*cut, ~index, ~new])
        parent = self._parents[index]
        if parent is not None:
            self._nodes[parent[0]][parent[1]] = node
        self._parents[index] = (node, LEFT)
        self._parents.append((node, RIGHT))
        self._leaves[index], right = leaf.children
        self._leaves.append(right)

    def _finish(self) -> Tree:
        """The tree; the histograms go back to the builder."""
        leaf_of_row = np.empty(self._grower.shard.n_rows, np.int32)
        self._grower.name_leaves([(leaf.start, leaf.stop) for leaf in self._leaves], leaf_of_row)
        for histogram in self._borrowed:
            self._grower.builder.give_back(histogram)
        nodes = np.array(self._nodes, np.int64).reshape(len(self._nodes), 6)
        votes = np.stack([leaf.votes for leaf in self._leaves])
        return Tree(nodes, votes, sum(leaf.value for leaf in self._leaves), leaf_of_row)


def _known(hist: Integers | None) -> Integers:
    """A frontier leaf's histogram: it has one until its children take it over."""
    assert hist is not None
    return hist
