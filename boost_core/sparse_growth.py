"""Growth of single-label trees from sparse gains, best-first, alone or in a gang.

A leaf keeps a table of its hot classes' sums, of which the smaller child's is built and the other one's is what is
left. Where tables are large only the leaves of the greatest gains keep theirs, and both children's are built. Cold
entries are swept anew for every leaf. In a gang the tables are reduced by feature slice, and the cold entries of a
leaf's rows go to all members, each of which sweeps its own features. The tree and its numbers are those of
lone_growth.py and gang_growth.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from boost_core.jit import kernel
from boost_core.kernel_times import HISTOGRAMS, PARTITION, SEARCH
from boost_core.shard import Shard
from boost_core.sparse_gains import SparseGains, mass_of
from boost_core.sparse_search import (
    NOTHING,
    count_entries,
    fill_table,
    name_segments,
    node_entries,
    number_labels,
    search_sparse,
    select_entries,
    sum_by_label,
)
from boost_core.team import Team
from boost_core.tree import GAIN_SHIFT, LEFT, NODE_FIELDS, RIGHT, Tree

Integers = NDArray[np.int64]
Rows = NDArray[np.int32]
# Cold classes of the greatest sums, with which a node is searched first. Most often no other class can win a side.
FIRST_CLASSES = 64
TABLE_BYTES = 1 << 30  # of tables that leaves keep: as many as fit, and one at least


@dataclass
class SparseLeaf:
    """A leaf while the tree grows. Its local rows are order[start:stop].

    local_mass, classes (sums of each class and the number of rows, [n_classes + 1]) are of this member, all else is of
    all members.
    """

    start: int
    stop: int
    n_rows: int
    label: int
    value: int
    local_mass: int
    depth: int
    classes: Integers
    table: Integers | None = None  # this member's slice
    record: Integers | None = None
    gain: int = 0
    children: "tuple[SparseLeaf, SparseLeaf] | None" = None


@dataclass(frozen=True)
class Cold:
    """Cold entries of a node: their places (columns of codes), labels (classes, then numbers from 0 up) and gains."""

    codes: NDArray[np.uint8]
    first_feature: int  # of codes
    places: Rows
    labels: Rows
    gains: Integers
    n_labels: int = 0

    def only(self, kept: NDArray[np.bool_]) -> "Cold":
        """The entries of some labels, bool [n_labels]."""
        out = (np.empty_like(self.labels), np.empty_like(self.gains), np.empty_like(self.places))
        count = int(select_entries(self.labels, self.gains, self.places, kept, out))
        return replace(self, labels=out[0][:count], gains=out[1][:count], places=out[2][:count])


class Ranked:
    """A node's cold entries, those of the labels of the greatest sums at hand."""

    def __init__(self, cold: Cold) -> None:
        self._cold = cold
        self._sums = np.zeros(cold.n_labels, np.int64)
        sum_by_label(cold.labels, cold.gains, self._sums)
        self.greatest = int(self._sums.max(initial=0))
        self._least = 0  # the least sum of those at hand
        if cold.n_labels > FIRST_CLASSES:
            self._least = int(np.partition(self._sums, -FIRST_CLASSES)[-FIRST_CLASSES])
        self.most = cold.only(self._sums >= self._least) if self._least > 0 else cold

    def that_reach(self, least: int) -> Cold | None:
        """Entries of the labels whose sums reach `least`; None if there are none but those at hand."""
        wanted = self._sums >= least
        return self._cold.only(wanted) if np.any(wanted & (self._sums < self._least)) else None


@kernel
def _partition(order, bins, segment, cut, scratch):  # type: ignore[no-untyped-def]
    """cut.partition, for Python."""
    return partition(order, bins, segment, cut, scratch)


