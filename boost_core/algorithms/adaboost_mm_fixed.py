"""AdaBoost.MM with steps fixed in advance (Mukherjee & Schapire 2010, eq. 6)."""

from typing import Any, ClassVar

from boost_core.algorithms.base import Problem
from boost_core.algorithms.fixed_pairs import FixedPairs, best_alpha, on_grid
from boost_core.parameters import Parameter
from boost_core.probability import Link

LEAST, MOST = 1e-6, 0.999999  # limits of edges


class AdaBoostMMFixed(FixedPairs):
    """Steps given outright, or as the best ones for planned edges over random. The last entry of a list goes on."""

    name: ClassVar[str] = "adaboost_mm_fixed"
    summary: ClassVar[str] = "AdaBoost.MM with a sequence of steps, or of planned edges, that is fixed in advance"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    guarantee: ClassVar[str] = (
        "training error <= loss = (K - 1) prod kappa(edge, alpha), "
        "kappa = 1 + (1 - edge)/K (e^alpha + e^-alpha - 2) - (1 - e^-alpha) edge"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("edge", "number", 0.1, "planned edge of every round", minimum=LEAST, maximum=MOST),
        Parameter(
            "edges",
            "array",
            [],
            "planned edge of each round; the last one holds for all that follow",
            minimum=LEAST,
            maximum=MOST,
            excludes=("edge", "alphas"),
        ),
        Parameter(
            "alphas",
            "array",
            [],
            "step of each round; the last one holds for all that follow",
            minimum=LEAST,
            maximum=12.0,
            excludes=("edge", "edges"),
        ),
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = True

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)
        edges = parameters["edges"] or [parameters["edge"]]
        planned = [(on_grid(best_alpha(edge, self.n_columns)), float(edge)) for edge in edges]
        given = [(on_grid(alpha), None) for alpha in parameters["alphas"]]
        self._plan: list[tuple[float, float | None]] = [*given] or [*planned]

    def planned(self, number: int) -> tuple[float, float | None]:
        """(alpha, planned edge) of a round, from 0."""
        return self._plan[min(number, len(self._plan) - 1)]
