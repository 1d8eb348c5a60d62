"""Binary AdaBoost (Freund & Schapire 1997): one score column, class 1 where it is >= 0."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.atanh_step import atanh_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_votes import NO_TARGET, InitialWeights, VoteGains, ln_loss
from boost_core.parameters import Parameter
from boost_core.scores import Scores


class AdaBoost:
    """Weights w_i = exp(-y_i f(x_i)) / n; the edge is 1 - 2 err, the step its artanh."""

    name: ClassVar[str] = "adaboost"
    summary: ClassVar[str] = "AdaBoost for two classes"
    source: ClassVar[str] = "Freund & Schapire, JCSS 55, 1997"
    guarantee: ClassVar[str] = "training error <= mean exp(-y f) = prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    weak_learners: ClassVar[tuple[str, ...]] = ("stump", "hamming_tree")
    n_columns = 1
    error_factor = 1.0

    def __init__(self, problem: Problem, parameters: Any) -> None:
        targets = np.where(problem.labels == 1, 0, NO_TARGET).astype(np.int32)
        n_rows = int(problem.class_counts.sum())
        each = np.full(1, 1.0 / n_rows)
        self._votes = VoteGains(targets, InitialWeights(each, each), n_rows, problem.team)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        if n_classes != 2:
            return f"adaboost learns 2 classes, the data have {n_classes}; adaboost_mh learns any number"
        return None

    def peaks(self, scores: Scores) -> Integers:
        return self._votes.peaks(scores)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        matrix, shift = self._votes.gains(scores, peaks)
        return Gains(matrix, np.array([matrix.total_mass], np.int64), shift)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        return ln_loss(int(totals[0]), gains.matrix.scale, gains.shift)

    def step(self, value: int, totals: Integers) -> Step:
        return atanh_step(value, int(totals[0]))
