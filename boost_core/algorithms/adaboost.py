"""Binary AdaBoost (Freund & Schapire 1997): one score column, class 1 where it is >= 0."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_votes import (
    NO_TARGET,
    ExponentialVotes,
    InitialWeights,
)
from boost_core.parameters import Parameter


class AdaBoost(ExponentialVotes):
    """Weights w_i = exp(-y_i f(x_i)) / n; the edge is 1 - 2 err, the step its artanh."""

    name: ClassVar[str] = "adaboost"
    summary: ClassVar[str] = "AdaBoost for two classes"
    source: ClassVar[str] = "Freund & Schapire, JCSS 55, 1997"
    guarantee: ClassVar[str] = "training error <= mean exp(-y f) = prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("hamming_tree", "stump")
    error_factor = 1.0

    def __init__(self, problem: Problem, parameters: Any) -> None:
        targets = np.where(problem.labels == 1, 0, NO_TARGET).astype(np.int32)
        n_rows = int(problem.class_counts.sum())
        each = np.full(1, 1.0 / n_rows)
        super().__init__(targets, InitialWeights(each, each), n_rows, problem.team)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        if n_classes != 2:
            return f"adaboost learns 2 classes, the data have {n_classes}; adaboost_mh learns any number"
        return None
