"""Refuses a model whose trees cannot be followed: kernels check no index, so files of strangers are checked first."""

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import CutKind
from boost_core.decoding import Rule
from boost_core.fitted import ALL_COLUMNS, Speech
from boost_core.model import Forest, Model, RoundFigures


def check_structure(model: Model) -> None:
    """Errors: ValueError if a row sent down a tree could leave the arrays or never reach a leaf."""
    forest, n_features = model.forest, len(model.features)
    starts = model.threshold_start
    _require(n_features > 0 and len(model.classes) > 1, "it needs features and at least two classes")
    by_columns = isinstance(model.label, tuple) and model.multi_label and model.label == model.classes
    _require(isinstance(model.label, str) or by_columns, "its label has no name")
    _require(starts.shape == (n_features + 1,), "thresholds do not belong to its features")
    _require(_ascends(starts, model.thresholds.shape[0]), "thresholds do not belong to its features")
    _check_decoding(forest, len(model.classes))
    _check_nodes(forest, n_features)
    _check_children(forest)
    _check_payload(forest)
    _check_rounds(model)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _ascends(starts: NDArray[np.int64], end: int) -> bool:
    return bool(starts.shape[0] > 0 and starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all())


def _check_decoding(forest: Forest, n_classes: int) -> None:
    """A score a class, one for two, or a code with a row a class."""
    n_columns, rule, code = forest.n_columns, forest.decoding.rule, forest.decoding.code
    _require(type(n_columns) is int and n_columns > 0, "it has no score columns")
    if forest.decoding.coded:
        _require(code.shape == (n_classes, n_columns), "its code does not belong to its classes")
        _require(bool(np.isin(code, (-1, 0, 1)).all()), "its code holds other numbers than -1, 0 and 1")
        return
    wanted = (1, 2) if rule is Rule.BINARY else (n_classes, n_classes)
    _require((n_columns, n_classes) == wanted, "its score columns do not belong to its classes")
    _require(code.shape == (0, n_columns), "it has a code and does not use it")


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
    """Each tree is binary: one leaf more than nodes, and every child is a later node or a leaf of it."""
    n_nodes, n_leaves = np.diff(forest.node_start), np.diff(forest.leaf_start)
    one_a_tree = n_nodes.shape == n_leaves.shape == (forest.n_trees,)
    _require(one_a_tree and bool((n_leaves == n_nodes + 1).all()), "its trees are incomplete")
    _require(_ascends(forest.node_start, forest.node_feature.shape[0]), "its trees are incomplete")
    _require(_ascends(forest.leaf_start, forest.payload.shape[0]), "its trees are incomplete")
    own = np.arange(forest.node_feature.shape[0]) - np.repeat(forest.node_start[:-1], n_nodes)
    size = np.repeat(n_nodes, n_nodes)
    for child in (forest.node_left, forest.node_right):
        fits = np.where(child < 0, ~child <= size, (child > own) & (child < size))
        _require(bool(fits.all()), "a node leads out of its tree")


def _check_payload(forest: Forest) -> None:
    """A label names a score column; a tree speaks for one column, with one number a leaf, or for all of them."""
    payload, column = forest.payload, forest.column
    _require(column.shape == (forest.n_trees,), "its trees are incomplete")
    _require(bool(((column >= ALL_COLUMNS) & (column < forest.n_columns)).all()), "a tree has no score column")
    for_all = bool((column == ALL_COLUMNS).all())
    if forest.speech is Speech.LABEL:
        _require(for_all and payload.shape[1] == 1, "its leaves do not answer with a label")
        _require(bool(((payload >= 0) & (payload < forest.n_columns)).all()), "a leaf answers with an unknown label")
        return
    by_column = bool((column != ALL_COLUMNS).all())
    fits = payload.shape[1] == forest.n_columns if for_all else by_column and payload.shape[1] == 1
    _require(fits, "its leaves do not belong to its score columns")


def _check_rounds(model: Model) -> None:
    """Rounds are consecutive trees, and every figure is there for each."""
    _require(_ascends(model.forest.round_start, model.forest.n_trees), "its rounds are incomplete")
    figures = [getattr(model.figures, field.name) for field in fields(RoundFigures)]
    _require(all(figure.shape == (model.forest.n_rounds,) for figure in figures), "its rounds are incomplete")
    measured = model.forest.n_rounds if model.conditions is None else model.conditions.shape[0]
    _require(measured == model.forest.n_rounds, "its rounds are incomplete")
