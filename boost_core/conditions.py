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
This is the plain form, in floats; the rounds of a training are measured by condition_report.py.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Conditions:
    """The largest gamma of each condition; None where its denominator is 0."""

    uniform: float | None
    worst: float | None
    mr: float | None
    mh: float | None
    samme: float | None
    m1: float | None

    @classmethod
    def from_figures(cls, values: Sequence[float]) -> "Conditions | None":
        """From an array's row in the order of the fields, NaN for None; None if nothing was measured."""
        found = [None if math.isnan(value) else float(value) for value in values]
        return None if all(value is None for value in found) else cls(*found)

    def figures(self) -> list[float]:
        """The inverse of `from_figures`."""
        return [math.nan if value is None else value for value in astuple(self)]


def as_figures(rounds: Sequence[Conditions | None]) -> Floats | None:
    """Of all rounds, float64 [n_rounds, 6], NaN for None; None if no round was measured."""
    if not any(rounds):
        return None
    return np.array([each.figures() if each else [math.nan] * len(NAMES) for each in rounds], np.float64)


NAMES = tuple(field.name for field in fields(Conditions))


def conditions(costs: Floats, labels: NDArray[np.integer], answers: NDArray[np.integer]) -> Conditions:
    """costs: float64 [n_rows, n_classes], a true label's at most those of the others; labels, answers: [n_rows]."""
    n_rows, n_classes = costs.shape
    rows = np.arange(n_rows)
    own, paid = costs[rows, labels], float(costs[rows, answers].sum())
    total, own_sum = float(costs.sum()), float(own.sum())
    weights = np.abs(costs).sum(axis=1) / 2.0
    error = _ratio(float(weights[answers != labels].sum()), float(weights.sum()))
    right = None if error is None else (1.0 - n_classes * error / (n_classes - 1.0), 1.0 - 2.0 * error)
    mean, worst = total / n_classes, float(worst_means(costs, labels).sum())
    return Conditions(
        uniform=_ratio(mean - paid, mean - own_sum),
        worst=_ratio(worst - paid, worst - own_sum),
        mr=_ratio(-paid, total - own_sum),
        mh=_ratio(total - 2.0 * paid, float(np.abs(costs).sum())),
        samme=right[0] if right else None,
        m1=right[1] if right else None,
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


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole != 0.0 else None
