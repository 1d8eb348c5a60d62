"""Growth of a tree by a gang: histograms reduced by feature slice, several frontier leaves in one exchange.

The members split the best leaves' rows on speculation, sum the histograms of the smaller children and search them;
then leaves are taken in best-first order as long as their children are known. What was computed and not taken is
dropped, so the tree and its numbering are those of growth one leaf at a time.

    leaf --(best cut known)--> expanded (children's histograms and best cuts known) --> taken (node of the tree)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
from boost_core.cut_search import left_sums, search_features
from boost_core.gain_matrix import GainMatrix
from boost_core.histogram import HistogramBuilder
from boost_core.jit import kernel
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.tree import GAIN_SHIFT, LEFT, NO_LIMIT, NODE_FIELDS, RIGHT, Tree
from boost_core.tree_steps import value_leaves, value_root

Integers = NDArray[np.int64]
Payload = NDArray[np.int32]


@dataclass
class Leaf:
    """A leaf while the tree grows. Its local rows are order[start:stop]; sums are over all members."""

    start: int
    stop: int
    sums: Integers  # [n_channels + 1], the last one counts the rows
    payload: Payload  # [n_outputs]
    value: int
    local_mass: int
    depth: int = 0  # cuts above it
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


@dataclass
class GangMember:
    """What gang growth needs of a member, kept over the rounds."""

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
        self._order[:] = self._rows
        return _Growing(self, objective, gains, (max_leaves, max_depth)).grow(sums, n_outputs)

    def best_record(self, objective: Any, hist: Integers, sums: Integers) -> Integers:
        """A node's best cut in this member's slice, int64 [RECORD_FIELDS + n_channels + 1] (layout: cut.py).

        hist: [bins of the slice, padded]; sums: the node's, [n_channels + 1]. Without features: no cut.
        """
        record = np.zeros(RECORD_FIELDS + sums.shape[0], np.int64)
        record[VALUE] = NO_CUT
        first, stop = self.slices.own
        if first == stop:
            return record
        binning, origin = self.binning, int(self.slices.bins[self.slices.rank])
        layout = (binning.bin_start, binning.n_thresholds, binning.has_missing, origin)

        def part(start: int, end: int) -> Integers:
            found = np.zeros(RECORD_FIELDS, np.int64)
            search_features(objective, hist, sums, layout, (first + start, first + end), found)
            return found

        found = self.team.over(stop - first, hist.size, part)
        record[:RECORD_FIELDS] = max(found, key=lambda each: int(each[VALUE]))  # the first of equal values
        if record[VALUE] != NO_CUT:
            left_sums(hist, layout, record, record[RECORD_FIELDS:])
        return record

    def divide(self, leaf: Leaf, mass: NDArray[np.int64]) -> tuple[int, int]:
        """Order the leaf's rows by its cut; returns (first right position, local mass of the left rows)."""
        assert leaf.record is not None
        feature = int(leaf.record[FEATURE])
        missing_code = int(self.binning.n_thresholds[feature]) + 1
        cut = (
            int(leaf.record[KIND]),
            int(leaf.record[BIN]),
            missing_code,
            bool(leaf.record[MISSING_LEFT]),
        )
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

    def __init__(self, member: GangMember, objective: Any, gains: GainMatrix, limits: tuple[int, int]) -> None:
        self._member, self._objective, self._gains = member, objective, gains
        self._max_leaves, self._max_depth = limits
        self._borrowed: list[Integers] = []
        self._nodes: list[list[int]] = []
        self._parents: list[tuple[int, int] | None] = [None]  # of each leaf: the (node, column) that points to it
        self._leaves: list[Leaf] = []

    def grow(self, sums: Integers, n_outputs: int) -> Tree:
        """Take leaves, best first and lowest index first among equals, until the limit or no gain is left."""
        self._leaves.append(self._root(sums, n_outputs))
        while len(self._leaves) < self._max_leaves:
            best = max(range(len(self._leaves)), key=lambda index: self._leaves[index].gain)  # the first of equals
            if self._leaves[best].gain == 0:
                break
            self._make_children(best)
            self._take(best)
        return self._finish()

    def _root(self, sums: Integers, n_outputs: int) -> Leaf:
        payload = np.zeros(n_outputs, np.int32)
        value = int(value_root(self._objective, sums, payload))
        root = Leaf(0, self._member.shard.n_rows, sums, payload, value, self._gains.total_mass)
        if self._max_leaves > 1:
            [root.hist] = self._reduced([None])
            self._search([root])
        return root

    def _make_children(self, best: int) -> None:
        """See to it that the best leaf has children; their histograms are needed only if more splits follow."""
        splits_left = self._max_leaves - len(self._leaves)
        if self._leaves[best].children is not None:
            return
        if splits_left == 1 or not self._splits_twice(self._leaves[best]):
            self._divide(self._leaves[best])
        else:
            worth = [leaf for leaf in self._leaves if leaf.gain > 0 and leaf.children is None]
            worth = [leaf for leaf in worth if self._splits_twice(leaf)]
            self._expand(sorted(worth, key=lambda leaf: -leaf.gain)[: splits_left - 1])

    def _splits_twice(self, leaf: Leaf) -> bool:
        """Whether a leaf's children may be split too."""
        return leaf.depth + 1 < self._max_depth

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
        middle, left_mass = self._member.divide(leaf, self._gains.mass)
        sums = leaf.record[RECORD_FIELDS:]
        right_sums = leaf.sums - sums
        payloads = np.zeros((2, leaf.payload.shape[0]), np.int32)
        left_value, right_value = value_leaves(self._objective, sums, right_sums, payloads)
        left = Leaf(leaf.start, middle, sums, payloads[0], int(left_value), left_mass, leaf.depth + 1)
        right_mass = leaf.local_mass - left_mass
        right = Leaf(middle, leaf.stop, right_sums, payloads[1], int(right_value), right_mass, leaf.depth + 1)
        leaf.children = (left, right)
        return leaf.children

    def _reduced(self, leaves: Sequence[Leaf | None]) -> list[Integers]:
        """This member's slice of the leaves' histograms (None: of all rows), summed over the members."""
        local = self._member.builder.empty(len(leaves), self._gains.values.shape[1])
        for histogram, leaf in zip(local, leaves, strict=True):
            self._member.builder.add(
                self._gains,
                None if leaf is None else self._member.rows(leaf),
                histogram,
            )
        summed = self._member.collective.reduce_scatter(local, self._member.slices.bins)
        if summed is local:
            self._borrowed.append(local)
        else:
            self._member.builder.give_back(local)
        return list(summed)

    def _search(self, leaves: list[Leaf]) -> None:
        """Find the leaves' best cuts over all members: highest value, then lowest rank, whose features come first."""
        member = self._member
        records = np.stack([member.best_record(self._objective, _known(leaf.hist), leaf.sums) for leaf in leaves])
        records[:, MASS] = [leaf.local_mass for leaf in leaves]
        gathered = np.stack(self._member.collective.all_gather(records))
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
        leaf_of_row = np.empty(self._member.shard.n_rows, np.int32)
        self._member.name_leaves([(leaf.start, leaf.stop) for leaf in self._leaves], leaf_of_row)
        for histogram in self._borrowed:
            self._member.builder.give_back(histogram)
        nodes = np.array(self._nodes, np.int64).reshape(len(self._nodes), NODE_FIELDS)
        payload = np.stack([leaf.payload for leaf in self._leaves])
        return Tree(nodes, payload, sum(leaf.value for leaf in self._leaves), leaf_of_row)


def _known(hist: Integers | None) -> Integers:
    """A frontier leaf's histogram: it has one until its children take it over."""
    assert hist is not None
    return hist
