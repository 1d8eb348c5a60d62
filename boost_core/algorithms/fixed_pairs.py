"""Steps known in advance, on the exponential pair loss (Mukherjee & Schapire 2010, eqs. 5 and 6).

With the step alpha of the round, costs are C(i,l) = (e^alpha - 1) E(i,l), C(i,y) = (e^-alpha - 1) P_i; up to the
factor e^alpha - 1 their gains are -E(i,l) and e^-alpha P_i. The edge is the gamma for which the weak learner costs as
much as guessing the true label with probability gamma more than every wrong one:

    gamma = (Cbar - C.1h) / (Cbar - Cy),   Cbar = sum C / K,   Cy = sum_i C(i,y),   C.1h = sum_i C(i, h(i))
    loss factor = kappa(gamma, alpha) = 1 + (1 - gamma) / K (e^alpha + e^-alpha - 2) - (1 - e^-alpha) gamma
"""

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import make_step
from boost_core.algorithms.base import Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import ExponentialPairs
from boost_core.fitted import Fitted
from boost_core.scores import UNIT

EDGE_EPS = 1e-12  # the edge is not a ratio of integers: below is the rounding of this file's own arithmetic


def best_alpha(edge: float, n_classes: int) -> float:
    """The step that minimises kappa: 0.5 ln(1 + K gamma / (1 - gamma))."""
    return 0.5 * float(ieee_math.log(1.0 + n_classes * edge / (1.0 - edge)))


def on_grid(alpha: float) -> float:
    """A step in whole score units: gains and bounds are about the step that is taken, not about the one wished for."""
    return round(alpha / UNIT) * UNIT


def kappa(edge: float, alpha: float, n_classes: int) -> float:
    """What the loss is multiplied with by a step alpha along a weak learner of this edge over random."""
    shrunk = float(ieee_math.exp(-alpha))
    return 1.0 + (1.0 - edge) / n_classes * (1.0 / shrunk + shrunk - 2.0) - (1.0 - shrunk) * edge


class FixedPairs(ExponentialPairs):
    """Complete but for the plan: `planned(round)` gives the step and the edge it was planned for, rounds from 0.

    Without a planned edge (None) the bound takes the achieved one, of which the loss is an exact function.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._round = 0

    def planned(self, number: int) -> tuple[float, float | None]:
        """(alpha on the grid, planned edge) of a round, from 0."""
        raise NotImplementedError

    def own_share(self) -> float:
        """exp(-alpha) of the coming round."""
        return float(ieee_math.exp(-self.planned(self._round)[0]))

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The planned step, whether it helps or not; only a weak learner no better than random ends the run."""
        alpha, edge = self.planned(self._round)
        achieved = self._edge(alpha, totals, outcomes)
        factor = self.factor(alpha, totals, outcomes)
        if edge is not None:
            factor = max(factor, kappa(edge, alpha, self.n_columns))  # the lesser edge has the greater kappa
        ln_factor = float(ieee_math.log(factor))
        slack = self.slack(alpha, ln_factor, totals)
        return make_step(achieved, alpha, ln_factor, slack, perfect=int(outcomes[0]) == int(totals[1]))

    def _edge(self, alpha: float, totals: Integers, outcomes: Integers) -> float:
        """gamma, with all costs divided by e^alpha - 1: 1 for a wrong label, -e^-alpha for the true one."""
        right, wrong, total = int(outcomes[0]), int(outcomes[1]), int(totals[1])
        shrunk = float(ieee_math.exp(-alpha))
        mean = total * (1.0 - shrunk) / self.n_columns
        edge = (mean - (wrong - right * shrunk)) / (mean + total * shrunk)
        return edge if edge > EDGE_EPS else 0.0

    def taken(self, fitted: Fitted, step: Step) -> None:
        """On to the next planned step."""
        self._round += 1
