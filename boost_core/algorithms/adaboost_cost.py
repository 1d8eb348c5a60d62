"""AdaBoost-Cost (Saberian & Vasconcelos 2011 after Mukherjee & Schapire 2010): AdaBoost.MM as printed there."""

from typing import Any, ClassVar

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ln, make_step
from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import ExponentialPairs
from boost_core.fitted import Fitted
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.scores import UNIT

STEP = Parameter(
    "step",
    "string",
    "atanh",
    "atanh: artanh of the edge; atanh_half: artanh of half the edge, which comes closest to the printed results",
    choices=("atanh", "atanh_half"),
)


class AdaBoostCost(ExponentialPairs):
    """The costs of AdaBoost.MM; half the edge is what the printed baseline (g, -g, ..) of its condition MR leaves."""

    name: ClassVar[str] = "adaboost_cost"
    summary: ClassVar[str] = "AdaBoost-Cost: AdaBoost.MM with a choice of shorter steps"
    source: ClassVar[str] = "Saberian & Vasconcelos, NIPS 2011; Mukherjee & Schapire, NIPS 2010"
    guarantee: ClassVar[str] = (
        "training error <= loss <= (K - 1) prod sqrt(1 - edge^2), with atanh_half "
        "(K - 1) prod (1 - edge^2 / 2) / sqrt(1 - edge^2 / 4)"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (STEP,)
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)
        self._half = parameters["step"] == "atanh_half"

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The step rule that was chosen."""
        return self._atanh_half(totals, outcomes) if self._half else self.atanh(totals, outcomes)

    def _atanh_half(self, totals: Integers, outcomes: Integers) -> Step:
        """alpha = artanh(delta / 2). The loss shrinks by cosh alpha - delta sinh alpha at most."""
        value, total = int(outcomes[0] - outcomes[1]), int(totals[1])
        edge = value / total
        if edge <= 0:
            return make_step(edge, 0.0, 0.0, 0.0)
        alpha = 0.5 * (ln(2 * total + value) - ln(2 * total - value))
        half = 0.5 * edge
        shrunk = float(ieee_math.log(1.0 - 2.0 * half * half))
        ln_factor = shrunk - 0.5 * float(ieee_math.log(1.0 - half * half))
        # the bound has its minimum at a longer step, so rounding alpha moves it: its slope is below 1
        slack = self.slack(alpha, ln_factor, totals) + 0.5 * UNIT
        return make_step(edge, alpha, ln_factor, slack, perfect=value == total)
