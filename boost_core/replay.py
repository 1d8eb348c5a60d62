"""Restores what a model so far has done: to scores, and to what the algorithm keeps itself.

Scores are sums of integers, so a round adds the same wherever its rows are now, and can be taken back to the bit.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Algorithm, Step
from boost_core.binning import Binning
from boost_core.fitted import ALL_COLUMNS, Fitted, Part, Speech
from boost_core.forest import route
from boost_core.model import Forest
from boost_core.scores import Scores
from boost_core.shard import Shard
from boost_core.start import ModelSoFar, Standing
from boost_core.team import Team
from boost_core.tree import Tree

Integers = NDArray[np.int64]


def route_round(fitted: Fitted, shard: Shard, binning: Binning, team: Team) -> list[NDArray[np.int32]]:
    """The leaf of every row in each part, int32 [n_rows] each."""
    return [route(part.tree, shard.bins, binning, team) for part in fitted.parts]


def add_round(
    scores: Scores, fitted: Fitted, multipliers: Integers, leaves: Sequence[NDArray[np.int32]], team: Team
) -> None:
    """Add a round to scores; multipliers: int64 [parts]; leaves: of each part, the leaf of every row."""
    scores.widen(multipliers, fitted)
    for part, multiplier, leaf_of_row in zip(fitted.parts, multipliers.tolist(), leaves, strict=True):
        scores.add(part, fitted.speech, multiplier, leaf_of_row, team)


def replay(
    scores: Scores, rounds: Sequence[tuple[Fitted, Integers]], shard: Shard, binning: Binning, team: Team
) -> None:
    """Add rounds, each with its multipliers, to the scores of a shard."""
    for fitted, multipliers in rounds:
        add_round(scores, fitted, multipliers, route_round(fitted, shard, binning, team), team)


def bring_to(
    standing: Standing, model: ModelSoFar, shards: tuple[Shard, Shard | None], binning: Binning, team: Team
) -> None:
    """Make the standing that of the model: take back the rounds that are too many, add those that lack.

    shards: training and validation rows of the scores.
    """
    standing.whole = False
    while standing.n_rounds > model.n_rounds:
        back = [(standing.rounds.pop(), -standing.multipliers.pop())]
        _replay_both(standing, back, shards, binning, team)
    first = standing.n_rounds
    missing = list(zip(model.rounds[first:], model.multipliers[first:], strict=True))
    _replay_both(standing, missing, shards, binning, team)
    standing.rounds += [fitted for fitted, _ in missing]
    standing.multipliers += [multipliers for _, multipliers in missing]
    standing.whole = True


def _replay_both(
    standing: Standing,
    rounds: Sequence[tuple[Fitted, Integers]],
    shards: tuple[Shard, Shard | None],
    binning: Binning,
    team: Team,
) -> None:
    replay(standing.scores, rounds, shards[0], binning, team)
    if shards[1] is not None:
        replay(standing.valid_scores, rounds, shards[1], binning, team)


def remind(algorithm: Algorithm, model: ModelSoFar) -> None:
    """Tell a new algorithm of all rounds that were taken. The steps' factors are gone: `taken` must not need them."""
    for fitted, multipliers, record in zip(model.rounds, model.multipliers, model.records, strict=True):
        algorithm.taken(fitted, Step(record.edge, record.alpha, multipliers, ln_factor=0.0, ln_slack=0.0))


def rounds_of(forest: Forest) -> list[tuple[Fitted, Integers]]:
    """The weak learners of a forest and their multipliers, round after round: the inverse of `make_forest`.

    Trees hold no rows, and their values are 0: a forest does not keep what a tree was worth.
    """
    nodes = np.stack(
        [
            forest.node_feature, forest.node_kind, forest.node_bin,
            forest.node_missing_left, forest.node_left, forest.node_right,
        ],
        axis=1,
    ).astype(np.int64)  # fmt: skip
    payload = forest.payload.astype(np.int32)
    parts = [_part(forest, number, nodes, payload) for number in range(forest.n_trees)]
    return [
        (Fitted(tuple(parts[start:stop]), Speech(forest.speech)), forest.multiplier[start:stop].astype(np.int64))
        for start, stop in pairwise(forest.round_start.tolist())
    ]


def _part(forest: Forest, number: int, nodes: Integers, payload: NDArray[np.int32]) -> Part:
    tree = Tree(
        nodes=nodes[forest.node_start[number] : forest.node_start[number + 1]].copy(),
        payload=payload[forest.leaf_start[number] : forest.leaf_start[number + 1]].copy(),
        value=0,
        leaf_of_row=np.empty(0, np.int32),
    )
    column = int(forest.column[number])
    return Part(tree, column if column >= 0 else ALL_COLUMNS)
