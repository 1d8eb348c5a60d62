"""Factorised decision stumps (W3; Kegl 2013; W1 with one label): one cut, votes -v on its left and +v on its right."""

from typing import Any, ClassVar

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix, Reading
from boost_core.growth import Grower, Growth
from boost_core.parameters import Parameter
from boost_core.weak_learners.apart import StumpsApart
from boost_core.weak_learners.votes import Votes


class Stump:
    """The best single cut, or the constant if no cut is better."""

    kind: ClassVar[str] = "stump"
    summary: ClassVar[str] = "one cut with opposite votes on its two sides"
    source: ClassVar[str] = "Kegl, The return of AdaBoost.MH, arXiv 1312.6086, 2013"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._objective = Votes(free=False)
        self._apart = StumpsApart(grower)

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        if gains.reading is Reading.APART:
            return self._apart.fit(gains, sums)
        tree = self._grower.grow(self._objective, gains, sums, 2, gains.n_channels)
        return one_tree(tree, Speech.VOTES)

    def growth(self, n_channels: int) -> Growth:
        """See weak_learners.base.OneTree."""
        return Growth(self._objective, 2, n_channels)
