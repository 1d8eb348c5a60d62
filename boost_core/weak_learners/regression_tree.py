"""Regression trees (W9): best-first trees with the mean gain of its rows in every leaf."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import Integers
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.parameters import Parameter
from boost_core.weak_learners.limits import LIMITS, limits
from boost_core.weak_learners.means import grow_means, means_worth


class RegressionTree:
    """Grows by the largest decrease of the squared error."""

    kind: ClassVar[str] = "regression_tree"
    summary: ClassVar[str] = "tree with a real number in every leaf"
    source: ClassVar[str] = "Saberian & Vasconcelos, Multiclass Boosting: Theory and Algorithms, NIPS 2011"
    parameters: ClassVar[tuple[Parameter, ...]] = LIMITS

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._limits = limits(parameters)

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        return grow_means(self._grower, gains, sums, self._limits)

    def worth(self, payload: NDArray[np.int32], sums: Integers) -> int:
        """The sum of gains times outputs."""
        return means_worth(payload, sums)
