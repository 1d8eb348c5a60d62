"""Single-label trees (W2, "Greedy" of Mukherjee & Schapire 2010): every leaf answers with one class.

A leaf with sums S is worth max_l S_l and answers the smallest label that attains it; a cut is worth both its leaves.
"""

from typing import Any, ClassVar, NamedTuple

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.jit import inner
from boost_core.objective import cut_value, implements, set_leaves, set_root
from boost_core.parameters import Parameter


class Labels(NamedTuple):
    """One class a leaf."""

    n_outputs: int


@inner
def _best_label(sums, n_channels):  # type: ignore[no-untyped-def]
    best = 0
    for c in range(1, n_channels):
        if sums[c] > sums[best]:
            best = c
    return best


@implements(cut_value, Labels)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    left_best, right_best = left[0], sums[0] - left[0]
    for c in range(1, n_channels):
        left_best = max(left_best, left[c])
        right_best = max(right_best, sums[c] - left[c])
    return left_best + right_best


@implements(set_root, Labels)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    payload[0] = _best_label(sums, n_channels)
    return sums[payload[0]]


@implements(set_leaves, Labels)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_payload[0] = _best_label(left, n_channels)
    right_payload[0] = _best_label(right, n_channels)
    return left[left_payload[0]], right[right_payload[0]]


class SingleLabelTree:
    """Grows by the largest increase of the sum of gains."""

    kind: ClassVar[str] = "tree"
    summary: ClassVar[str] = "tree with one class in every leaf"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("max_leaves", "integer", 8, "most leaves of a tree", minimum=2, maximum=4096),
    )

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._max_leaves = int(parameters["max_leaves"])

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        tree = self._grower.grow(Labels(1), gains, sums, self._max_leaves, 1)
        return one_tree(tree, Speech.LABEL)
