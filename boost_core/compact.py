"""A forest laid out for predicting many rows: features as byte codes, trees as selections between bytes.

Of a feature only the thresholds that some node asks about count: with m of them a value has the code 0..m, the number
of those that are not above it. A node then is one comparison of bytes, code >= bound goes right, if a missing value is
on the side it must go to. So there are up to two code columns a feature:

    high     value  0..m         missing 255      goes right
    low      value  1..m + 1     missing 0        goes left

A tree is evaluated from its last node to its first one (children come after their parents): every node takes the leaf
number of its left or its right child, all bytes, for many rows by the same instructions. Slots name what it chooses
from: LEAVES of them are the leaves, the others the nodes in the order they are evaluated.

Scores are sums of integers, so trees may be added in any order: here those come first that can change most, which lets
rows leave early whose label is settled (settling.py).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import CutKind
from boost_core.fitted import Speech
from boost_core.kept import Kept
from boost_core.model import Forest
from boost_core.scores import WIDEN_AT
from boost_core.tree_vectors import LANES
from boost_core.vector_code import WIDTH

LEAVES = 256  # most leaves of a tree whose leaves have bytes as numbers
MISSING = 255  # the code of a missing value in a high column
MOST_CUTS = 254  # thresholds of a feature whose codes are below MISSING
HIGH, LOW = 0, 1

Integers = NDArray[np.int64]


class Coding(NamedTuple):
    """How feature values become codes, for the F features that nodes ask about.

    features int32 [F]: their numbers; columns int32 [F, 2]: the high and the low code column, -1 for none; cuts
    float64: each feature's thresholds ascending from cut_start (int64 [F + 1]) on, filled up with NaN to
    2**depth - 1 (depth int32 [F]) of them, for a search without branches.
    """

    features: NDArray[np.int32]
    columns: NDArray[np.int32]
    cut_start: Integers
    depth: NDArray[np.int32]
    cuts: NDArray[np.float64]


class Trees(NamedTuple):
    """T trees, those first that can change most.

    node_start int64 [T + 1]; nodes int32 [N, 4], the last of a tree first: code column, bound, left and right slot
    times LANES;
    leaf_start int64 [T + 1]; says [L, pitch]: what a leaf says, a number a score column and zeros up to the pitch, or
    one number; multiplier int64 [T]; column int32 [T]: the score column of a tree that speaks for one, else -1.
    """

    node_start: Integers
    nodes: NDArray[np.int32]
    leaf_start: Integers
    says: NDArray[np.integer]
    multiplier: Integers
    column: NDArray[np.int32]


@dataclass(frozen=True)
class Compact:
    """A forest for kernels. n_codes: code columns; most_leaves: of a tree; pitch: places a row of scores takes;
    reach: what a score can be at most; weights: int64 [T], how far each tree can move two scores apart, or
    for trees that speak for one column its score."""

    coding: Coding
    trees: Trees
    labels: bool
    n_columns: int
    n_codes: int
    most_leaves: int
    pitch: int
    reach: float
    weights: Integers

    @property
    def wide(self) -> bool:
        """Whether a score needs more than 32 bits."""
        return self.reach >= WIDEN_AT


def make_compact(forest: Forest) -> Compact | None:
    """The forest's layout. None if its nodes and leaves cannot be bytes: a tree has more than 256 leaves, or more than
    254 thresholds of a feature are in use."""
    n_leaves = np.diff(forest.leaf_start)
    alone, together = bool((forest.column >= 0).all()), bool((forest.column < 0).all())
    if n_leaves.max(initial=0) > LEAVES or not (alone or together):
        return None
    coded = _code_nodes(forest)
    if coded is None:
        return None
    coding, n_codes, nodes = coded
    weights = _weights(forest)
    order = np.argsort(-weights, kind="stable")
    node_places, node_start = _gather(forest.node_start, order, backwards=True)
    leaf_places, leaf_start = _gather(forest.leaf_start, order)
    pitch = -(-forest.n_columns // WIDTH) * WIDTH
    says = forest.payload[leaf_places]
    if forest.speech is not Speech.LABEL and together:
        says = np.pad(says, ((0, 0), (0, pitch - says.shape[1])))
    trees = Trees(
        node_start, nodes[node_places], leaf_start, np.ascontiguousarray(says), forest.multiplier[order],
        forest.column[order],
    )  # fmt: skip
    return Compact(
        coding=coding,
        trees=trees,
        labels=forest.speech is Speech.LABEL,
        n_columns=forest.n_columns,
        n_codes=n_codes,
        most_leaves=int(n_leaves.max(initial=1)),
        pitch=pitch,
        reach=_reach(forest),
        weights=weights[order],
    )


def _code_nodes(forest: Forest) -> tuple[Coding, int, NDArray[np.int32]] | None:
    """Coding, number of code columns and the nodes' records; None if a feature has too many thresholds."""
    features, first = np.unique(np.sort(forest.node_feature), return_index=True)
    groups = np.split(np.argsort(forest.node_feature, kind="stable"), first[1:]) if features.shape[0] else []
    columns = np.full((features.shape[0], 2), -1, np.int32)
    at, bounds = np.zeros((2, forest.node_feature.shape[0]), np.int32)
    depth, cuts, n_codes = np.zeros(features.shape[0], np.int32), [np.empty(0)], 0
    for number, own in enumerate(groups):
        at_threshold = forest.node_threshold[own]
        is_cut = (forest.node_kind[own] == CutKind.THRESHOLD) & ~np.isnan(at_threshold)
        used = np.unique(at_threshold[is_cut])
        if used.shape[0] > MOST_CUTS:
            return None
        depth[number] = int(used.shape[0]).bit_length()
        cuts.append(np.full((1 << int(depth[number])) - 1, np.nan))
        cuts[-1][: used.shape[0]] = used
        goes_low = forest.node_missing_left[own]
        for side in (HIGH, LOW):
            if (goes_low == (side == LOW)).any():
                columns[number, side], n_codes = n_codes, n_codes + 1
        at[own] = columns[number, goes_low.astype(np.int64)]
        # Of a cut at the threshold number b: from b + 1 on right. Of missing or not, and of a NaN: present values
        # go right.
        passed = np.where(is_cut, np.searchsorted(used, at_threshold) + 1, 0)
        bounds[own] = passed + goes_low
    sizes = np.array([part.shape[0] for part in cuts], np.int64)
    coding = Coding(features.astype(np.int32), columns, np.cumsum(sizes), depth, np.concatenate(cuts))
    slots = [_slots(forest, child) for child in (forest.node_left, forest.node_right)]
    return coding, n_codes, np.stack([at, bounds, *slots], axis=1).astype(np.int32)


