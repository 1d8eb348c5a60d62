"""Weak-learning conditions of a round (Mukherjee & Schapire 2010): how much better than random an answer is, by each.

A condition (C, B) holds for answers h and costs C of its family if sum_i C(i, h(i)) <= sum_i <C(i), B(i)>. Its baseline
B has a gamma in it; reported is the largest gamma at which the condition holds:

    uniform   guessing the true label with gamma more than every other:  (Cbar - C.h) / (Cbar - Cy)
    worst     the worst B with b_y >= b_l + gamma:                       (sum m_i - C.h) / (sum m_i - Cy)
    mr        rows sum to 0, baseline (1/2 + g/2, 1/2 - g/2, ..):        -C.h / sum of wrong costs
    mh        the same baseline, any costs:                              (sum C - 2 C.h) / sum |C|
    samme     accuracy by rows' weights t_i = sum |C(i)| / 2:            1 - K err / (K - 1)
    m1        the same:                                                  1 - 2 err

with Cbar = (1/K) sum C, Cy the true labels' costs, m_i the greatest mean of C(i, y_i) and the j largest wrong costs,
j = 1..K - 1. Boostable classes satisfy mr and worst; uniform is sufficient; mh and m1 ask too much, samme too little.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Conditions:
    """The largest gamma of each condition; NaN where its denominator is 0."""

    uniform: float
    worst: float
    mr: float
    mh: float
    samme: float
    m1: float


def conditions(costs: Floats, labels: NDArray[np.integer], answers: NDArray[np.integer]) -> Conditions:
    """costs: float64 [n_rows, n_classes], a true label's at most those of the others; labels, answers: [n_rows]."""
    n_rows, n_classes = costs.shape
    rows = np.arange(n_rows)
    own, paid = costs[rows, labels], float(costs[rows, answers].sum())
    total, own_sum = float(costs.sum()), float(own.sum())
    weights = np.abs(costs).sum(axis=1) / 2.0
    error = _ratio(float(weights[answers != labels].sum()), float(weights.sum()))
    mean, worst = total / n_classes, float(worst_means(costs, labels).sum())
    return Conditions(
        uniform=_ratio(mean - paid, mean - own_sum),
        worst=_ratio(worst - paid, worst - own_sum),
        mr=_ratio(-paid, total - own_sum),
        mh=_ratio(total - 2.0 * paid, float(np.abs(costs).sum())),
        samme=1.0 - n_classes * error / (n_classes - 1.0),
        m1=1.0 - 2.0 * error,
    )


def worst_means(costs: Floats, labels: NDArray[np.integer]) -> Floats:
    """m_i of every row, float64 [n_rows]."""
    n_rows, n_classes = costs.shape
    rows = np.arange(n_rows)
    wrong = costs.copy()
    wrong[rows, labels] = -np.inf
    largest_first = -np.sort(-wrong, axis=1)[:, : n_classes - 1]
    sums = costs[rows, labels][:, None] + np.cumsum(largest_first, axis=1)
    return np.asarray((sums / np.arange(2, n_classes + 1)).max(axis=1))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole != 0.0 else float("nan")
