"""Forests made at random, of every kind that a model may hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import CutKind
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.fitted import Speech
from boost_core.model import Forest

N_FEATURES = 3
VALUES = np.array([-np.inf, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])


def random_forest(
    rng: np.random.Generator, sizes: list[int], speech: Speech, decoding: Decoding, alone: bool = False
) -> Forest:
    """Trees of so many nodes with random cuts, of both kinds, on few thresholds; steps are small, so scores tie."""
    n_nodes, n_trees, n_columns = sum(sizes), len(sizes), decoding.code.shape[1]
    children = [_grow(size, rng) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shape = (n_nodes + n_trees, 1 if alone or speech is Speech.LABEL else n_columns)
    payload = {
        Speech.VOTES: lambda: rng.choice(np.array([-1, 1], np.int8), shape),
        Speech.VALUES: lambda: rng.integers(-3, 4, shape).astype(np.int32),
        Speech.LABEL: lambda: rng.integers(0, n_columns, shape).astype(np.int32),
    }[speech]()
    columns = rng.integers(0, n_columns, n_trees) if alone else np.full(n_trees, -1)
    return Forest(
        node_start=starts,
        leaf_start=starts + np.arange(n_trees + 1),
        node_feature=rng.integers(0, N_FEATURES, n_nodes).astype(np.int32),
        node_kind=rng.choice(list(CutKind), n_nodes, p=[0.8, 0.2]).astype(np.int8),
        node_bin=np.zeros(n_nodes, np.int32),
        node_threshold=rng.choice(VALUES, n_nodes),
        node_missing_left=rng.random(n_nodes) < 0.5,
        node_left=np.concatenate([np.empty(0, np.int32), *(left for left, _ in children)]).astype(np.int32),
        node_right=np.concatenate([np.empty(0, np.int32), *(right for _, right in children)]).astype(np.int32),
        payload=payload,
        multiplier=rng.integers(1, 5, n_trees),
        column=columns.astype(np.int32),
        round_start=np.arange(n_trees + 1),
        speech=speech,
        n_columns=n_columns,
        decoding=decoding,
    )


def _grow(n_nodes: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Children of a random binary tree, every child after its parent."""
    left, right = np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32)
    holders: list[tuple[Any, int]] = []
    for node in range(n_nodes):
        if node:
            side, place = holders.pop(int(rng.integers(len(holders))))
            side[place] = node
        holders += [(left, node), (right, node)]
    for leaf, (side, place) in enumerate(holders):
        side[place] = ~leaf
    return left, right


KINDS: list[tuple[Speech, bool, Rule]] = [
    (Speech.VOTES, False, Rule.ARGMAX),
    (Speech.VALUES, False, Rule.ARGMAX),
    (Speech.VALUES, True, Rule.ARGMAX),
    (Speech.LABEL, False, Rule.ARGMAX),
    (Speech.VOTES, False, Rule.BINARY),
    (Speech.VALUES, True, Rule.BINARY),
    (Speech.VOTES, False, Rule.SIGNS),
    (Speech.VALUES, True, Rule.SIGNS),
]


def decoding_of(rule: Rule, n_columns: int) -> Decoding:
    return plain_decoding(1 if rule is Rule.BINARY else n_columns, rule is Rule.SIGNS)
