"""Grows trees on a member's rows: alone in one kernel call, in a gang with one exchange a level."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty, aligned_zeros
from boost_core.binning import Binning
from boost_core.bundles import Bundles, Bundling
from boost_core.collective import Collective
from boost_core.cut import Offer, slice_features
from boost_core.cut_search import room_for_search
from boost_core.forest import route
from boost_core.gain_matrix import GainMatrix
from boost_core.gang_growth import GangMember
from boost_core.histogram import features_a_pass
from boost_core.intrinsics import lanes_for, width_for
from boost_core.jit import JIT_DISABLED
from boost_core.kernel_times import new_times
from boost_core.leaf_sums import LeafSums, summing
from boost_core.lone_growth import (
    CONTROL_FIELDS,
    DIVIDED_FIELDS,
    FOUND_FIELDS,
    Blocks,
    Grow,
    Work,
    do_blocks,
    grow,
)
from boost_core.native_calls import LEADER, NO_CALL, Call, Room, make_call
from boost_core.objective import sums_in_bins
from boost_core.posts import n_threads
from boost_core.shard import Shard
from boost_core.sparse_gains import SparseGains
from boost_core.sparse_growth import SparseMember
from boost_core.team import Team
from boost_core.tree import NO_LIMIT, GrowingTree, Tree, finished, new_tree

Integers = NDArray[np.int64]
SLOT_BYTES = 1 << 30  # histograms kept at once, where two of them are smaller than that
BLOCKS_A_THREAD = 2  # at most, so that a thread that lags behind holds up little; more take longer in all
ALL = np.empty(0, np.int32)
CONTROL = 2  # which part of a growth's room it is (_LoneGrower._kept)
WORTH_THREADS = 200_000  # vector additions of a root histogram (about 100 us) from which a second thread helps


class Growth(NamedTuple):
    """What a weak learner that is one tree of votes asks for, besides gains: as in Grower.grow."""

    objective: Any
    max_leaves: int
    n_outputs: int
    max_depth: int = NO_LIMIT


class Rooms:
    """Where what growth is given lies, one tree after another."""

    def __init__(self) -> None:
        self.grow, self.blocks = Room(grow), Room(do_blocks)


@dataclass
class Growing:
    """A tree that may grow, again and again, on gains in the same arrays. grow: what growth is given, and leaves, but
    for what sums the gains up (summing, which holds them) and does blocks of features."""

    grow: Grow
    blocks: Blocks
    rooms: Rooms
    summing: Callable[[], tuple[Call, Room]]

    def call(self) -> Call:
        """What grows it (native_calls.py), for as long as this lives; compiles growth. A tree of one leaf asks for no
        sums."""
        grows = self.grow.tree.gains.shape[0] > 1
        self._summing = summing, _ = self.summing() if grows else (NO_CALL, None)
        blocks = self.rooms.blocks.call(self.blocks._replace(summing=summing))
        return self.rooms.grow.call(self.grow._replace(summing=summing, blocks=blocks))


@dataclass
class Grower:
    """Grows the trees of a run."""

    shard: Shard
    binning: Binning
    collective: Collective
    team: Team

    def __post_init__(self) -> None:
        slices = slice_features(self.binning, self.collective.rank, self.collective.size)
        alone = self.collective.size == 1
        self._lone = _LoneGrower(self.shard, self.binning, self.team) if alone else None
        self._sparse: SparseMember | None = None  # made where gains are sparse
        self._slices = slices
        self._gang = None if alone else GangMember(self.shard, self.binning, self.collective, self.team)

    def offer(self, binning: Binning) -> None:
        """From now on look for cuts in the features that this binning offers; its bins are the same."""
        self.binning = binning
        if self._lone is not None:
            self._lone.offer(binning)
        if self._gang is not None:
            self._gang.offer(binning)
        if self._sparse is not None:
            self._sparse.binning = binning

    def grow(
        self,
        objective: Any,
        gains: GainMatrix,
        sums: Integers,
        max_leaves: int,
        n_outputs: int,
        max_depth: int = NO_LIMIT,
    ) -> Tree:
        """Grow a tree best-first.

        objective: see objective.py; sums: int64 [n_channels + 1] of each channel and the row count over all members;
        n_outputs: numbers in a leaf's payload; max_depth: most cuts above a leaf.
        """
        if isinstance(gains, SparseGains):  # single-label weak learners only
            self._sparse = self._sparse or SparseMember(
                self.shard, self.binning, self._slices, self.collective, self.team
            )
            return self._sparse.grow(gains, sums, (max_leaves, max_depth))
        if self._lone is not None:
            return self._lone.grow(objective, gains, sums, max_leaves, n_outputs, max_depth)
        assert self._gang is not None
        return self._gang.grow(objective, gains, sums, max_leaves, n_outputs, max_depth)

    def growing(self, growth: Growth, gains: GainMatrix, sums: Integers) -> Growing | None:
        """What grows trees in a kernel on gains that are put into these arrays; None: in a gang."""
        return None if self._lone is None else self._lone.growing(growth, gains, sums, Rooms())


def even_edges(weights: Integers, parts: int) -> Integers:
    """Where contiguous parts of about equal weights begin, and the end, int64 [parts + 1]; some may be empty. Each edge
    is the nearest one: cut.feature_edges, by which members share features, rounds up, and 16 even features became 9
    and 7 for two threads of six blocks."""
    begins = np.concatenate([[0], np.cumsum(weights)])
    wanted = begins[-1] * np.arange(parts + 1) / parts
    after = np.searchsorted(begins, wanted)
    nearer = wanted - begins[np.maximum(after - 1, 0)] < begins[after] - wanted  # the one before
    edges: Integers = (after - nearer).astype(np.int64)
    return edges


def _shares(n_passes: int) -> Integers:
    """The passes that a thread's blocks begin with: all blocks have as many, or one more than the last ones."""
    n_blocks = min(BLOCKS_A_THREAD, n_passes)
    return np.array([-(-n_passes * block // n_blocks) for block in range(n_blocks)], np.int64)


class _Prepared(NamedTuple):
    """What growth is given that stays from one tree to the next of the same shape: (max_leaves, n_channels, n_outputs,
    max_depth, sums in a bin, rows if not all). room: histograms and what _kept says, then times; sums: what
    they are summed by, but for the gains."""

    shape: tuple[int, ...]
    threads: int
    edges: Integers
    table: tuple[Any, ...]
    tree: GrowingTree
    room: tuple[Integers, ...]
    sums: Callable[[tuple[NDArray[np.signedinteger], int]], LeafSums]


class _LoneGrower:
    """Arrays of lone growth, kept over the rounds."""

    def __init__(self, shard: Shard, binning: Binning, team: Team) -> None:
        self._shard, self._team = shard, team
        self._bundling = Bundling(shard.bins, Offer.of(binning))
        self.offer(binning)
        self._order = np.empty(shard.n_rows, np.int32)
        self._hists = np.empty((0, 0, 0), np.int64)
        self._room: dict[tuple[int, ...], tuple[GrowingTree, tuple[Integers, ...]]] = {}
        # Gains that self._summing is for; not held, since those of a sample are made anew each round.
        self._summed: tuple[Callable[[], NDArray[np.signedinteger] | None], _Prepared | None] = lambda: None, None
        self._summing: tuple[Call, Room]
        self._rooms, self._total = Rooms(), np.zeros(1, np.int64)
        self._untimed = new_times()  # of helpers: the leader's times are those of the call

    def offer(self, binning: Binning) -> None:
        """Which features there are stays; those that are not offered have one bin, and no histograms are built."""
        self._binning = binning
        self._with_cuts = Offer.of(binning).features
        self._layouts: dict[tuple[int, int, bool], tuple[Integers, Integers]] = {}
        self._last: _Prepared | None = None

    def grow(
        self,
        objective: Any,
        gains: GainMatrix,
        sums: Integers,
        max_leaves: int,
        n_outputs: int,
        max_depth: int = NO_LIMIT,
    ) -> Tree:
        n_rows = gains.values.shape[0]
        rows = ALL if gains.rows is None or len(gains.rows) == n_rows else gains.rows
        growth = Growth(objective, max_leaves, n_outputs, max_depth)
        growing = self.growing(growth, gains, sums, self._rooms, rows)
        make_call(*growing.call(), LEADER)
        grown = finished(growing.grow.tree, growing.grow.work.leaf_of_row)
        if rows is ALL:
            return grown
        return grown._replace(leaf_of_row=route(grown, self._shard.bins, self._binning, self._team))

    def growing(
        self,
        growth: Growth,
        gains: GainMatrix,
        sums: Integers,
        rooms: Rooms,
        rows: NDArray[np.int32] = ALL,
    ) -> Growing:
        """See Grower.growing; helpers are called back. rows: those of gains, or ALL."""
        (objective, max_leaves, n_outputs, max_depth), team = growth, self._team
        n_sums = sums_in_bins(objective, gains.n_channels)
        shape = (max_leaves, gains.n_channels, n_outputs, max_depth, n_sums, len(rows))
        prepared = self._last
        if prepared is None or shape != prepared.shape:
            prepared = self._last = self._prepared(shape)
        # room for rows on their way while the tree grows, and each row's leaf in the end
        leaf_of_row = np.empty(gains.values.shape[0], np.int32)
        work = Work(self._order, leaf_of_row, leaf_of_row, *prepared.room)
        edges, table, tree = prepared.edges, prepared.table, prepared.tree
        self._total[0] = gains.total_mass
        grow = Grow(
            crew=team.crew,
            posts=team.posts(prepared.threads),
            rows=rows,
            n_blocks=edges.shape[0] - 1,
            objective=objective,
            table=table,
            sums=sums,
            total=self._total,
            work=work,
            tree=tree,
            blocks=NO_CALL,
            summing=NO_CALL,
        )
        blocks = Blocks(team.crew, n_threads(grow.posts), edges, objective, table, work, self._untimed, tree, NO_CALL)
        return Growing(grow, blocks, rooms, lambda: self._summing_of(prepared, gains))

    def _summing_of(self, prepared: "_Prepared", gains: GainMatrix) -> tuple[Call, Room]:
        """What sums these gains up; as before where they are the same array."""
        values, before = self._summed
        if before is not prepared or values() is not gains.values:
            self._summing = summing(prepared.sums(gains.flat))
            self._summed = weakref.ref(gains.values), prepared
        return self._summing

    def _prepared(self, shape: tuple[int, ...]) -> "_Prepared":
        """What growth of trees of a shape is given besides gains; shape: see _Prepared."""
        max_leaves, n_channels, n_outputs, max_depth, n_sums, n_rows = shape
        n_padded = width_for(n_sums)
        lanes = lanes_for(n_sums)
        threads = self._threads(len(lanes), n_rows or self._shard.n_rows)
        bundles, joint = self._bundling.of(self._with_cuts, n_padded)
        (edges, singles), hists = self._layout(threads, bundles, n_padded), self._histograms(max_leaves, n_padded)
        tree, room = self._kept((max_leaves, n_channels, n_outputs, max_depth, edges.shape[0] - 1, hists.shape[0]))
        binning, bins, features = self._binning, self._shard.bins, self._with_cuts
        table = (bins, binning.bin_start, binning.n_thresholds, binning.has_missing, features)

        def sums(gains: tuple[NDArray[np.signedinteger], int]) -> LeafSums:
            return LeafSums(
                bins=bins,
                gains=gains,
                order=self._order,
                segments=tree.segments,
                hists=hists,
                joint=joint,
                control=room[CONTROL],
                edges=edges,
                bin_start=binning.bin_start,
                features=features,
                singles=singles,
                bundles=bundles,
                n_channels=n_channels,
                lanes=lanes,
            )

        return _Prepared(shape, threads, edges, table, tree, (hists, *room, self._team.times), sums)

    def _kept(self, sizes: tuple[int, ...]) -> tuple[GrowingTree, tuple[Integers, ...]]:
        """Room for a tree, and slots, taken, control, found, divided, bounds, room; it is used again, and growth sets
        all of it that it reads."""
        room = self._room.get(sizes)
        if room is None:
            *shape, n_blocks, n_slots = sizes
            tree = new_tree(*shape)
            work = tuple(
                aligned_zeros(size, np.int64)
                for size in (
                    (shape[0],),
                    (n_slots,),
                    (CONTROL_FIELDS,),
                    (n_blocks, 2, FOUND_FIELDS),
                    (n_blocks, DIVIDED_FIELDS),
                    (n_blocks + 1,),
                    (n_blocks, *room_for_search(width_for(shape[1] + 1))),
                )
            )
            room = self._room[sizes] = (tree, work)
        return room

    def _layout(self, threads: int, bundles: Bundles, n_padded: int) -> tuple[Integers, Integers]:
        """Blocks of the features, and those in no bundle: `edges` and `singles` of LeafSums."""
        together = features_a_pass(n_padded)
        key = threads, together, len(bundles.numbers) > 0
        layout = self._layouts.get(key)
        if layout is None:
            columns = bundles.columns(self._with_cuts)
            blocks = columns[self._blocks(threads, together, columns)]
            layout = self._layouts[key] = (blocks, bundles.singles(self._with_cuts))
        return layout

    def _blocks(self, threads: int, together: int, columns: Integers) -> Integers:
        """Which columns (of Bundles.columns) blocks of features begin with: each thread has a few, of whole passes over
        the rows but for its last one; a pass takes so many columns together. There is one block, if an empty one."""
        n_columns, with_cuts = columns.shape[0] - 1, self._with_cuts
        if n_columns == 0:
            return np.zeros(2, np.int64)
        weights = np.ones(n_columns, np.int64)
        if columns[-1, 2] == 0 and len(with_cuts):
            weights = np.diff(self._binning.bin_start)[with_cuts]
        starts = even_edges(weights, threads)
        blocks = [start + together * _shares(-(-(stop - start) // together)) for start, stop in pairwise(starts)]
        return np.unique(np.append(np.concatenate(blocks), n_columns))

    def _threads(self, n_lanes: int, n_rows: int) -> int:
        """Threads that are worth sharing the work with."""
        n_features = len(self._with_cuts)
        useful = 1 if JIT_DISABLED else self._team.useful(n_rows * n_features * n_lanes, WORTH_THREADS)
        return max(1, min(useful, n_features))

    def _histograms(self, max_leaves: int, n_padded: int) -> Integers:
        """int64 [n_slots, n_bins, n_padded]."""
        n_bins = int(self._binning.bin_start[-1])
        wanted = max(2, min(max_leaves, SLOT_BYTES // max(8 * n_bins * n_padded, 1)))
        if self._hists.shape != (wanted, n_bins, n_padded):
            self._hists = aligned_empty((wanted, n_bins, n_padded), np.int64)
        return self._hists
