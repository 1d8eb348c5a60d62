"""SAMME (Zhu, Zou, Rosset & Hastie 2009): AdaBoost.M1 with a step that only asks to beat random guessing."""

from typing import Any, ClassVar

from boost_core.algorithms.atanh_step import ln
from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_hits import ExponentialHits
from boost_core.fitted import Fitted
from boost_core.parameters import Parameter
from boost_core.probability import Link


class Samme(ExponentialHits):
    """alpha = ln((1 - err) / err) + ln(K - 1), edge 1 - K err / (K - 1)."""

    name: ClassVar[str] = "samme"
    summary: ClassVar[str] = "SAMME: weak learners must beat random guessing, which is too weak a condition to boost"
    source: ClassVar[str] = "Zhu, Zou, Rosset & Hastie, Statistics and Its Interface 2, 2009"
    guarantee: ClassVar[str] = "loss = prod Z < 1 (exponential loss of the codewords); no bound on the training error"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.PLAIN
    fixed_steps: ClassVar[bool] = False
    # f = (1, 2, -3) with true label 0 has a loss below 1 and is wrong
    error_factor: ClassVar[float | None] = None

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem, 1.0 / problem.n_classes)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """edge = (K A+ - A) / ((K - 1) A)."""
        right, total, n_classes = int(outcomes[0]), int(totals[0]), self.n_columns
        edge = (n_classes * right - total) / ((n_classes - 1) * total)
        return self.along(edge, ln(n_classes - 1), totals, outcomes)
