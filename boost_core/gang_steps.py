"""The steps of growing a tree in a gang, as kernels: Python is entered between them only to exchange sums.

next_level   takes the leaves whose children are known, picks those to expand next and divides their rows
recount      how many rows their children have, where histograms do not say                 -> summed over the members
build        histograms of the smaller children over this member's rows, or of its slice over all rows (gang_sums.py)
spread       what was reduced over the members, each at its place
search       the larger children's histograms, and the best cut in each child's, in this member's slice
settle       the records of these cuts with the sums of their left sides           -> gathered from the members
note         the winners become the candidates' best cuts
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.bundles import add_columns
from boost_core.common_bins import add_uncommon
from boost_core.cut import BIN, FEATURE, KIND, MASS, MISSING_LEFT, NO_CUT, RECORD_FIELDS, VALUE, partition
from boost_core.cut_search import MOST_BINS, left_sums, search_next, start_search
from boost_core.gain_matrix import absolute_sum
from boost_core.jit import counted_kernel, kernel, step
from boost_core.objective import set_leaves, set_root
from boost_core.row_vectors import EXCESS
from boost_core.tree import NODE_FIELDS
from boost_core.tree_steps import add_node, gain_of

Integers = NDArray[np.int64]
UNKNOWN = -1
# Entries of counts. MOST_AHEAD: leaves that are expanded in one go, at most.
N_LEAVES, N_NODES, N_CANDIDATES, N_SLOTS, MAX_LEAVES, MAX_DEPTH, CHEAP_ROWS, MOST_AHEAD = range(8)
PARENT, SMALL, LARGE = range(3)  # columns of `chosen`: an expanded candidate and its children, -1 where there is none


class Frontier(NamedTuple):
    """A tree while a gang grows it: candidates are leaves, and children computed on speculation.

    A candidate's children have the numbers children[c] (left) and children[c] + 1; -1 while unknown. All int64 but
    payload (int32); one entry a candidate: segments [n, 2], sums [n, n_channels + 1] over all members (the last one, of
    rows, of those that were expanded and their children), values, gains,
    depths, slots (its histogram; -1: none), children, records [n, fields], payload [n, n_outputs]. One entry a leaf:
    leaves (its candidate), parents [max_leaves, 2]. nodes [max_leaves, NODE_FIELDS]. mass [1]: absolute gains, of this
    member's rows until the root's cut is known, then of all members'.
    """

    segments: Integers
    sums: Integers
    values: Integers
    gains: Integers
    depths: Integers
    slots: Integers
    children: Integers
    records: Integers
    payload: NDArray[np.int32]
    leaves: Integers
    parents: Integers
    nodes: Integers
    counts: Integers
    mass: Integers


def new_frontier(
    max_leaves: int, n_channels: int, n_outputs: int, max_depth: int, cheap_rows: int, most_ahead: int
) -> Frontier:
    """Room for a tree. Only candidates that were leaves are expanded, each once: fewer than 2 max_leaves of them.

    cheap_rows: up to so many rows (of all members) a leaf is expanded though it may never be taken; most_ahead: how
    many leaves are expanded in one go at most.
    """
    n = 4 * max_leaves
    return Frontier(
        segments=np.zeros((n, 2), np.int64),
        sums=np.zeros((n, n_channels + 1), np.int64),
        values=np.zeros(n, np.int64),
        gains=np.zeros(n, np.int64),
        depths=np.zeros(n, np.int64),
        slots=np.zeros(n, np.int64),
        children=np.zeros(n, np.int64),
        records=np.zeros((n, RECORD_FIELDS + n_channels + 1), np.int64),
        payload=np.zeros((n, n_outputs), np.int32),
        leaves=np.zeros(max_leaves, np.int64),
        parents=np.zeros((max_leaves, 2), np.int64),
        nodes=np.zeros((max_leaves, NODE_FIELDS), np.int64),
        counts=np.array([0, 0, 0, 0, max_leaves, max_depth, cheap_rows, most_ahead], np.int64),
        mass=np.zeros(1, np.int64),
    )


@kernel
def start(front, objective, n_rows, sums, mass):  # type: ignore[no-untyped-def]
    """Candidate 0 is the only leaf and holds all rows, its histogram in slot 0; mass: of this member."""
    front.segments[0, 0], front.segments[0, 1] = 0, n_rows
    for c in range(sums.shape[0]):
        front.sums[0, c] = sums[c]
    front.values[0] = set_root(objective, sums, sums.shape[0] - 1, front.payload[0])
    front.mass[0] = mass
    front.children[0] = UNKNOWN
    front.parents[0, 0] = -1
    front.counts[N_LEAVES] = front.counts[N_CANDIDATES] = front.counts[N_SLOTS] = 1


@kernel
def next_level(front, objective, order, scratch, table, chosen):  # type: ignore[no-untyped-def]
    """Go on until histograms are needed: how many candidates in `chosen` (OUT) were divided; 0: the tree is done.

    order, scratch: int32 [n_rows]; table = (bins, n_thresholds).
    """
    rows = (order, scratch, table[0], table[1])
    counts = front.counts
    while counts[N_LEAVES] < counts[MAX_LEAVES]:
        best = _best_leaf(front)
        if best < 0:
            return 0
        candidate = front.leaves[best]
        if front.children[candidate] == UNKNOWN:
            splits_left = counts[MAX_LEAVES] - counts[N_LEAVES]
            if splits_left > 1 and front.depths[candidate] + 1 < counts[MAX_DEPTH]:
                return _expand(front, objective, rows, splits_left, chosen)
            _divide(front, objective, candidate, rows)
        _take(front, best)
    return 0


@step
def _best_leaf(front):  # type: ignore[no-untyped-def]
    """Largest gain, lowest index among equals; -1 if no gain is left."""
    best = 0
    for leaf in range(1, front.counts[N_LEAVES]):
        if front.gains[front.leaves[leaf]] > front.gains[front.leaves[best]]:
            best = leaf
    return best if front.gains[front.leaves[best]] > 0 else -1


@step
def _expand(front, objective, rows, splits_left, chosen):  # type: ignore[no-untyped-def]
    """Divide the best leaves whose children are not known: those that will probably be taken, and cheap ones."""
    n, rank, counts = 0, 0, front.counts
    n_rows = front.sums.shape[1] - 1
    below = np.int64(1) << 62
    last = -1
    while rank < splits_left - 1 and n < counts[MOST_AHEAD]:
        best = -1
        for leaf in range(front.counts[N_LEAVES]):
            gain = front.gains[front.leaves[leaf]]
            behind = gain < below or (gain == below and leaf > last)
            if gain > 0 and behind and (best < 0 or gain > front.gains[front.leaves[best]]):
                best = leaf
        if best < 0:
            break
        last, candidate = best, front.leaves[best]
        below = front.gains[candidate]
        fit = front.children[candidate] == UNKNOWN and front.depths[candidate] + 1 < front.counts[MAX_DEPTH]
        likely = 2 * rank < splits_left or front.sums[candidate, n_rows] <= front.counts[CHEAP_ROWS]
        if fit and likely:
            _divide(front, objective, candidate, rows)
            chosen[n, PARENT] = candidate
            _order_children(front, chosen[n], front.counts[N_SLOTS])
            front.counts[N_SLOTS] += 1
            n += 1
        rank += 1
    return n


@step
def _order_children(front, chosen, slot):  # type: ignore[no-untyped-def]
    """chosen (IN: PARENT, OUT): which child is the smaller one, whose histogram comes into the slot."""
    n_rows = front.sums.shape[1] - 1
    left = front.children[chosen[PARENT]]
    small_is_left = front.sums[left, n_rows] <= front.sums[left + 1, n_rows]
    chosen[SMALL] = left if small_is_left else left + 1
    chosen[LARGE] = left + 1 if small_is_left else left
    front.slots[chosen[LARGE]] = front.slots[chosen[PARENT]]
    front.slots[chosen[SMALL]] = slot


@kernel
def recount(front, chosen, sizes):  # type: ignore[no-untyped-def]
    """After next_level, which has `chosen` [n, 3] (IN/OUT): sizes [n, 2], rows of the left and the right children over
    all members."""
    n, n_rows = chosen.shape[0], front.sums.shape[1] - 1
    for e in range(n):
        left = front.children[chosen[e, PARENT]]
        front.sums[left, n_rows], front.sums[left + 1, n_rows] = sizes[e, 0], sizes[e, 1]
        _order_children(front, chosen[e], front.counts[N_SLOTS] - n + e)


@step
def _divide(front, objective, candidate, rows):  # type: ignore[no-untyped-def]
    """Make a candidate's children and order its rows."""
    order, scratch, bins, n_thresholds = rows
    record = front.records[candidate]
    feature = record[FEATURE]
    cut = (record[KIND], record[BIN], n_thresholds[feature] + 1, record[MISSING_LEFT] == 1)
    segment = (front.segments[candidate, 0], front.segments[candidate, 1])
    middle = partition(order, bins[feature], segment, cut, scratch)
    left = front.counts[N_CANDIDATES]
    right = left + 1
    front.counts[N_CANDIDATES] += 2
    front.children[candidate] = left
    front.segments[left, 0], front.segments[left, 1] = segment[0], middle
    front.segments[right, 0], front.segments[right, 1] = middle, segment[1]
    for c in range(front.sums.shape[1]):
        front.sums[left, c] = record[RECORD_FIELDS + c]
        front.sums[right, c] = front.sums[candidate, c] - record[RECORD_FIELDS + c]
    n_channels = front.sums.shape[1] - 1
    payloads = (front.payload[left], front.payload[right])
    values = set_leaves(objective, front.sums[left], front.sums[right], n_channels, payloads[0], payloads[1])
    front.values[left], front.values[right] = values
    for child in (left, right):
        front.gains[child] = 0
        front.depths[child] = front.depths[candidate] + 1
        front.children[child] = front.slots[child] = UNKNOWN


