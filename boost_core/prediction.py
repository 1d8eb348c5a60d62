"""Scores and classes of raw rows: the model's trees on float64 features, no binning needed.

Many rows go through tiles.py, tile by tile; few rows walk down several trees at a time (walks.py). Forests whose nodes
and leaves are too many for bytes are walked tree by tree.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boost_core.catalogue import ALGORITHMS
from boost_core.compact import Compact, compact_of
from boost_core.fitted import Speech
from boost_core.jit import kernel, step
from boost_core.kept import Kept
from boost_core.model import Forest, Model
from boost_core.probability import Transform, label_probabilities, offset_of, probabilities_of
from boost_core.scores import UNIT, predicted_classes
from boost_core.settling import Bounds, By, make_bounds
from boost_core.team import Team
from boost_core.tiles import label_span, new_tile, score_span
from boost_core.walks import N_COLUMNS, Walks, walk_rows, walks_of

SCORES_AT_ONCE = 1 << 23  # scores that `predict` holds (64 MB), however many rows and classes there are
WALK_TILE = 256  # rows that stay in the caches while all trees pass over them
FEW_ROWS = 32  # up to which walking is faster (docs/performance.md)
NO_SCORES, NO_CLASSES = np.empty((0, 0), np.int64), np.empty(0, np.int32)

Rows = NDArray[np.float64]


@step
def _leaf(row, first, n_nodes, feature, kind, threshold, missing_left, children):  # type: ignore[no-untyped-def]
    """Leaf number (within its tree) of one row, float64 [n_features]."""
    place = 0 if n_nodes > 0 else -1
    while place >= 0:
        node = first + place
        value = row[feature[node]]
        below = kind[node] == 0 and value < threshold[node]
        left = missing_left[node] if value != value else below
        place = children[0][node] if left else children[1][node]
    return ~place


@kernel
def _add_forest(rows, starts, nodes, children, says, span, scores):  # type: ignore[no-untyped-def]
    """scores (IN/OUT, int64 [n, c]) of rows span[0]..span[1] += what every tree of the forest says of them.

    says = (payload [leaves, outputs], multiplier [trees], column [trees], payload is a label).
    """
    feature, kind, threshold, missing_left = nodes
    payload, multiplier, column, is_label = says
    for tile in range(span[0], span[1], WALK_TILE):
        stop = min(tile + WALK_TILE, span[1])
        for t in range(multiplier.shape[0]):
            first, n_nodes = starts[0][t], starts[0][t + 1] - starts[0][t]
            for i in range(tile, stop):
                leaf = starts[1][t] + _leaf(
                    rows[i],
                    first,
                    n_nodes,
                    feature,
                    kind,
                    threshold,
                    missing_left,
                    children,
                )
                if is_label:
                    scores[i, payload[leaf, 0]] += multiplier[t]
                elif column[t] >= 0:
                    scores[i, column[t]] += multiplier[t] * payload[leaf, 0]
                else:
                    for c in range(scores.shape[1]):
                        scores[i, c] += multiplier[t] * payload[leaf, c]


def walked_scores(forest: Forest, rows: Rows, threads: int) -> NDArray[np.int64]:
    """Scores as forest_scores gives them, by walking down every tree."""
    rows = np.ascontiguousarray(rows)
    scores = np.zeros((rows.shape[0], forest.n_columns), np.int64)
    nodes = (forest.node_feature, forest.node_kind, forest.node_threshold, forest.node_missing_left)
    starts, children = (forest.node_start, forest.leaf_start), (forest.node_left, forest.node_right)
    says = (forest.payload, forest.multiplier, forest.column, forest.speech is Speech.LABEL)

    def part(start: int, stop: int) -> None:
        _add_forest(rows, starts, nodes, children, says, (start, stop), scores)

    _share(rows.shape[0], rows.shape[0] * max(forest.n_trees, 1) * scores.shape[1], threads, part)
    return scores


def _share(n_rows: int, work: int, threads: int, part: Callable[[int, int], None]) -> None:
    """Do part(start, stop) of all rows on so many threads; one alone needs no team, which takes 0.1 ms to make."""
    if threads <= 1 or n_rows <= 1:
        part(0, n_rows)
        return
    with Team(threads) as team:
        team.over(n_rows, work, part)


def _flat(rows: Rows) -> tuple[NDArray[np.float64], tuple[int, int]]:
    """The values in one dimension, by rows or by columns as they lie, and the strides of a row and of a feature."""
    if rows.flags.f_contiguous and not rows.flags.c_contiguous:
        return rows.T.reshape(-1), (1, rows.shape[0])
    return np.ascontiguousarray(rows).reshape(-1), (rows.shape[1], 1)


def tiled_scores(compact: Compact, rows: Rows, threads: int) -> NDArray[np.int64]:
    """The same by tiles."""
    flat, strides = _flat(rows)
    scores = np.empty((rows.shape[0], compact.n_columns), np.int64)
    coding, trees, kind = compact.coding, compact.trees, (compact.labels, compact.n_columns)

    def part(start: int, stop: int) -> None:
        score_span(flat, strides, coding, trees, kind, (start, stop), new_tile(compact), scores)

    _share(rows.shape[0], _work(compact, rows.shape[0]), threads, part)
    return scores


def _own(rows: Rows) -> Rows:
    """A copy, by rows: what may not be written to, or lies otherwise, would be another type to a kernel."""
    return np.array(rows, np.float64, order="C")


def few_scores(walks: Walks, rows: Rows) -> NDArray[np.int64]:
    """The same for few rows, on one thread: another takes longer to start."""
    scores = np.empty((rows.shape[0], int(walks.shape[N_COLUMNS])), np.int64)
    walk_rows(_own(rows), *walks, scores, NO_CLASSES)
    return scores


def few_classes(walks: Walks, rows: Rows) -> NDArray[np.int32]:
    """Their classes, where the greatest score or the sign of the only one decides."""
    classes = np.empty(rows.shape[0], np.int32)
    walk_rows(_own(rows), *walks, NO_SCORES, classes)
    return classes


def forest_scores(forest: Forest, rows: Rows, threads: int = 1) -> NDArray[np.int64]:
    """Scores in units of 2**-20, int64 [n_rows, n_columns]; rows float64 [n_rows, n_features], NaN = missing."""
    if rows.shape[0] <= FEW_ROWS and (walks := walks_of(forest)) is not None:
        return few_scores(walks, rows)
    rows = np.asarray(rows, np.float64)
    compact = compact_of(forest)
    return walked_scores(forest, rows, threads) if compact is None else tiled_scores(compact, rows, threads)


def _work(compact: Compact, n_rows: int) -> int:
    """Element operations, as a team counts them."""
    return n_rows * (int(compact.weights.shape[0]) * (4 + compact.pitch // 8) + compact.n_codes)


def settled_labels(
    compact: Compact, bounds: Bounds, rows: Rows, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Class indices int32 [n_rows] or, by signs, label sets bool [n_rows, n_labels]; the other one is empty.

    bounds: what settles a row's label (settling.make_bounds); early or not, the labels are the same.
    """
    flat, strides = _flat(rows)
    n_rows, by_signs = rows.shape[0], bounds.by == By.SIGNS
    classes = np.empty(0 if by_signs else n_rows, np.int32)
    sets = np.empty((n_rows if by_signs else 0, compact.n_columns), np.bool_)
    coding, trees, kind = compact.coding, compact.trees, (compact.labels, compact.n_columns)

    def part(start: int, stop: int) -> None:
        label_span(flat, strides, coding, trees, kind, bounds, (start, stop), new_tile(compact), classes, sets)

    _share(n_rows, _work(compact, n_rows), threads, part)
    return classes, sets


