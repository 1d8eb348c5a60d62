"""Scores and classes of raw rows: the model's trees on float64 features, no binning needed."""

import numpy as np
from numpy.typing import NDArray

from boost_core.catalogue import ALGORITHMS
from boost_core.fitted import Speech
from boost_core.jit import kernel
from boost_core.model import Forest, Model
from boost_core.probability import Transform, label_probabilities, offset_of, probabilities_of
from boost_core.scores import UNIT, predicted_classes
from boost_core.team import Team

SCORES_AT_ONCE = 1 << 23  # scores that `predict` holds (64 MB), however many rows and classes there are
TILE_ROWS = 256  # rows that stay in the caches while all trees pass over them


@kernel
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
    for tile in range(span[0], span[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, span[1])
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


def forest_scores(forest: Forest, rows: NDArray[np.float64], threads: int = 1) -> NDArray[np.int64]:
    """Scores in units of 2**-20, int64 [n_rows, n_columns]; rows float64 [n_rows, n_features], NaN = missing."""
    rows = np.ascontiguousarray(rows, np.float64)
    scores = np.zeros((rows.shape[0], forest.n_columns), np.int64)
    nodes = (
        forest.node_feature,
        forest.node_kind,
        forest.node_threshold,
        forest.node_missing_left,
    )
    starts, children = (
        (forest.node_start, forest.leaf_start),
        (forest.node_left, forest.node_right),
    )
    says = (
        forest.payload,
        forest.multiplier,
        forest.column,
        forest.speech is Speech.LABEL,
    )

    def part(start: int, stop: int) -> None:
        _add_forest(rows, starts, nodes, children, says, (start, stop), scores)

    with Team(threads) as team:
        team.over(
            rows.shape[0],
            rows.shape[0] * max(forest.n_trees, 1) * scores.shape[1],
            part,
        )
    return scores


def scores(model: Model, rows: NDArray[np.float64], threads: int = 1) -> NDArray[np.int64]:
    """Scores F of raw rows in units of 2**-20, int64 [n_rows, n_columns].

    rows: float64 [n_rows, n_features] in the order of model.features, NaN = missing. One column for adaboost, whose
    second class is predicted where it is >= 0, else a column a class.
    Errors: ValueError if the number of features is not the model's.
    """
    if rows.ndim != 2 or rows.shape[1] != len(model.features):
        raise ValueError(f"rows must be [n_rows, {len(model.features)}], got shape {rows.shape}")
    return forest_scores(model.forest, rows, threads)


def predict(model: Model, rows: NDArray[np.float64], threads: int = 1) -> NDArray[np.int32]:
    """Class index of every raw row, int32 [n_rows]; ties go to the smallest index. Rows as in `scores`."""
    block = max(SCORES_AT_ONCE // model.forest.n_columns, 1)
    starts = range(0, max(rows.shape[0], 1), block)
    found = [
        predicted_classes(scores(model, rows[start : start + block], threads), model.forest.decoding)
        for start in starts
    ]
    return np.concatenate(found)


def predict_sets(model: Model, rows: NDArray[np.float64], threads: int = 1) -> NDArray[np.bool_]:
    """Which labels every raw row has, bool [n_rows, n_labels]; for models of multi-label data. Rows as in `scores`."""
    return scores(model, rows, threads) > 0


def probabilities(model: Model, rows: NDArray[np.float64], threads: int = 1) -> NDArray[np.float64]:
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
