"""Growth of a tree in one process: one kernel call, shared by all threads of the member.

The leader splits leaves. The rows of a large one are divided by blocks of rows (crew.py); what follows a split is
shared out by blocks of features: build their histograms for the smaller child, subtract for the larger one, search
both. Without a call from Python for each step: those took
longer than the sums (docs/performance.md).

Only as many histograms are kept as there are slots. A leaf that lost its slot to a more promising one has both
children's histograms built from their rows; the sums, and so the tree, are the same.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.crew import NOTHING, await_all, claim, dismiss, dismissed, finish, first_of, gather, publish
from boost_core.cut import NO_CUT, RECORD_FIELDS, VALUE, divide, join_sides, partition
from boost_core.cut_search import left_sums, search_next, start_search
from boost_core.intrinsics import pause
from boost_core.jit import inlined_step, step
from boost_core.kernel_times import HISTOGRAMS, KERNELS, PARTITION, SEARCH, read_clock
from boost_core.native_calls import LEADER, Call, call_address, task_at
from boost_core.posts import PATIENCE, invite, withdraw
from boost_core.tree import N_LEAVES, GrowingTree
from boost_core.tree_steps import (
    best_leaf,
    cut_of,
    gain_of,
    may_split,
    name_leaves,
    split,
    start_tree,
)

Integers = NDArray[np.int64]
# Entries of control; what is of the large one follows what is of the small one.
ACTION, LEAF, SMALL, LARGE, SMALL_SLOT, LARGE_SLOT, SUBTRACT, ABSOLUTE = range(8)
NOTHING_TO_DO, ROOT, DIVIDE, CHILDREN = range(4)
CONTROL_FIELDS = 8
NO_SLOT = -1
# Of int64: a cache line, so that threads do not fight for it. Divided: left and right rows of a block.
DIVIDED_FIELDS = FOUND_FIELDS = 8
WORTH_DIVIDING = 3_000  # rows of a leaf (about 6 us) from which they are shared out


class Work(NamedTuple):
    """Room to grow in. order, scratch, leaf_of_row int32 [n_rows], of which the last one is what growth leaves; hists
    int64 [n_slots, n_bins, padded]; slots [max_leaves]; taken [n_slots]; control [CONTROL_FIELDS]; found [n_blocks, 2,
    FOUND_FIELDS]; divided [n_blocks, DIVIDED_FIELDS]; bounds [n_blocks + 1]: of the rows that are divided; room
    [n_blocks, as room_for_search says]; times (kernel_times.py: of the leader)."""

    order: NDArray[np.int32]
    scratch: NDArray[np.int32]
    leaf_of_row: NDArray[np.int32]
    hists: Integers
    slots: Integers
    taken: Integers
    control: Integers
    found: Integers
    divided: Integers
    bounds: Integers
    room: Integers
    times: Integers


class Grow(NamedTuple):
    """What `grow` works on. rows: int32, those that are not all 0, or none for all of them (the leaves of others are
    not told); n_blocks: of features; table = (bins, bin_start, n_thresholds, has_missing, features int64 [k]: those
    with cuts); sums int64 [n_channels + 1]: of all rows; total int64 [1]: the total mass of gains; blocks, summing:
    calls of do_blocks and, of the same arrays, of leaf_sums.py."""

    crew: Integers
    posts: Integers
    rows: NDArray[np.int32]
    n_blocks: int
    objective: Any
    table: tuple[Any, ...]
    sums: Integers
    total: Integers
    work: Work
    tree: GrowingTree
    blocks: Call
    summing: Call


class Blocks(NamedTuple):
    """What `do_blocks` works on, as Grow; edges: int64 [n_blocks + 1, 3], where a block's features begin in the first
    column; helpers_times: theirs, which nobody reads."""

    crew: Integers
    n_threads: int
    edges: Integers
    objective: Any
    table: tuple[Any, ...]
    work: Work
    helpers_times: Integers
    tree: GrowingTree
    summing: Call


@step
def grow(context, number, kind):  # type: ignore[no-untyped-def]
    """Grow a tree, with whoever waits at the posts. At the context: Grow; the number says nothing."""
    crew, posts, rows, n_blocks, objective, table, sums, total, work, tree, call, summing = task_at(context, kind)
    order, scratch, leaf_of_row, hists, slots, taken, control, found, divided, bounds, _, times = work
    began = read_clock(times)
    gather(crew)
    invite(posts, call)  # at once: who waits in vain for 0.6 ms leaves, and to number many rows takes longer
    n_rows = rows.shape[0] if rows.shape[0] > 0 else order.shape[0]
    for i in range(n_rows):
        order[i] = rows[i] if rows.shape[0] > 0 else i
    start_tree(tree, objective, n_rows, sums)
    slots[:] = NO_SLOT
    taken[:] = 0
    slots[0], taken[0] = 0, 1
    if tree.gains.shape[0] > 1:
        control[ACTION], control[SMALL], control[SMALL_SLOT] = ROOT, 0, 0
        _share(crew, posts, call, n_blocks)
        _combine(tree, np.int64(0), hists, slots, taken, table, found[:, 0], total[0], control, summing)
    while _next_leaf(tree, control):
        found_at = read_clock(times)
        middle = _divide(crew, posts, call, n_blocks, table, order, scratch, divided, bounds, tree, control)
        times[PARTITION] += read_clock(times) - found_at
        new = split(tree, objective, control[LEAF], middle)
        _prepare(tree, new, slots, taken, control)
        if control[ACTION] == CHILDREN:
            _share(crew, posts, call, n_blocks)
            for place in range(2):
                leaf = control[SMALL + place]
                _combine(tree, leaf, hists, slots, taken, table, found[:, place], total[0], control, summing)
    dismiss(crew)
    withdraw(posts)
    name_leaves(tree, order, leaf_of_row)
    times[KERNELS] += read_clock(times) - began


@step
def do_blocks(context, helper, kind):  # type: ignore[no-untyped-def]
    """Do blocks of features: the leader (LEADER) those of a publication, a helper until there are no more for a while.
    At the context: Blocks."""
    crew, n_threads, edges, objective, table, work, helpers_times, tree, summing = task_at(context, kind)
    n_blocks, idle = edges.shape[0] - 1, 0
    first = first_of(helper + 1, n_threads, n_blocks)
    patience, times = (1, work[-1]) if helper == LEADER else (PATIENCE, helpers_times)
    while idle < patience and not dismissed(crew):
        block = claim(crew, n_blocks, first)
        if block == NOTHING:
            idle += 1
            pause()
        else:
            idle = 0
            _do_block(block, edges, objective, table, work, times, tree, summing)
            finish(crew)


@step
def _share(crew, posts, call, n_blocks):  # type: ignore[no-untyped-def]
    """Publish the blocks of what control says, do those that nobody else does, wait for the rest."""
    publish(crew)
    invite(posts, call)
    call_address(call[0], call[1], LEADER)
    await_all(crew, n_blocks)


@inlined_step
def _do_block(block, edges, objective, table, work, times, tree, summing):  # type: ignore[no-untyped-def]
    """A block of a leaf's rows; or histograms and best cuts of a block of features, for the root or two children."""
    order, scratch, _, hists, _, _, control, found, divided, bounds, room, _ = work
    if control[ACTION] == DIVIDE:
        leaf = control[LEAF]
        segment = (bounds[block], bounds[block + 1])
        feature, cut = cut_of(tree, leaf, table[2])
        sizes = divide(order, table[0][feature], segment, cut, scratch[segment[0] : segment[1]])
        divided[block, 0], divided[block, 1] = sizes
    else:
        features = table[4][edges[block, 0] : edges[block + 1, 0]]
        _children(block, objective, table, hists, tree, control, features, room[block], found[block], times, summing)


