"""The stress class of Brukhim et al. 2021, section 5: how many rounds a sample of each size needs.

n points, all of class 0. A weak learner h(j, l) is right on point j and answers l on all others; points 0..n-3 have two
of them each, the last two points one each, with wrong answers of their own. A hidden one, right on the last point, is
found only where it is strictly better than all others on what the learner was given; without it some point stays wrong.
"""

from statistics import median
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core.algorithms.base import Problem
from boost_core.algorithms.multiclass_adaboost import MulticlassAdaBoost
from boost_core.catalogue import resolve_config
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.scores import zero_scores
from boost_core.team import Team
from boost_core.tree import Tree

N = 4


def members_of(n_classes: int, seed: int) -> NDArray[np.int32]:
    """Answers of all weak learners, int32 [2 n - 1, n]; the hidden one is the last."""
    right = [*np.repeat(np.arange(N - 2), 2), N - 2, N - 1]
    labels = np.arange(1, len(right) + 1)
    hidden = np.random.default_rng(seed).integers(len(right) + 1, n_classes)
    answers = np.repeat(np.append(labels, hidden)[:, None], N, axis=1)
    answers[np.arange(len(right) + 1), [*right, N - 1]] = 0
    return answers.astype(np.int32)


def best(members: NDArray[np.int32], values: NDArray[np.integer]) -> Fitted:
    """The first of the best visible ones, or the hidden one; every point is a leaf."""
    won = values[np.arange(N), members].sum(axis=1)
    visible = int(won[:-1].argmax())
    chosen = members[-1] if won[-1] > won[visible] else members[visible]
    tree = Tree(np.empty((0, 6), np.int64), chosen[:, None].copy(), int(won.max()), np.arange(N, dtype=np.int32))
    return one_tree(tree, Speech.LABEL)


def rounds_to_no_error(n_classes: int, seed: int, limit: int, **options: Any) -> int:
    """Rounds until no point is strictly wrong; limit + 1 if that takes longer. A sample that misleads costs a round."""
    members, labels = members_of(n_classes, seed), np.zeros(N, np.int32)
    config = resolve_config({"algorithm": {"name": "multiclass_adaboost", **options}}).algorithm
    counts = np.bincount(labels, minlength=n_classes).astype(np.int64)
    with Team(1) as team:
        algorithm = MulticlassAdaBoost(
            Problem(labels, counts, team, seed=seed, row_ranges=((0, N),)), config.parameters
        )
        scores = zero_scores(N, n_classes)
        for number in range(1, limit + 1):
            gains = algorithm.gains(scores, algorithm.peaks(scores))
            fitted = best(members, gains.matrix.values)
            step = algorithm.step(fitted, gains.totals, algorithm.outcomes(fitted, gains))
            algorithm.taken(fitted, step)
            if step.refused is None:
                scores.widen(step.multipliers, fitted)
                scores.add(fitted.parts[0], Speech.LABEL, int(step.multipliers[0]), np.arange(N, dtype=np.int32), team)
            if scores.count_errors(labels, team, None)[1] == 0:
                return number
    return limit + 1


def test_reweighting_takes_ten_rounds():
    assert {rounds_to_no_error(2000, seed, 20) for seed in range(3)} == {10}


@pytest.mark.parametrize(
    ("n_classes", "sample_rows", "least", "most"),
    [(2000, 10_000, 12, 14), (2000, 1000, 19, 31), (2000, 100, 117, 164), (2000, 20, 301, 301), (20, 100, 7, 26)],
)
def test_smaller_samples_take_more_rounds(n_classes: int, sample_rows: int, least: int, most: int):
    """Listed are the least and the most of a few runs, so a median may lie somewhat outside: by half at most."""
    options = {"sampling": "resample", "sample_rows": sample_rows}
    found = [rounds_to_no_error(n_classes, seed, 300, **options) for seed in range(5)]
    assert least / 1.5 <= median(found) <= 1.5 * most, found
    assert min(found) <= most, found
    assert max(found) >= least, found