@step
def _take(front, leaf):  # type: ignore[no-untyped-def]
    """Turn a leaf into a node: its left child keeps the index, the right one gets the next free index."""
    counts, candidate = front.counts, front.leaves[leaf]
    new, node = counts[N_LEAVES], counts[N_NODES]
    counts[N_LEAVES] += 1
    counts[N_NODES] += 1
    add_node(front.nodes, front.parents, node, leaf, new, front.records[candidate])
    front.leaves[leaf] = front.children[candidate]
    front.leaves[new] = front.children[candidate] + 1


@kernel
def build(rows, bounds, slots, bins, gains, bin_start, parts, bundles, rest, lanes, hists):  # type: ignore[no-untyped-def]
    """hists[slots[e]] (OUT, [n_bins, padded]) for some features: histograms of lists of rows.

    rows: int32, all lists; bounds [n_lists, 2]: where they lie in it; bins uint8 [d, n]; gains: of GainMatrix.flat;
    bin_start as in Binning; parts, bundles: see bundles.add_columns; rest = (fours, common) of further features: see
    common_bins.add_uncommon.
    """
    for e in range(bounds.shape[0]):
        listed, totals = rows[bounds[e, 0] : bounds[e, 1]], hists[slots[e]].reshape(-1)
        add_columns(bins, listed, gains, bin_start, parts, bundles, lanes, totals)
        add_uncommon(bins, listed, gains, bin_start, rest[0], rest[1], lanes, totals)