@inlined_step
def _next_leaf(tree, control):  # type: ignore[no-untyped-def]
    """control (OUT): the leaf to split; returns whether there is one."""
    control[ACTION] = DIVIDE
    control[LEAF] = best_leaf(tree) if tree.counts[N_LEAVES] < tree.gains.shape[0] else -1
    return control[LEAF] >= 0


@inlined_step
def _divide(crew, posts, call, n_blocks, table, order, scratch, divided, bounds, tree, control):  # type: ignore[no-untyped-def]
    """Partition the rows of the leaf that control names; returns the first right position."""
    segment = tree.segments[control[LEAF]]
    if n_blocks == 1 or segment[1] - segment[0] < WORTH_DIVIDING:
        feature, cut = cut_of(tree, control[LEAF], table[2])
        return partition(order, table[0][feature], (segment[0], segment[1]), cut, scratch)
    for block in range(n_blocks + 1):
        bounds[block] = segment[0] + block * (segment[1] - segment[0]) // n_blocks
    _share(crew, posts, call, n_blocks)
    return join_sides(order, bounds, divided, scratch)


@inlined_step
def _prepare(tree, new, slots, taken, control):  # type: ignore[no-untyped-def]
    """Say what is to be built and searched for the children of the leaf that was split (control: OUT); new: the right
    one."""
    leaf, max_leaves = control[LEAF], tree.gains.shape[0]
    control[ACTION] = NOTHING_TO_DO
    if tree.counts[N_LEAVES] == max_leaves:
        return  # no cut will be taken any more, so none is searched
    left, right = tree.segments[leaf], tree.segments[new]
    small_is_left = left[1] - left[0] <= right[1] - right[0]
    control[ACTION] = CHILDREN
    control[SMALL] = leaf if small_is_left else new
    control[LARGE] = new if small_is_left else leaf
    parent_slot = slots[leaf]
    slots[leaf] = slots[new] = NO_SLOT
    if not may_split(tree, new):
        control[ACTION] = NOTHING_TO_DO
        if parent_slot != NO_SLOT:
            taken[parent_slot] = 0
        return
    control[SUBTRACT] = 0 if parent_slot == NO_SLOT else 1
    slots[control[LARGE]] = parent_slot
    for child in (control[LARGE], control[SMALL]):
        if slots[child] == NO_SLOT:
            slots[child] = _take_slot(tree, slots, taken, leaf, new)
    control[SMALL_SLOT] = slots[control[SMALL]]
    control[LARGE_SLOT] = slots[control[LARGE]]


