"""Regression stumps (W9): one cut, and the mean gain on each of its sides."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import Integers
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.parameters import Parameter
from boost_core.tree import NO_LIMIT
from boost_core.weak_learners.limits import Limits
from boost_core.weak_learners.means import grow_means, means_worth


class RegressionStump:
    """The cut of least squared error, or the constant if no cut is better."""

    kind: ClassVar[str] = "regression_stump"
    summary: ClassVar[str] = "one cut with a real number on each of its sides"
    source: ClassVar[str] = "Saberian & Vasconcelos, Multiclass Boosting: Theory and Algorithms, NIPS 2011"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        return grow_means(self._grower, gains, sums, Limits(2, NO_LIMIT))

    def worth(self, payload: NDArray[np.int32], sums: Integers) -> int:
        """The sum of gains times outputs."""
        return means_worth(payload, sums)
