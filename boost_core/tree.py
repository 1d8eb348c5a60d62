"""A tree while it grows and when it is grown, as arrays that kernels share."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import RECORD_FIELDS

Integers = NDArray[np.int64]
LEFT, RIGHT = 4, 5  # columns of a node's children
NODE_FIELDS = 6  # feature, kind, bin, missing left, left, right (children as in model.Forest)
GAIN_SHIFT = 28  # a growth gain counts if it exceeds the node's absolute gains >> 28: below is rounding of the gains
N_LEAVES, N_NODES, MAX_DEPTH, WORTH = range(4)  # entries of GrowingTree.counts
NO_ROWS = np.empty(0, np.int32)
NO_LIMIT = 1 << 30  # of a depth: more than any tree has leaves


class Tree(NamedTuple):
    """A grown tree.

    nodes: int64 [n_nodes, NODE_FIELDS]; payload: int32 [n_leaves, n_outputs], what each leaf says;
    value: its sum of gains over all members; leaf_of_row: int32 [n_rows] of this member.
    """

    nodes: Integers
    payload: NDArray[np.int32]
    value: int
    leaf_of_row: NDArray[np.int32]

    def without_rows(self) -> "Tree":
        """The same without the leaf of every row."""
        return Tree(self.nodes, self.payload, self.value, NO_ROWS)


class GrowingTree(NamedTuple):
    """Leaves by index, room for max_leaves of them, and the nodes taken so far. All int64 but payload (int32).

    segments [max_leaves, 2]: the leaf's local rows are order[start:stop]; sums [max_leaves, n_channels + 1], of which
    the last one counts rows where histograms do; values, gains [max_leaves]: worth of the leaf, what its best cut adds
    (0: none worth it); records [max_leaves, fields]: its best cut (cut.py); payload [max_leaves, n_outputs]; nodes
    [max_leaves, NODE_FIELDS]; parents [max_leaves, 2]: the (node, column) that points to the leaf, -1 for the root;
    depths [max_leaves]: cuts above the leaf; counts [4]: leaves, nodes, greatest depth, and in the end the worth of all
    leaves.
    """

    segments: Integers
    sums: Integers
    values: Integers
    gains: Integers
    records: Integers
    payload: NDArray[np.int32]
    nodes: Integers
    parents: Integers
    depths: Integers
    counts: Integers


def new_tree(max_leaves: int, n_channels: int, n_outputs: int, max_depth: int) -> GrowingTree:
    """Room for a tree; nothing in it is set but its greatest depth."""
    return GrowingTree(
        segments=np.zeros((max_leaves, 2), np.int64),
        sums=np.zeros((max_leaves, n_channels + 1), np.int64),
        values=np.zeros(max_leaves, np.int64),
        gains=np.zeros(max_leaves, np.int64),
        records=np.zeros((max_leaves, RECORD_FIELDS + n_channels + 1), np.int64),
        payload=np.zeros((max_leaves, n_outputs), np.int32),
        nodes=np.zeros((max_leaves, NODE_FIELDS), np.int64),
        parents=np.zeros((max_leaves, 2), np.int64),
        depths=np.zeros(max_leaves, np.int64),
        counts=np.array([0, 0, max_depth, 0], np.int64),
    )


def finished(tree: GrowingTree, leaf_of_row: NDArray[np.int32]) -> Tree:
    """What has grown, apart from the room, in which the next tree grows."""
    n_leaves, n_nodes, _, worth = tree.counts.tolist()
    return Tree(tree.nodes[:n_nodes].copy(), tree.payload[:n_leaves].copy(), worth, leaf_of_row)
