"""AdaBoost.M1 (Freund & Schapire 1997): plain weighted errors, which must stay below one half."""

from typing import Any, ClassVar

from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_hits import ExponentialHits
from boost_core.fitted import Fitted
from boost_core.parameters import Parameter
from boost_core.probability import Link


class AdaBoostM1(ExponentialHits):
    """alpha = ln((1 - err) / err), edge 1 - 2 err. Training ends when no weak learner has less than half the errors."""

    name: ClassVar[str] = "adaboost_m1"
    summary: ClassVar[str] = "AdaBoost.M1: weak learners must answer more than half the weight right"
    source: ClassVar[str] = "Freund & Schapire, JCSS 55, 1997"
    guarantee: ClassVar[str] = "training error <= loss = prod 2 sqrt(err (1 - err)) = prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.PLAIN
    fixed_steps: ClassVar[bool] = False
    error_factor: ClassVar[float | None] = 1.0

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem, 0.5)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """edge = (A+ - A-) / A."""
        right, total = int(outcomes[0]), int(totals[0])
        return self.along((2 * right - total) / total, 0.0, totals, outcomes)
