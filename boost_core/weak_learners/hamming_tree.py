"""Hamming trees (W4; Kegl 2013): best-first trees whose leaves vote +1 or -1 for every label."""

from typing import Any, ClassVar

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix, Reading
from boost_core.growth import Grower, Growth
from boost_core.parameters import Parameter
from boost_core.weak_learners.apart import TreesApart
from boost_core.weak_learners.limits import LIMITS, limits
from boost_core.weak_learners.votes import Votes


class HammingTree:
    """Grows by the largest increase of the sum of gains; max_leaves - 1 inner nodes at most."""

    kind: ClassVar[str] = "hamming_tree"
    summary: ClassVar[str] = "tree with a vote vector in every leaf"
    source: ClassVar[str] = "Kegl, The return of AdaBoost.MH, arXiv 1312.6086, 2013"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *LIMITS,
        # free is the default: it reaches a given test error in about half the rounds of factorised (docs/engine.md)
        Parameter(
            "votes",
            "string",
            "free",
            "free: every leaf votes for its own rows; factorised (as published): a cut's two leaves vote opposite ways",
            choices=("free", "factorised"),
        ),
    )

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._limits = limits(parameters)
        self._objective = Votes(free=parameters["votes"] == "free")

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        if gains.reading is Reading.APART:
            return TreesApart(self._grower, self._objective, self._limits).fit(gains, sums)
        objective, max_leaves, n_outputs, max_depth = self.growth(gains.n_channels)
        tree = self._grower.grow(objective, gains, sums, max_leaves, n_outputs, max_depth)
        return one_tree(tree, Speech.VOTES)

    def growth(self, n_channels: int) -> Growth:
        """See weak_learners.base.OneTree."""
        max_leaves, max_depth = self._limits
        return Growth(self._objective, max_leaves, n_channels, max_depth)
