"""AdaBoost.M2 (Freund & Schapire 1996, 1997): AdaBoost.MM with step artanh under its first name, scores doubled."""

from typing import Any, ClassVar

from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import ExponentialPairs
from boost_core.fitted import Fitted
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.scores import UNIT


class AdaBoostM2(ExponentialPairs):
    """Pseudo-loss (1 - edge) / 2; a weak learner weighs ln((1 - pseudo-loss) / pseudo-loss), twice the artanh."""

    name: ClassVar[str] = "adaboost_m2"
    summary: ClassVar[str] = "AdaBoost.M2: boosting of the pseudo-loss; adaboost_mm with doubled scores"
    source: ClassVar[str] = "Freund & Schapire, ICML 1996; JCSS 55, 1997"
    guarantee: ClassVar[str] = "training error <= loss <= (K - 1) prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.PLAIN
    fixed_steps: ClassVar[bool] = False
    unit: ClassVar[float] = 0.5 * UNIT

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """Twice the step of AdaBoost.MM, to the bit."""
        step = self.atanh(totals, outcomes)
        return step._replace(alpha=2.0 * step.alpha, multipliers=2 * step.multipliers)
