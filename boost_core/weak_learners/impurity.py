"""Trees grown by weighted impurity, as C4.5 (entropy) and CART (gini) are.

With S_l >= 0 the weight of class l in a node and W their sum, a node is worth its purity,

    gini      sum_l S_l^2 / W                        (W times the chance that two draws agree)
    entropy   sum_l S_l (ln(S_l / W) + ln K)         (W times the nats that are known of the class)

in plain IEEE operations on exact sums, so every member finds the same. Leaves answer the class of the greatest sum, as
with the objective of labels.py; the value of such a tree is its purity, not its sum of gains.

Gains that are not weights are made so: a row's least gain is taken from all of its gains, which moves no answer.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from boost_core import ieee_math
from boost_core.gain_matrix import GainMatrix
from boost_core.jit import inner, kernel
from boost_core.objective import cut_value, implements, needs_no_count, set_leaves, set_root
from boost_core.team import Team
from boost_core.weak_learners.labels import best_label


@needs_no_count()
class Impurity(NamedTuple):
    """gini, else entropy."""

    gini: bool


@inner
def _worth(gini, part, total, n_channels):  # type: ignore[no-untyped-def]
    """A leaf's purity from a squared or entropic sum over its channels, as an integer of gain units."""
    if total <= 0.0:
        return np.int64(0)
    if gini:
        return np.int64(part / total)
    known = part + total * (ieee_math.log(np.float64(n_channels)) - ieee_math.log(total))
    return np.int64(max(known, 0.0))


@inner
def _term(gini, weight):  # type: ignore[no-untyped-def]
    if gini:
        return weight * weight
    return weight * ieee_math.log(weight) if weight > 0.0 else 0.0


@implements(cut_value, Impurity)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    left_part, right_part, left_total, right_total = 0.0, 0.0, 0.0, 0.0
    for c in range(n_channels):
        below, above = np.float64(left[c]), np.float64(sums[c] - left[c])
        left_part += _term(objective.gini, below)
        right_part += _term(objective.gini, above)
        left_total += below
        right_total += above
    left_worth = _worth(objective.gini, left_part, left_total, n_channels)
    return left_worth + _worth(objective.gini, right_part, right_total, n_channels)


@inner
def _leaf_worth(gini, sums, n_channels):  # type: ignore[no-untyped-def]
    part, total = 0.0, 0.0
    for c in range(n_channels):
        part += _term(gini, np.float64(sums[c]))
        total += np.float64(sums[c])
    return _worth(gini, part, total, n_channels)


@implements(set_root, Impurity)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    payload[0] = best_label(sums, n_channels)
    return _leaf_worth(objective.gini, sums, n_channels)


@implements(set_leaves, Impurity)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_payload[0] = best_label(left, n_channels)
    right_payload[0] = best_label(right, n_channels)
    left_worth = _leaf_worth(objective.gini, left, n_channels)
    return left_worth, _leaf_worth(objective.gini, right, n_channels)


@kernel
def _lift(values, n_channels, start, stop, weights):  # type: ignore[no-untyped-def]
    """weights (OUT) of rows start..stop: half of each gain above the row's least one. Returns their sum."""
    total = np.int64(0)
    for i in range(start, stop):
        least = np.int64(values[i, 0])
        for c in range(1, n_channels):
            least = min(least, np.int64(values[i, c]))
        copies = np.int64(values[i, n_channels])
        for c in range(n_channels):
            # half, since the difference of two gains can be twice the greatest, which int32 just does not hold
            weight = np.int64(values[i, c]) - least
            weight = weight >> 1 if copies <= 1 else (weight // copies >> 1) * copies
            weights[i, c] = weight
            total += weight
        weights[i, n_channels] = copies
    return total


def as_weights(gains: GainMatrix, team: Team) -> GainMatrix:
    """The gains of this member's rows as weights of classes, up to a factor."""
    weights = np.zeros_like(gains.values)
    state = (gains.values, gains.n_channels)
    parts = team.over(weights.shape[0], weights.size, lambda a, b: int(_lift(*state, a, b, weights)))
    return replace(gains, values=weights, total_mass=sum(parts))
