"""Few rows down a compact forest: without a tile's work for many rows, and several trees at a time.

A walk down one tree is a chain of loads that wait for each other, and where it ends nobody can guess. So the walks of
GROUP trees go side by side and take as many steps as the deepest of them has, without a branch: a leaf leads to itself.
Trees are in the order of their depths, so that the processor guesses the number of steps.

A record takes 8 bytes. Of a node: its code column (bits 0 to 15), its bound (16 to 23) and the record of its left
child (from 32 on); the right child's is the next one, so the way leads to child + (code >= bound). Of a leaf: the bound
0, the record before its own, and its number in its tree (24 to 31).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty
from boost_core.compact import LEAVES, MISSING, Compact, compact_of
from boost_core.jit import counted_inner, counted_kernel, inner
from boost_core.kept import Kept
from boost_core.model import Forest
from boost_core.settling import first_greatest
from boost_core.tree_vectors import LANES, place_values
from boost_core.walk_vectors import BOUND_AT, CHILD_AT, GROUP, LEAF_AT, add_said, walk_group

MOST_CODES = 1 << BOUND_AT  # code columns
MOST_RECORDS = 1 << 31
ROOT, LEAF, COLUMN = range(3)  # columns of Walks.trees
FEATURE, HIGH_AT, LOW_AT, CUTS, DEPTH = range(5)  # of Walks.coding
N_CODES, N_COLUMNS, WIDTH, LABELS = range(4)  # entries of Walks.shape

Integers = NDArray[np.int64]


class Walks(NamedTuple):
    """A forest for walk_rows, in few arrays: handing over each takes time.

    coding int64 [F, 5]: of each feature that nodes ask about, its number, high and low code column (-1: none), where
    its cuts begin and the depth of their search; cuts: compact.Coding's; records int64: see above. Trees that add
    nothing fill the last group: trees int64 [T, 3]: the record of the root, where in `says` the first leaf begins, the
    score column (-1: all); steps int64 [T / GROUP]; multiplier [T], of the type of a row's sums; says: compact.Trees's,
    flat; shape int64 [4]: code columns, score columns, numbers a leaf says (up to the pitch), whether they are
    labels.
    """

    coding: Integers
    cuts: NDArray[np.float64]
    records: Integers
    trees: Integers
    steps: Integers
    multiplier: NDArray[np.integer]
    says: NDArray[np.integer]
    shape: Integers


def make_walks(forest: Forest) -> Walks | None:
    """The forest's layout; None if it has no compact one, or more code columns or records than there are bits for."""
    compact = compact_of(forest)
    if compact is None or compact.n_codes > MOST_CODES:
        return None
    trees, coding = compact.trees, compact.coding
    if 2 * trees.nodes.shape[0] + trees.multiplier.shape[0] >= MOST_RECORDS:
        return None
    records, roots, depths = _records(compact)
    order = np.argsort(depths, kind="stable")
    # What fills the last group stands where the first one has no steps to lose: it walks the first tree again.
    filled = np.concatenate([np.repeat(order[:1], -order.shape[0] % GROUP), order])
    width = trees.says.shape[1]
    table = np.stack([roots, trees.leaf_start[:-1] * width, trees.column], axis=1)[filled]
    multiplier = trees.multiplier[filled]
    multiplier[: filled.shape[0] - order.shape[0]] = 0
    return Walks(
        coding=np.column_stack([coding.features, coding.columns, coding.cut_start[:-1], coding.depth]).astype(np.int64),
        cuts=coding.cuts,
        records=_aligned(records),
        trees=np.ascontiguousarray(table),
        steps=depths[filled].reshape(-1, GROUP).max(axis=1),
        multiplier=multiplier.astype(np.int64 if compact.wide else np.int32),
        says=_aligned(trees.says.reshape(-1)),
        shape=np.array([compact.n_codes, compact.n_columns, width, compact.labels], np.int64),
    )


def _aligned(values: NDArray[Any]) -> NDArray[Any]:
    copy = aligned_empty(values.shape, values.dtype)
    copy[:] = values
    return copy