@kernel
def spread(summed, slots, hists, bin_start, origin, features):  # type: ignore[no-untyped-def]
    """hists[slots[e]] (OUT, [slice bins, sums of a bin]) = summed[e], for some features; origin: the slice's first
    bin."""
    for j in features:
        begin, end = bin_start[j] - origin, bin_start[j + 1] - origin
        for e in range(summed.shape[0]):
            added = summed[e, begin:end].reshape(-1)
            hist = hists[slots[e]][begin:end].reshape(-1)
            for k in range(hist.shape[0]):
                hist[k] = added[k]


@counted_kernel
def search(front, chosen, objective, hists, layout, features, found):  # type: ignore[no-untyped-def]
    """The larger children's histograms, from their parents' and the smaller children's, and the best cuts of both.

    A feature after the other, so that its sums are read again while they are in the cache.

    hists: IN/OUT [n_slots, slice bins, sums of a bin, at least]; layout: as in cut_search; features: some of the slice,
    in order; found: OUT [2 n_chosen, RECORD_FIELDS], the smaller and the larger child's.
    """
    n_padded = hists.shape[2]
    sides = np.empty((found.shape[0], 2, n_padded), np.int64)
    excess = np.empty((2, MOST_BINS * EXCESS), np.int64)
    values = np.empty(found.shape[0], np.int64)
    for row in range(found.shape[0]):
        found[row, VALUE] = NO_CUT
        child = chosen[row // 2, SMALL + row % 2]
        if child >= 0:
            values[row] = start_search(objective, front.sums[child], n_padded, (sides[row, 0], sides[row, 1]))
    for j in features:
        begin, end = layout[0][j] - layout[3], layout[0][j + 1] - layout[3]
        for row in range(found.shape[0]):
            e, place = row // 2, row % 2
            child = chosen[e, SMALL + place]
            if child < 0:
                continue
            hist = hists[front.slots[child]]
            if place == 1:
                added, rest = hists[front.slots[chosen[e, SMALL]]][begin:end].reshape(-1), hist[begin:end].reshape(-1)
                for k in range(rest.shape[0]):
                    rest[k] -= added[k]
            search_next(
                objective,
                values[row],
                hist,
                front.sums[child],
                layout,
                j,
                (sides[row, 0], sides[row, 1]),
                (excess[0], excess[1]),
                found[row],
            )


@kernel
def settle(front, chosen, hists, layout, found, rows, gains, records):  # type: ignore[no-untyped-def]
    """records (OUT [2 n_chosen, fields]): the best of the parts' cuts (found [parts, 2 n_chosen, RECORD_FIELDS]).

    Absolute gains are added up where this member's best cut may be rounding: if that of all members is, each of theirs
    is. rows: in the order of the segments; gains: of GainMatrix.flat.
    """
    for row in range(records.shape[0]):
        child = chosen[row // 2, SMALL + row % 2]
        best = 0
        for part in range(1, found.shape[0]):
            if found[part, row, VALUE] > found[best, row, VALUE]:
                best = part
        record = records[row]
        for field in range(record.shape[0]):
            record[field] = found[best, row, field] if field < RECORD_FIELDS else 0
        if record[VALUE] != NO_CUT:
            left_sums(hists[front.slots[child]], layout, record, record[RECORD_FIELDS:])
        if child == 0:
            record[MASS] = front.mass[0]
        elif child > 0 and gain_of(record[VALUE], front.values[child], front.mass[0]) == 0:
            own = rows[front.segments[child, 0] : front.segments[child, 1]]
            record[MASS] = absolute_sum(gains, front.sums.shape[1] - 1, own)


@kernel
def note(front, chosen, gathered):  # type: ignore[no-untyped-def]
    """Set the children's best cuts from all members' records [size, 2 n_chosen, fields].

    Highest value, then lowest rank, whose features come first.
    """
    for row in range(gathered.shape[1]):
        child = chosen[row // 2, SMALL + row % 2]
        if child < 0:
            continue
        best, mass = 0, np.int64(0)
        for rank in range(gathered.shape[0]):
            mass += gathered[rank, row, MASS]
            if gathered[rank, row, VALUE] > gathered[best, row, VALUE]:
                best = rank
        for field in range(gathered.shape[2]):
            front.records[child, field] = gathered[best, row, field]
        if child == 0:
            front.mass[0] = mass
        cut_value, own_value = front.records[child, VALUE], front.values[child]
        gain = gain_of(cut_value, own_value, front.mass[0])  # more than rounding of all rows: masses were not added up
        front.gains[child] = gain if gain > 0 else gain_of(cut_value, own_value, mass)


@kernel
def name_rows(front, order, leaf_of_row):  # type: ignore[no-untyped-def]
    """leaf_of_row (OUT, int32 [n_rows]): the leaf of each local row."""
    for leaf in range(front.counts[N_LEAVES]):
        candidate = front.leaves[leaf]
        for k in range(front.segments[candidate, 0], front.segments[candidate, 1]):
            leaf_of_row[np.uint64(order[np.uint64(k)])] = np.int32(leaf)
