"""Refuses a model whose trees cannot be followed: kernels check no index, so files of strangers are checked first."""

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import CutKind
from boost_core.model import Forest, Model


def check_structure(model: Model) -> None:
    """Errors: ValueError if a row sent down a tree could leave the arrays or never reach a leaf."""
    forest, n_features, n_classes = model.forest, len(model.features), len(model.classes)
    starts = model.threshold_start
    _require(n_features > 0 and n_classes > 1, "it needs features and at least two classes")
    _require(starts.shape == (n_features + 1,), "thresholds do not belong to its features")
    _require(_ascends(starts, model.thresholds.shape[0]), "thresholds do not belong to its features")
    n_columns = forest.leaf_votes.shape[1]
    _require(n_columns == n_classes or (n_columns == 1 and n_classes == 2), "votes do not belong to its classes")
    _check_nodes(forest, n_features)
    _check_children(forest)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _ascends(starts: NDArray[np.int64], end: int) -> bool:
    return bool(starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all())


def _check_nodes(forest: Forest, n_features: int) -> None:
    n_nodes = forest.node_feature.shape[0]
    arrays = (
        forest.node_kind, forest.node_bin, forest.node_threshold,
        forest.node_missing_left, forest.node_left, forest.node_right,
    )  # fmt: skip
    _require(all(array.shape == (n_nodes,) for array in arrays), "its nodes are incomplete")
    _require(bool(((forest.node_feature >= 0) & (forest.node_feature < n_features)).all()), "a node has no feature")
    _require(bool(np.isin(forest.node_kind, list(CutKind)).all()), "a node has an unknown kind of cut")


def _check_children(forest: Forest) -> None:
    """Each learner is a binary tree: one leaf more than nodes, and every child is a later node or a leaf of it."""
    n_nodes, n_leaves = np.diff(forest.node_start), np.diff(forest.leaf_start)
    one_a_learner = n_nodes.shape == n_leaves.shape == (forest.n_learners,)
    _require(one_a_learner and bool((n_leaves == n_nodes + 1).all()), "its trees are incomplete")
    _require(_ascends(forest.node_start, forest.node_feature.shape[0]), "its trees are incomplete")
    _require(_ascends(forest.leaf_start, forest.leaf_votes.shape[0]), "its trees are incomplete")
    own = np.arange(forest.node_feature.shape[0]) - np.repeat(forest.node_start[:-1], n_nodes)
    size = np.repeat(n_nodes, n_nodes)
    for child in (forest.node_left, forest.node_right):
        fits = np.where(child < 0, ~child <= size, (child > own) & (child < size))
        _require(bool(fits.all()), "a node leads out of its tree")
