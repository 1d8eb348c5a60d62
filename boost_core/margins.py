"""Margins of a vote, and what AdaBoost's edges prove of them (Schapire, Freund, Bartlett & Lee 1998; Xu 2020).

A row's normalised margin is the true label's lead over the best wrong one in units of all the steps, in [-1, 1]. With
edges g_t the share of rows with a margin of theta or less is at most

    factor * prod sqrt((1 - g_t)^(1 - theta) (1 + g_t)^(1 + theta)),   factor = K - 1 for the exponential pair loss

and the game's value lies between the least margin and the least edge seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bracket:
    """Bounds of the optimal margin rho*: the least margin of the vote, and the least edge seen so far."""

    low: float
    high: float

    @property
    def gap(self) -> float:
        return self.high - self.low


def vote_margins(scores: Floats, labels: NDArray[np.integer], steps: float) -> Floats:
    """Normalised margins, float64 [n_rows]; scores [n_rows, n_classes]; steps: sum of the absolute alphas, > 0."""
    rows = np.arange(labels.shape[0])
    others = scores.copy()
    others[rows, labels] = -np.inf
    return np.asarray((scores[rows, labels] - others.max(axis=1)) / steps)


def shares_below(margins: Floats, grid: Floats) -> Floats:
    """Share of rows whose margin is at most each number of the grid (the empirical CDF), float64 like grid."""
    return np.asarray(np.searchsorted(np.sort(margins), grid, side="right") / margins.shape[0])


def ln_share_bound(edges: Sequence[float], theta: float, factor: float = 1.0) -> float:
    """ln of the bound on the share of rows with a margin of at most theta; edges in [0, 1)."""
    terms = ((1.0 - theta) * math.log1p(-edge) + (1.0 + theta) * math.log1p(edge) for edge in edges)
    return math.log(factor) + 0.5 * sum(terms)


def bracket(margins: Floats, edges: Sequence[float]) -> Bracket:
    """Where the optimal margin lies. The weak learners must have had the largest edges there are."""
    return Bracket(float(margins.min()), min(edges))


def rounds_to_zero_error(edge: float, n_rows: int, initial_loss: float) -> int:
    """Rounds after which no training row is strictly wrong, if all edges are at least this; initial_loss: 1 for two
    classes, K - 1 for pair losses, sqrt(K - 1) for adaboost_mh."""
    return math.ceil(2.0 * math.log(n_rows * initial_loss) / edge**2) + 1