def _records(compact: Compact) -> tuple[Integers, Integers, Integers]:
    """The records, and of each tree the root's number and the depth."""
    trees = compact.trees
    sizes = np.diff(trees.node_start)
    roots = 2 * trees.node_start[:-1] + np.arange(sizes.shape[0])
    own = np.repeat(np.arange(sizes.shape[0]), sizes)
    # The last node of a tree comes first; the children of its k-th one have the records 1 + 2 k and 2 + 2 k.
    number = trees.node_start[1:][own] - 1 - np.arange(own.shape[0])
    children = roots[own] + 1 + 2 * number
    sides = trees.nodes[:, 2:].astype(np.int64) // LANES
    places = children[:, np.newaxis] + np.arange(2)
    is_leaf = sides < LEAVES
    below = trees.node_start[own][:, np.newaxis] + np.where(is_leaf, 0, sides - LEAVES)  # nodes, if they are none
    at = roots[own]  # the root's, but for what another node leads to
    at[below[~is_leaf]] = places[~is_leaf]
    records = np.empty(2 * own.shape[0] + sizes.shape[0], np.int64)
    records[roots] = (roots - 1) << CHILD_AT  # of a tree without nodes
    records[at] = children << CHILD_AT | trees.nodes[:, 1].astype(np.int64) << BOUND_AT | trees.nodes[:, 0]
    records[places[is_leaf]] = (places[is_leaf] - 1) << CHILD_AT | sides[is_leaf] << LEAF_AT
    depths, level = np.zeros(sizes.shape[0], np.int64), 0
    front = (trees.node_start[1:] - 1)[sizes > 0]
    while front.shape[0] > 0:
        level += 1
        depths[own[front]] = level
        front = below[front][~is_leaf[front]]
    return records, roots, depths


walks_of = Kept(make_walks)


@counted_inner
def _code(rows, coding, cuts, n_codes, codes):  # type: ignore[no-untyped-def]
    """codes (OUT, uint8 [n * n_codes]) of rows float64 [n, d]."""
    n_rows, places = rows.shape[0], np.empty(rows.shape[0], np.int64)
    for f in range(coding.shape[0]):
        own = coding[f]
        feature_cuts = cuts[own[CUTS] : own[CUTS] + (1 << own[DEPTH]) - 1]
        place_values(rows.reshape(-1), own[FEATURE], rows.shape[1], feature_cuts, own[DEPTH], places, n_rows)
        high, low = own[HIGH_AT], own[LOW_AT]
        if high >= 0:
            for i in range(n_rows):
                codes[i * n_codes + high] = places[i] & MISSING  # -1 becomes MISSING
        if low >= 0:
            for i in range(n_rows):
                codes[i * n_codes + low] = places[i] + 1


@inner
def _add_all(trees, multiplier, says, labels, places, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT) += what all trees say of a row; places int64 [T]: where in `says`."""
    if not labels and trees[0, COLUMN] < 0:
        add_said(sums, sums.shape[0], says, places, multiplier, places.shape[0])
        return
    for t in range(places.shape[0]):
        said = np.int64(says[places[t]])
        if labels:
            sums[said] += multiplier[t]
        else:
            sums[trees[t, COLUMN]] += multiplier[t] * said


@inner
def _find(records, trees, steps, codes, code_at, width, places):  # type: ignore[no-untyped-def]
    """places (OUT, int64 [T]): where in `says` begins what each tree says of a row, whose codes are from code_at on."""
    for t in range(places.shape[0]):
        places[t] = trees[t, ROOT]
    for group in range(steps.shape[0]):
        walk_group(records, places, group * GROUP, codes, code_at, steps[group])
    for t in range(places.shape[0]):
        places[t] = trees[t, LEAF] + places[t] * width


@counted_kernel
def walk_rows(  # type: ignore[no-untyped-def]
    rows, coding, cuts, records, trees, steps, multiplier, says, shape, scores, classes
):
    """scores (OUT, int64 [n, n_columns] or [0, n_columns]: not wanted) and classes (OUT, int32 [n] or [0], where the
    greatest score or the sign of the only one decides) of rows float64 [n, d]; all between: the fields of Walks, which
    as a tuple take 1.5 us more to hand over."""
    n_codes, n_columns, width = shape[N_CODES], shape[N_COLUMNS], shape[WIDTH]
    codes = np.zeros(rows.shape[0] * n_codes + 1, np.uint8)  # leaves of trees without nodes ask about the first one
    _code(rows, coding, cuts, n_codes, codes)
    places, sums = np.empty(trees.shape[0], np.int64), np.empty(max(width, n_columns), multiplier.dtype)
    for i in range(rows.shape[0]):
        _find(records, trees, steps, codes, i * n_codes, width, places)
        for c in range(sums.shape[0]):
            sums[c] = 0
        if trees.shape[0] > 0:
            _add_all(trees, multiplier, says, shape[LABELS] == 1, places, sums)
        if scores.shape[0] > 0:
            for c in range(n_columns):
                scores[i, c] = sums[c]
        if classes.shape[0] > 0:
            classes[i] = first_greatest(sums, 0, n_columns) if n_columns > 1 else np.int64(sums[0] >= 0)