@step
def _take_slot(tree, slots, taken, leaf, new):  # type: ignore[no-untyped-def]
    """A free slot, else that of the least promising leaf (never of the two leaves named); there are 2 at least."""
    for slot in range(taken.shape[0]):
        if taken[slot] == 0:
            taken[slot] = 1
            return slot
    least = -1
    for other in range(tree.counts[N_LEAVES]):
        mine = other in (leaf, new) or slots[other] == NO_SLOT
        if not mine and (least < 0 or tree.gains[other] < tree.gains[least]):
            least = other
    slot = slots[least]
    slots[least] = NO_SLOT
    return slot


@inlined_step
def _children(block, objective, table, hists, tree, control, features, room, found, times, summing):  # type: ignore[no-untyped-def]
    """A block's part of the histograms of the root or of both children, and the best cut in it (found: OUT).

    Each feature's sums are searched right after they were subtracted, while they are in the cache: that counts as
    search.
    """
    began = read_clock(times)
    n_leaves = 1 if control[ACTION] == ROOT else 2
    for place in range(n_leaves):
        if place == 0 or control[SUBTRACT] == 0:
            call_address(summing[0], summing[1], 2 * block + place)
    built = read_clock(times)
    small_hist, excess = hists[control[SMALL_SLOT]], (room[2], room[3])
    layout = (table[1], table[2], table[3], 0)
    for place in range(n_leaves):
        hist, sums = hists[control[SMALL_SLOT + place]], tree.sums[control[SMALL + place]]
        sides = (room[0], room[1])
        value = start_search(objective, sums, hist.shape[1], sides)
        found[place, VALUE] = NO_CUT
        for j in features:
            if place == 1 and control[SUBTRACT] == 1:
                _subtract(hist, small_hist, table[1][j], table[1][j + 1])
            search_next(objective, value, hist, sums, layout, j, sides, excess, found[place])
    times[HISTOGRAMS] += built - began
    times[SEARCH] += read_clock(times) - built


@inlined_step
def _subtract(hist, small_hist, start, stop):  # type: ignore[no-untyped-def]
    """hist (IN/OUT) -= small_hist, of some bins."""
    large_flat, small_flat = hist[start:stop].reshape(-1), small_hist[start:stop].reshape(-1)
    for k in range(large_flat.shape[0]):
        large_flat[k] -= small_flat[k]


@inlined_step
def _gain(tree, leaf, total_mass, control, summing):  # type: ignore[no-untyped-def]
    """What the leaf's best cut gains. What is more than rounding of all rows is more than that of its own, so these are
    hardly ever added up."""
    cut_value, own_value = tree.records[leaf, VALUE], tree.values[leaf]
    gain = gain_of(cut_value, own_value, total_mass)
    if gain > 0 or cut_value == NO_CUT or cut_value <= own_value:
        return gain
    call_address(summing[0], summing[1], ~leaf)
    return gain_of(cut_value, own_value, control[ABSOLUTE])


@step
def _combine(tree, leaf, hists, slots, taken, table, found, total_mass, control, summing):  # type: ignore[no-untyped-def]
    """The best of the blocks' cuts, lowest features first among equals, becomes the leaf's record."""
    best = 0
    for block in range(1, found.shape[0]):
        if found[block, VALUE] > found[best, VALUE]:
            best = block
    record = tree.records[leaf]
    for field in range(RECORD_FIELDS):
        record[field] = found[best, field]
    if record[VALUE] != NO_CUT:
        left_sums(
            hists[slots[leaf]],
            (table[1], table[2], table[3], 0),
            record,
            record[RECORD_FIELDS:],
        )
    tree.gains[leaf] = _gain(tree, leaf, total_mass, control, summing)
    if tree.gains[leaf] == 0:
        taken[slots[leaf]] = 0  # never split: its histogram is of no use
        slots[leaf] = NO_SLOT