@dataclass
class SparseMember:
    """What growth from sparse gains needs of a member, kept over the rounds."""

    shard: Shard
    binning: Binning
    slices: FeatureSlices
    collective: Collective
    team: Team

    def __post_init__(self) -> None:
        self.rows = np.arange(self.shard.n_rows, dtype=np.int32)
        self.order, self.scratch = np.empty_like(self.rows), np.empty_like(self.rows)

    def grow(self, gains: SparseGains, sums: Integers, limits: tuple[int, int]) -> Tree:
        """Grow a tree; sums: as SparseGains.sums, over all members; limits: most leaves, most cuts above a leaf."""
        self.order[:] = self.rows
        return _SparseGrowing(self, gains, limits).grow(sums)

    def divide(self, leaf: SparseLeaf, mass: Integers) -> tuple[int, int]:
        """Order the leaf's rows by its cut; returns (first right position, local mass of the left rows)."""
        assert leaf.record is not None
        feature, kind, last_left, missing_left = (int(leaf.record[f]) for f in (FEATURE, KIND, BIN, MISSING_LEFT))
        cut = (kind, last_left, int(self.binning.n_thresholds[feature]) + 1, bool(missing_left))
        segment = (leaf.start, leaf.stop)
        state = (self.order, self.shard.bins[feature], segment, cut, self.scratch)
        middle = int(self.team.timed(PARTITION, _partition, *state))
        return middle, int(self.team.timed(PARTITION, mass_of, mass, self.order[leaf.start : middle]))


