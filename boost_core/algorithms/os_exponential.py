"""The optimal strategy of the boosting game for the exponential loss (Mukherjee & Schapire 2010, eq. 5, Lemma 1)."""

from typing import Any, ClassVar

from boost_core.algorithms.adaboost_mm_fixed import LEAST, MOST
from boost_core.algorithms.base import Problem
from boost_core.algorithms.fixed_pairs import FixedPairs, best_alpha, on_grid
from boost_core.parameters import Parameter
from boost_core.probability import Link


class OSExponential(FixedPairs):
    """Every weak learner has one vote of weight eta, so the prediction is the plain plurality of the rounds."""

    name: ClassVar[str] = "os_exponential"
    summary: ClassVar[str] = "optimal strategy against weak learners of a known edge, exponential loss, equal votes"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    guarantee: ClassVar[str] = "training error <= loss <= (K - 1) kappa(edge, eta)^rounds while every edge is met"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("edge", "number", 0.1, "edge over random that every round can reach", minimum=LEAST, maximum=MOST),
        Parameter(
            "eta",
            "number",
            0.0,
            "weight of a vote; 0: the best one for the edge, 0.5 ln(1 + K edge / (1 - edge))",
            minimum=0.0,
            maximum=12.0,
        ),
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = True

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)
        edge, eta = float(parameters["edge"]), float(parameters["eta"])
        self._plan = (on_grid(eta or best_alpha(edge, self.n_columns)), edge)

    def planned(self, number: int) -> tuple[float, float | None]:
        """The same in all rounds."""
        return self._plan
