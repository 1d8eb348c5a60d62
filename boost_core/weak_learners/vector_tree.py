"""Trees of vector leaves (W8; Saberian & Vasconcelos 2011): a leaf points where its rows' gains point together.

With S the sums of a leaf's gains over K classes, which sum to 0,

    worth |S|_2,   outputs sqrt(K / (K - 1)) S_k / |S|_2

are the length of the rows' joint gradient in the space of simplex codewords, up to a factor, and the inner products of
its direction with the codewords.
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


@needs_no_count()
class Norms(NamedTuple):
    """A direction a leaf, of this many numbers."""

    n_outputs: int


@inner
def _worth(total):  # type: ignore[no-untyped-def]
    """The square root of a sum of squares as an integer; square roots are correctly rounded on all processors."""
    return np.int64(np.rint(np.sqrt(total)))


@step
def _set_leaf(sums, n_channels, payload):  # type: ignore[no-untyped-def]
    """The worth of a leaf; payload: OUT, its outputs in score units."""
    total = 0.0
    for c in range(n_channels):
        total += np.float64(sums[c]) * np.float64(sums[c])
    factor = np.sqrt(n_channels / (n_channels - 1.0)) * (1 << SCORE_UNITS)
    for c in range(n_channels):
        output = np.float64(sums[c]) / np.sqrt(total) * factor if total > 0.0 else 0.0
        payload[c] = np.int32(ieee_math.round_half_even(output))
    return _worth(total)


@implements(cut_value, Norms)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    below, above = 0.0, 0.0
    for c in range(n_channels):
        on_left, on_right = np.float64(left[c]), np.float64(sums[c] - left[c])
        below += on_left * on_left
        above += on_right * on_right
    return _worth(below) + _worth(above)


@implements(set_root, Norms)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    return _set_leaf(sums, n_channels, payload)


@implements(set_leaves, Norms)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_value = _set_leaf(left, n_channels, left_payload)
    return left_value, _set_leaf(right, n_channels, right_payload)


class VectorTree:
    """Grows by the largest increase of the leaves' joint gradients."""

    kind: ClassVar[str] = "vector_tree"
    summary: ClassVar[str] = "tree with a direction in the space of codewords in every leaf"
    source: ClassVar[str] = "Saberian & Vasconcelos, Multiclass Boosting: Theory and Algorithms, NIPS 2011"
    parameters: ClassVar[tuple[Parameter, ...]] = LIMITS

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._limits = limits(parameters)

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        """Outputs in score units; sums: of each channel and the row count, over all members."""
        max_leaves, max_depth = self._limits
        objective = Norms(gains.n_channels)
        tree = self._grower.grow(objective, gains, sums, max_leaves, gains.n_channels, max_depth)
        return one_tree(tree, Speech.VALUES)

    def worth(self, payload: NDArray[np.int32], sums: Integers) -> int:
        """The joint gradient along the leaves' directions, which is |S| where a leaf's direction is that of its S."""
        n_classes = sums.shape[1]
        products = sum(int(a) * int(b) for a, b in zip(sums.reshape(-1), payload.reshape(-1), strict=True))
        return round(products / (float(np.sqrt(n_classes / (n_classes - 1.0))) * (1 << SCORE_UNITS)))
