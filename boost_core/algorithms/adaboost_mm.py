"""AdaBoost.MM, adaptive (Mukherjee & Schapire 2010, eq. 7; 2013): boosts under the minimal weak-learning condition."""

from typing import Any, ClassVar

from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import ExponentialPairs
from boost_core.fitted import Fitted
from boost_core.parameters import Parameter
from boost_core.probability import Link

STEP = Parameter(
    "step",
    "string",
    "atanh",
    "atanh: artanh of the edge, as published; exact: the minimum of the loss along the weak learner",
    choices=("atanh", "exact"),
)


class AdaBoostMM(ExponentialPairs):
    """Costs C(i,l) = exp(F(i,l) - F(i,y)) and minus their sum at the true label; the edge is the costs' share won."""

    name: ClassVar[str] = "adaboost_mm"
    summary: ClassVar[str] = "AdaBoost.MM: the weakest condition on weak learners that still allows boosting"
    source: ClassVar[str] = "Mukherjee & Schapire, NIPS 2010; JMLR 14, 2013"
    guarantee: ClassVar[str] = "training error <= loss <= (K - 1) prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = (STEP,)
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)
        self._exact = parameters["step"] == "exact"

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The step rule that was chosen."""
        return self.exact(totals, outcomes) if self._exact else self.atanh(totals, outcomes)