def _make_settling(forest: Forest) -> tuple[Compact, Bounds] | None:
    compact = None if forest.decoding.coded else compact_of(forest)
    return None if compact is None else (compact, make_bounds(compact, forest.decoding))


_settling_of = Kept(_make_settling)
_plain_walks_of = Kept(lambda forest: None if forest.decoding.coded else walks_of(forest))


def _labels(model: Model, rows: Rows, threads: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]] | None:
    """As settled_labels; None where scores must be found first."""
    settling = _settling_of(model.forest) if rows.shape[0] > FEW_ROWS else None
    return None if settling is None else settled_labels(*settling, np.asarray(rows, np.float64), threads)


def _check_rows(model: Model, rows: Rows) -> None:
    if rows.ndim != 2 or rows.shape[1] != len(model.features):
        raise ValueError(f"rows must be [n_rows, {len(model.features)}], got shape {rows.shape}")


def scores(model: Model, rows: Rows, threads: int = 1) -> NDArray[np.int64]:
    """Scores F of raw rows in units of 2**-20, int64 [n_rows, n_columns].

    rows: float64 [n_rows, n_features] in the order of model.features, NaN = missing, in any memory layout. One column
    for adaboost, whose second class is predicted where it is >= 0, else a column a class.
    Errors: ValueError if the number of features is not the model's.
    """
    _check_rows(model, rows)
    return forest_scores(model.forest, rows, threads)


def predict(model: Model, rows: Rows, threads: int = 1) -> NDArray[np.int32]:
    """Class index of every raw row, int32 [n_rows]; ties go to the smallest index. Rows as in `scores`.

    A row is done with as soon as the remaining trees cannot change its class (settling.py).
    """
    _check_rows(model, rows)
    if rows.shape[0] <= FEW_ROWS and (walks := _plain_walks_of(model.forest)) is not None:
        return few_classes(walks, rows)
    if not model.multi_label and (settled := _labels(model, rows, threads)) is not None:
        return settled[0]
    block = max(SCORES_AT_ONCE // model.forest.n_columns, 1)
    starts = range(0, max(rows.shape[0], 1), block)
    found = [
        predicted_classes(forest_scores(model.forest, rows[start : start + block], threads), model.forest.decoding)
        for start in starts
    ]
    return found[0] if len(found) == 1 else np.concatenate(found)


def predict_sets(model: Model, rows: Rows, threads: int = 1) -> NDArray[np.bool_]:
    """Which labels every raw row has, bool [n_rows, n_labels]; for models of multi-label data. Rows as in `scores`."""
    _check_rows(model, rows)
    if model.multi_label and (settled := _labels(model, rows, threads)) is not None:
        return settled[1]
    return scores(model, rows, threads) > 0


def probabilities(model: Model, rows: Rows, threads: int = 1) -> NDArray[np.float64]:
    """Class probabilities of raw rows, float64 [n_rows, n_classes]; rows as in `scores`, links in probability.py.

    Rows sum to 1 and the predicted class has the largest probability. With several labels a row, each has a probability
    of its own, 1 / (1 + exp(-2 F)), above one half where the label is predicted.
    """
    units = scores(model, rows, threads)
    if model.multi_label:
        return label_probabilities(np.asarray(units * UNIT, np.float64))
    choice = model.config.algorithm
    offset = offset_of(choice.parameters, len(model.classes))
    decoding = model.forest.decoding
    predicted = predicted_classes(units, decoding)
    return probabilities_of(
        Transform(ALGORITHMS[choice.name].link, offset, 1.0 / model.temperature),
        np.asarray(units * UNIT, np.float64),
        decoding,
        predicted,
    )
