"""Binary AdaBoost (Freund & Schapire 1997): one score column, class 1 where it is >= 0."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.base import Problem
from boost_core.algorithms.delegating import Delegating
from boost_core.algorithms.exponential_votes import NO_TARGET, InitialWeights
from boost_core.algorithms.vote_form import vote_form
from boost_core.parameters import Parameter
from boost_core.probability import Link


class AdaBoost(Delegating):
    """Weights w_i = exp(-y_i f(x_i)) / n; the edge is 1 - 2 err, the step its artanh."""

    name: ClassVar[str] = "adaboost"
    summary: ClassVar[str] = "AdaBoost for two classes"
    source: ClassVar[str] = "Freund & Schapire, JCSS 55, 1997"
    guarantee: ClassVar[str] = "training error <= mean exp(-y f) = prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("hamming_tree", "stump", "product", "real_tree", "tree")
    link: ClassVar[Link] = Link.SIGMOID
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        targets = np.where(problem.labels == 1, 0, NO_TARGET).astype(np.int32)
        each = np.full(1, 1.0 / int(problem.class_counts.sum()))
        super().__init__(vote_form(targets, InitialWeights(each, each), problem), 1.0)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        if n_classes != 2:
            return f"adaboost learns 2 classes, the data have {n_classes}; adaboost_mh learns any number"
        return None
