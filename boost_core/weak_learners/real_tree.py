"""Trees of real-valued leaves (W7; Schapire & Singer 1999): a leaf gives every label half its log odds.

Channels 0..K-1 are the weights W+ of pairs with Y = +1, channels K..2K-1 the weights W- of those with Y = -1.

    leaf value    c_l = 0.5 ln((W+_l + e) / (W-_l + e))
    what it leaves of the loss    Z = sum_l 2 sqrt(W+_l W-_l)

A leaf is worth what it takes off the loss, sum_l (W+_l + W-_l) - Z = sum_l (sqrt W+_l - sqrt W-_l)**2, as an integer.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.jit import inner, step
from boost_core.model import SCORE_UNITS
from boost_core.objective import cut_value, implements, needs_no_count, set_leaves, set_root
from boost_core.parameters import Parameter
from boost_core.weak_learners.limits import LIMITS, limits

LEAF_CAP = 12.0  # of a leaf's value, like that of a step
NOTHING = 2.0**-30  # stands for a sum of 0 without smoothing; its leaf value is capped


@needs_no_count()
class RealLeaves(NamedTuple):
    """Half log odds in every leaf; smoothing: e in units of the gains."""

    smoothing: float


@inner
def _gain(plus, minus):  # type: ignore[no-untyped-def]
    """(sqrt W+ - sqrt W-)**2 as an integer, never below 0; square roots are correctly rounded on all processors."""
    left_over = 2.0 * np.sqrt(np.float64(plus)) * np.sqrt(np.float64(minus))
    return max(plus + minus - np.int64(np.rint(left_over)), np.int64(0))


@step
def leaf_value(plus, minus, smoothing):  # type: ignore[no-untyped-def]
    """A leaf's value for a label in score units."""
    odds = ieee_math.log(max(np.float64(plus) + smoothing, NOTHING))
    odds -= ieee_math.log(max(np.float64(minus) + smoothing, NOTHING))
    value = min(max(0.5 * odds, -LEAF_CAP), LEAF_CAP)
    return np.int32(ieee_math.round_half_even(value * (1 << SCORE_UNITS)))


@step
def _set_leaf(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    """The worth of a leaf; payload: OUT."""
    n_labels = n_channels // 2
    value = np.int64(0)
    for c in range(n_labels):
        payload[c] = leaf_value(sums[c], sums[n_labels + c], objective.smoothing)
        value += _gain(sums[c], sums[n_labels + c])
    return value


@implements(cut_value, RealLeaves)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    n_labels = n_channels // 2
    value = np.int64(0)
    for c in range(n_labels):
        value += _gain(left[c], left[n_labels + c])
        value += _gain(sums[c] - left[c], sums[n_labels + c] - left[n_labels + c])
    return value


@implements(set_root, RealLeaves)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    return _set_leaf(objective, sums, n_channels, payload)


@implements(set_leaves, RealLeaves)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_value = _set_leaf(objective, left, n_channels, left_payload)
    return left_value, _set_leaf(objective, right, n_channels, right_payload)


class RealTree:
    """Grows by the largest decrease of the loss that is left."""

    kind: ClassVar[str] = "real_tree"
    summary: ClassVar[str] = "tree with a real number for every label in every leaf"
    source: ClassVar[str] = "Schapire & Singer, Machine Learning 37, 1999"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *LIMITS,
        Parameter(
            "smoothing",
            "number",
            1.0,
            "weight added to both sides of a leaf's odds, in units of the mean weight of a (row, label) pair",
            minimum=0,
            maximum=1e6,
        ),
    )

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._limits = limits(parameters)
        self._smoothing = float(parameters["smoothing"])

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        n_labels = gains.n_channels // 2
        n_pairs = int(sums[-1]) * n_labels
        objective = RealLeaves(self._smoothing * float(int(sums[:-1].sum())) / n_pairs)
        tree = self._grower.grow(objective, gains, sums, self._limits.max_leaves, n_labels, self._limits.max_depth)
        return one_tree(tree, Speech.VALUES)

    def worth(self, payload: NDArray[np.int32], sums: Integers) -> int:
        """What the leaf values as they are take off the loss."""
        n_labels = payload.shape[1]
        taken = 0.0
        for leaf, values in zip(sums.tolist(), payload.tolist(), strict=True):
            for c, value in enumerate(values):
                shrunk = float(ieee_math.exp(-value * 2.0**-SCORE_UNITS))
                taken += leaf[c] * (1.0 - shrunk) + leaf[n_labels + c] * (1.0 - 1.0 / shrunk)
        return round(taken)