def _slots(forest: Forest, children: NDArray[np.int32]) -> NDArray[np.int64]:
    """The children as slots: node number k of n is evaluated as number n - 1 - k."""
    sizes = np.diff(forest.node_start)
    last = np.repeat(sizes, sizes) - 1
    return np.where(children < 0, ~children, LEAVES + last - children) * LANES


def _gather(starts: Integers, order: Integers, backwards: bool = False) -> tuple[Integers, Integers]:
    """Where the entries of trees in a new order lie, each tree's from the last on if need be, and their new starts."""
    sizes = np.diff(starts)[order]
    found = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    within = np.arange(found[-1]) - np.repeat(found[:-1], sizes)
    if backwards:
        within = np.repeat(sizes, sizes) - 1 - within
    return np.repeat(starts[:-1][order], sizes) + within, found


def _by_tree(function: np.ufunc, values: Integers, forest: Forest) -> Integers:
    """A function over the leaves of each tree; every tree has one at least."""
    if forest.n_trees == 0:
        return np.zeros(0, np.int64)
    found: Integers = function.reduceat(values, forest.leaf_start[:-1])
    return found


def _extremes(forest: Forest) -> tuple[Integers, Integers]:
    """The least and the greatest number that each leaf says, int64 [L] each."""
    payload = forest.payload
    if payload.shape[0] == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return payload.min(axis=1).astype(np.int64), payload.max(axis=1).astype(np.int64)


def _weights(forest: Forest) -> Integers:
    """How far each tree can move two scores apart; of one that speaks for one column, how far it can move that."""
    least, greatest = _extremes(forest)
    if forest.speech is Speech.LABEL:
        spread = np.ones(forest.n_trees, np.int64)
    elif forest.payload.shape[1] == 1:
        spread = _by_tree(np.maximum, greatest, forest) - _by_tree(np.minimum, least, forest)
    else:
        spread = _by_tree(np.maximum, greatest - least, forest)
    return np.abs(forest.multiplier) * spread


def _reach(forest: Forest) -> float:
    """What a score can be at most."""
    if forest.speech is Speech.LABEL:
        return float(np.abs(forest.multiplier).sum())
    least, greatest = _extremes(forest)
    largest = _by_tree(np.maximum, np.maximum(-least, greatest), forest)
    return float((np.abs(forest.multiplier).astype(np.float64) * largest).sum())


compact_of = Kept(make_compact)