class _SparseGrowing:
    """One tree on its way: its leaves in index order and the nodes taken so far."""

    def __init__(self, member: SparseMember, gains: SparseGains, limits: tuple[int, int]) -> None:
        self._member, self._gains = member, gains
        self._max_leaves, self._max_depth = limits
        self._nodes: list[list[int]] = []
        self._parents: list[tuple[int, int] | None] = [None]
        self._leaves: list[SparseLeaf] = []
        self._numbers = np.full(gains.n_channels, -1, np.int32)
        size = 8 * int(member.binning.bin_start[-1]) * (gains.hot_classes.shape[0] + 1)
        self._most_tables = max(1, TABLE_BYTES // size)  # of all features, so that all members keep the same ones
        # a class that is not hot has a sum of 0 where it has no entry
        self._floor = 0 if gains.hot_classes.shape[0] < gains.n_channels else NOTHING

    def grow(self, sums: Integers) -> Tree:
        """Take leaves, best first and lowest index first among equals, until the limit or no gain is left."""
        classes, offset, n_rows = sums[:-2], int(sums[-2]), int(sums[-1])
        label = int(classes.argmax())
        n_local = self._member.shard.n_rows
        own = self._gains.sums_of(self._member.order, self._member.team)
        root = SparseLeaf(0, n_local, n_rows, label, int(classes[label]), self._gains.total_mass, 0, own)
        self._leaves.append(root)
        if self._max_leaves > 1:
            [root.table] = self._reduced([root])
            self._search([root])
        while len(self._leaves) < self._max_leaves:
            best = max(range(len(self._leaves)), key=lambda index: self._leaves[index].gain)
            if self._leaves[best].gain == 0:
                break
            self._make_children(best)
            self._take(best)
        return self._finish(offset)

    def _make_children(self, best: int) -> None:
        """See to it that the best leaf has children; what is searched in them is needed only if more splits follow."""
        splits_left = self._max_leaves - len(self._leaves)
        leaf = self._leaves[best]
        if leaf.children is not None:
            return
        if splits_left == 1 or leaf.depth + 1 >= self._max_depth:
            self._divide([leaf])
            leaf.table = None
            return
        worth = [leaf for leaf in self._leaves if leaf.gain > 0 and leaf.children is None]
        worth = [leaf for leaf in worth if leaf.depth + 1 < self._max_depth]
        # alone there is no exchange to save, so nothing is done on speculation
        # in a gang tables of all features exist until they are reduced: half of those that are kept, two a leaf
        most = 1 if self._member.collective.size == 1 else min(splits_left - 1, max(1, self._most_tables // 4))
        self._expand(sorted(worth, key=lambda leaf: -leaf.gain)[:most])

    def _expand(self, leaves: list[SparseLeaf]) -> None:
        """Compute the children of several leaves with one reduction: build the smaller, subtract for the other."""
        pairs = self._divide(leaves)
        ordered = [(left, right) if left.n_rows <= right.n_rows else (right, left) for left, right in pairs]
        built = [small for small, _ in ordered]
        built += [large for leaf, (_, large) in zip(leaves, ordered, strict=True) if leaf.table is None]
        for node, table in zip(built, self._reduced(built), strict=True):
            node.table = table
        for leaf, (small, large) in zip(leaves, ordered, strict=True):
            if leaf.table is not None and small.table is not None:
                np.subtract(leaf.table, small.table, out=leaf.table)
                large.table, leaf.table = leaf.table, None
        self._search([child for pair in pairs for child in pair])
        self._drop_tables()

    def _drop_tables(self) -> None:
        """Keep as many tables as there is room for: those of the leaves that are taken first."""
        nodes = [*self._leaves]
        for node in nodes:
            nodes += node.children or ()
        kept = [node for node in nodes if node.table is not None]
        for node in sorted(kept, key=lambda node: -node.gain)[self._most_tables :]:
            node.table = None

    def _divide(self, leaves: Sequence[SparseLeaf]) -> list[tuple[SparseLeaf, SparseLeaf]]:
        """Order the leaves' rows and make their children."""
        spans: list[tuple[int, int, int]] = []
        sums: list[Integers] = []
        for leaf in leaves:
            middle, left_mass = self._member.divide(leaf, self._gains.mass)
            spans += [(leaf.start, middle, left_mass), (middle, leaf.stop, leaf.local_mass - left_mass)]
            sums += self._class_sums(leaf, middle)
        told = self._answers(sums)
        made = [
            SparseLeaf(start, stop, *answer, mass, leaves[number // 2].depth + 1, sums[number])
            for number, ((start, stop, mass), answer) in enumerate(zip(spans, told, strict=True))
        ]
        pairs = list(zip(made[::2], made[1::2], strict=True))
        for leaf, pair in zip(leaves, pairs, strict=True):
            leaf.children = pair
        return pairs

    def _class_sums(self, leaf: SparseLeaf, middle: int) -> tuple[Integers, Integers]:
        """This member's sums of the left and right rows: added up for the fewer, the others' are what is left."""
        order, left_is_small = self._member.order, middle - leaf.start <= leaf.stop - middle
        rows = order[leaf.start : middle] if left_is_small else order[middle : leaf.stop]
        small = self._gains.sums_of(rows, self._member.team)
        large = leaf.classes - small
        return (small, large) if left_is_small else (large, small)

    def _answers(self, sums: Sequence[Integers]) -> list[tuple[int, int, int]]:
        """(rows, label, value) of each leaf, over all members: the smallest label of the greatest sum."""
        collective, totals = self._member.collective, np.array(sums)
        if collective.size > 1:  # members tell each other what is not 0: (leaf, class, sum)
            leaves, classes = np.nonzero(totals)
            told = np.concatenate(collective.all_gather(np.stack([leaves, classes, totals[leaves, classes]], axis=1)))
            totals = np.zeros_like(totals)
            np.add.at(totals, (told[:, 0], told[:, 1]), told[:, 2])
        labels = totals[:, :-1].argmax(axis=1)
        return [(int(each[-1]), int(label), int(each[label])) for each, label in zip(totals, labels, strict=True)]

    def _reduced(self, leaves: Sequence[SparseLeaf]) -> list[Integers]:
        """This member's slice of the leaves' tables, summed over the members."""
        member, gains = self._member, self._gains
        bin_start = member.binning.bin_start
        tables = np.empty((len(leaves), int(bin_start[-1]), gains.hot_classes.shape[0] + 1), np.int64)
        for table, leaf in zip(tables, leaves, strict=True):
            rows = member.order[leaf.start : leaf.stop]
            entries = gains.hot_by_class(rows, member.team)

            def part(first: int, stop: int, rows: Rows = rows, entries: Any = entries, table: Integers = table) -> None:
                fill_table(member.shard.bins, entries, rows, gains.counts, bin_start, (first, stop), table)

            n_features = member.shard.n_features
            work = n_features * (rows.shape[0] + entries[1].shape[0]) + table.size
            member.team.over(n_features, work, part, HISTOGRAMS)
        return list(member.collective.reduce_scatter(tables, member.slices.bins))

    def _search(self, leaves: list[SparseLeaf]) -> None:
        """Find the leaves' best cuts over all members: highest value, then lowest rank, whose features come first."""
        records = np.stack([self._best_record(*each) for each in zip(leaves, self._cold(leaves), strict=True)])
        records[:, MASS] = [leaf.local_mass for leaf in leaves]
        gathered = np.stack(self._member.collective.all_gather(records))
        winners = gathered[:, :, VALUE].argmax(axis=0)
        masses = gathered[:, :, MASS].sum(axis=0)
        for index, leaf in enumerate(leaves):
            leaf.record = gathered[winners[index], index]
            value = int(leaf.record[VALUE])
            if value != NO_CUT and value - leaf.value > int(masses[index]) >> GAIN_SHIFT:
                leaf.gain = value - leaf.value
            else:
                leaf.table = None  # never split

    def _cold(self, leaves: Sequence[SparseLeaf]) -> list[Cold]:
        """The leaves' cold entries: of this member's rows, or in a gang those of all members."""
        found = [self._own_cold(leaf) for leaf in leaves]
        if self._member.collective.size > 1:
            found = self._exchanged(found)
        return [replace(cold, n_labels=int(number_labels(cold.labels, self._numbers))) for cold in found]

    def _own_cold(self, leaf: SparseLeaf) -> Cold:
        cold, rows = self._gains.cold, self._member.order[leaf.start : leaf.stop]
        m = int(count_entries(rows, cold))
        labels, gains, places = np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32)
        node_entries(rows, cold, labels, gains, places)
        return Cold(self._member.shard.bins, 0, places, labels, gains)

    def _exchanged(self, own: list[Cold]) -> list[Cold]:
        """All members' entries, with the codes of this member's features."""
        collective, slices = self._member.collective, self._member.slices
        sizes = collective.all_gather(np.array([cold.labels.shape[0] for cold in own], np.int64))
        labels = collective.all_gather(np.concatenate([cold.labels for cold in own]))
        gains = collective.all_gather(np.concatenate([cold.gains for cold in own]))
        codes = collective.all_gather(np.concatenate([cold.codes[:, cold.places].T for cold in own]))
        first, stop = slices.own
        bounds = [np.cumsum(each)[:-1] for each in sizes]
        split = zip(
            *(
                zip(np.split(a, at), np.split(b, at), np.split(c[:, first:stop], at), strict=True)
                for a, b, c, at in zip(labels, gains, codes, bounds, strict=True)
            ),
            strict=True,
        )
        return [
            Cold(
                np.ascontiguousarray(np.concatenate([part[2] for part in parts]).T),
                first,
                np.arange(sum(part[0].shape[0] for part in parts), dtype=np.int32),
                np.concatenate([part[0] for part in parts]),
                np.concatenate([part[1] for part in parts]),
            )
            for parts in split
        ]

    def _best_record(self, leaf: SparseLeaf, cold: Cold) -> Integers:
        """A node's best cut in this member's slice, int64 [RECORD_FIELDS]."""
        first, stop = self._member.slices.own
        if first == stop:
            none = np.zeros(RECORD_FIELDS, np.int64)
            none[VALUE] = NO_CUT
            return none
        assert leaf.table is not None
        table, ranked = leaf.table, Ranked(cold)

        def part(start: int, end: int) -> Integers:
            return self._best_of((first + start, first + end), table, ranked)

        work = table.size + 4 * (stop - first) * ranked.most.labels.shape[0]
        return max(self._member.team.over(stop - first, work, part, SEARCH), key=lambda each: int(each[VALUE]))

    def _best_of(self, features: tuple[int, int], table: Integers, ranked: "Ranked") -> Integers:
        """The best cut of some features: by the cold classes of the greatest sums, then by all that matter.

        A class of sum s adds at most s to a side, and the other side has at most the greatest sum of all. So only those
        classes matter with which that reaches the best cut's value.
        """
        found, greatest = self._searched(features, table, ranked.most)
        if int(found[VALUE]) == NO_CUT:
            return found
        others = ranked.that_reach(int(found[VALUE]) - max(greatest, ranked.greatest))
        return found if others is None else self._searched(features, table, others)[0]

    def _searched(self, features: tuple[int, int], table: Integers, cold: Cold) -> tuple[Integers, int]:
        """The best cut by hot classes and these cold ones, and the greatest sum of a hot class on a side."""
        member, binning = self._member, self._member.binning
        origin, found = int(member.slices.bins[member.slices.rank]), np.zeros(RECORD_FIELDS, np.int64)
        layout = (binning.bin_start, binning.n_thresholds, binning.has_missing, origin, cold.first_feature)
        entries = (cold.places, cold.labels, cold.gains)
        greatest = search_sparse(table, layout, features, self._floor, cold.codes, entries, cold.n_labels, found)
        return found, int(greatest)

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

    def _finish(self, offset: int) -> Tree:
        """The tree, its value that of the whole gain matrix."""
        leaf_of_row = np.empty(self._member.shard.n_rows, np.int32)
        segments = np.array([(leaf.start, leaf.stop) for leaf in self._leaves], np.int64)
        name_segments(self._member.order, segments, leaf_of_row)
        nodes = np.array(self._nodes, np.int64).reshape(len(self._nodes), NODE_FIELDS)
        payload = np.array([[leaf.label] for leaf in self._leaves], np.int32)
        return Tree(nodes, payload, sum(leaf.value for leaf in self._leaves) - offset, leaf_of_row)
