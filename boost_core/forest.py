"""Collects the trees of a run into a Forest, and sends rows down its trees."""

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.cut import CutKind, goes_left
from boost_core.decoding import Decoding
from boost_core.fitted import Fitted
from boost_core.jit import kernel
from boost_core.joined_trees import JoinedTrees
from boost_core.model import Forest
from boost_core.team import Team
from boost_core.tree import Tree


@kernel
def _route(bins, nodes, missing_codes, start, stop, leaf_of_row):  # type: ignore[no-untyped-def]
    """leaf_of_row (OUT, int32 [n]) of rows start..stop: bins uint8 [d, n]; nodes int64 [n_nodes, 6] (tree.Tree).

    Indices are unsigned (cut.divide)."""
    for i in range(start, stop):
        place, row = 0 if nodes.shape[0] > 0 else -1, np.uint64(i)
        while place >= 0:
            node = nodes[np.uint64(place)]
            feature = np.uint64(node[0])
            code = np.int64(bins[feature, row])
            left = goes_left(code, node[1], node[2], missing_codes[feature], node[3] == 1)
            place = node[4] if left else node[5]
        leaf_of_row[row] = ~place


def route(tree: Tree, bins: NDArray[np.uint8], binning: Binning, team: Team) -> NDArray[np.int32]:
    """The tree's leaf of each row, int32 [n_rows]; bins uint8 [n_features, n_rows]."""
    n_rows = bins.shape[1]
    leaf_of_row = np.empty(n_rows, np.int32)
    missing_codes = binning.n_thresholds + 1
    work = 4 * n_rows * max(len(tree.payload), 1)
    team.over(
        n_rows,
        work,
        lambda a, b: _route(bins, tree.nodes, missing_codes, a, b, leaf_of_row),
    )
    return leaf_of_row


def node_thresholds(nodes: NDArray[np.int64], binning: Binning) -> NDArray[np.float64]:
    """The value at which each node's rows go right; NaN where the cut has no threshold."""
    thresholds = np.full(nodes.shape[0], np.nan)
    cut = nodes[:, 1] == CutKind.THRESHOLD
    thresholds[cut] = binning.thresholds[binning.threshold_start[nodes[cut, 0]] + nodes[cut, 2]]
    return thresholds


def make_forest(
    rounds: list[Fitted],
    multipliers: list[NDArray[np.int64]],
    decoding: Decoding,
    binning: Binning,
) -> Forest:
    """Join the weak learners of a run; multipliers: int64 [parts] of each round, in score units."""
    joined = JoinedTrees(decoding.code.shape[1])
    joined.append(rounds, multipliers)
    arrays = joined.arrays
    cuts = np.stack([arrays["node_feature"], arrays["node_kind"], arrays["node_bin"]], axis=1).astype(np.int64)
    return Forest(
        **arrays,
        node_threshold=node_thresholds(cuts, binning),
        speech=joined.speech,
        n_columns=decoding.code.shape[1],
        decoding=decoding,
    )
