"""The steps of growing a tree, as kernels: those of lone growth, and what gang growth (gang_steps.py) takes of them."""

import numpy as np

from boost_core.cut import (
    BIN,
    FEATURE,
    KIND,
    MISSING_LEFT,
    NO_CUT,
    RECORD_FIELDS,
)
from boost_core.jit import step
from boost_core.objective import set_leaves, set_root
from boost_core.tree import GAIN_SHIFT, LEFT, MAX_DEPTH, N_LEAVES, N_NODES, RIGHT, WORTH


@step
def start_tree(tree, objective, n_rows, sums):  # type: ignore[no-untyped-def]
    """Leaf 0 holds all rows; sums over all members."""
    n_channels = sums.shape[0] - 1
    tree.segments[0, 0] = 0
    tree.segments[0, 1] = n_rows
    for c in range(n_channels + 1):
        tree.sums[0, c] = sums[c]
    tree.values[0] = set_root(objective, sums, n_channels, tree.payload[0])
    tree.gains[0] = 0
    tree.parents[0, 0] = -1
    tree.depths[0] = 0
    tree.counts[N_LEAVES] = 1
    tree.counts[N_NODES] = 0


@step
def gain_of(cut_value, own_value, mass):  # type: ignore[no-untyped-def]
    """What a leaf's best cut gains over the leaf itself, 0 if that is rounding; mass: its absolute gains over all
    members."""
    gain = cut_value - own_value
    return gain if cut_value != NO_CUT and gain > mass >> GAIN_SHIFT else 0


@step
def add_node(nodes, parents, node, leaf, new, record):  # type: ignore[no-untyped-def]
    """A leaf becomes a node, of whose children the left one keeps its index and the right one is `new`.

    nodes [n, NODE_FIELDS] and parents [n_leaves, 2]: IN/OUT; record: the leaf's best cut.
    """
    for place, field in enumerate((FEATURE, KIND, BIN, MISSING_LEFT)):
        nodes[node, place] = record[field]
    nodes[node, LEFT] = ~leaf
    nodes[node, RIGHT] = ~new
    if parents[leaf, 0] >= 0:
        nodes[parents[leaf, 0], parents[leaf, 1]] = node
    parents[leaf, 0], parents[leaf, 1] = node, LEFT
    parents[new, 0], parents[new, 1] = node, RIGHT


@step
def best_leaf(tree):  # type: ignore[no-untyped-def]
    """The leaf to split: largest gain, lowest index among equals; -1 if no gain is left."""
    best = 0
    for leaf in range(1, tree.counts[N_LEAVES]):
        if tree.gains[leaf] > tree.gains[best]:
            best = leaf
    return best if tree.gains[best] > 0 else -1


@step
def may_split(tree, leaf):  # type: ignore[no-untyped-def]
    """Whether a leaf is above the greatest depth."""
    return tree.depths[leaf] < tree.counts[MAX_DEPTH]


@step
def cut_of(tree, leaf, n_thresholds):  # type: ignore[no-untyped-def]
    """The feature of a leaf's best cut, and the cut as `divide` takes it."""
    record = tree.records[leaf]
    feature = record[FEATURE]
    return feature, (record[KIND], record[BIN], n_thresholds[feature] + 1, record[MISSING_LEFT] == 1)


@step
def split(tree, objective, leaf, middle):  # type: ignore[no-untyped-def]
    """Make a leaf a node: its left child keeps the index, the right one gets the next free index, returned.

    middle: where the right child's rows begin, once the leaf's rows are partitioned.
    """
    record = tree.records[leaf]
    new, node = tree.counts[N_LEAVES], tree.counts[N_NODES]
    tree.counts[N_LEAVES] += 1
    tree.counts[N_NODES] += 1
    add_node(tree.nodes, tree.parents, node, leaf, new, record)
    tree.segments[new, 0], tree.segments[new, 1] = middle, tree.segments[leaf, 1]
    tree.segments[leaf, 1] = middle
    for c in range(tree.sums.shape[1]):
        tree.sums[new, c] = tree.sums[leaf, c] - record[RECORD_FIELDS + c]
        tree.sums[leaf, c] = record[RECORD_FIELDS + c]
    n_channels = tree.sums.shape[1] - 1
    payloads = (tree.payload[leaf], tree.payload[new])
    values = set_leaves(objective, tree.sums[leaf], tree.sums[new], n_channels, payloads[0], payloads[1])
    tree.values[leaf], tree.values[new] = values
    tree.gains[leaf] = tree.gains[new] = 0
    tree.depths[leaf] += 1
    tree.depths[new] = tree.depths[leaf]
    return new


@step
def name_leaves(tree, order, leaf_of_row):  # type: ignore[no-untyped-def]
    """leaf_of_row (OUT, int32 [n_rows]): the leaf of each local row. The tree is done."""
    tree.counts[WORTH] = 0
    for leaf in range(tree.counts[N_LEAVES]):
        tree.counts[WORTH] += tree.values[leaf]
        for k in range(tree.segments[leaf, 0], tree.segments[leaf, 1]):
            leaf_of_row[np.uint64(order[np.uint64(k)])] = np.int32(leaf)  # unsigned: see cut.divide
