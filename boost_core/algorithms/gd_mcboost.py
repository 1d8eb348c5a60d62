"""GD-MCBoost (Saberian & Vasconcelos 2011, Algorithm 1 right): all components of the predictor in every round."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.margin_descent import LOSS, Line, MarginDescent
from boost_core.fitted import Fitted, Speech
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.scores import UNIT


class GDMCBoost(MarginDescent):
    """s(i,k) += alpha <g(x_i), Y[k]> with g the mean gradient's direction in each leaf, or a codeword.

    Trees of one class a leaf stand for that class's codeword: it moves the margins like K / (K - 1) added to that
    class's score alone. With the exponential loss that is AdaBoost.MM with its exact step, at scores of double size.
    """

    name: ClassVar[str] = "gd_mcboost"
    summary: ClassVar[str] = "GD-MCBoost: gradient descent over simplex codewords, one vector learner a round"
    source: ClassVar[str] = "Saberian & Vasconcelos, NIPS 2011; JMLR 20, 2019"
    guarantee: ClassVar[str] = (
        "the loss falls every round and bounds the training error (logistic: over ln 2); "
        "exponential: loss <= (K - 1) prod sqrt(1 - edge^2)"
    )
    link: ClassVar[Link] = Link.PLAIN
    fixed_steps: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (LOSS,)
    weak_learners: ClassVar[tuple[str, ...]] = ("vector_tree", "tree")

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem, parameters)
        self._classes = np.arange(self.n_columns)
        self._reach = self.n_columns / (self.n_columns - 1.0)  # of a codeword's own class over all others

    def line(self, fitted: Fitted) -> Line:
        """Outputs sqrt(K / (K - 1)) q[k] / |q| of vector leaves, K / (K - 1) at the class of a single-label leaf."""
        tree = fitted.parts[0].tree
        if fitted.speech is Speech.LABEL:
            outputs = np.where(tree.payload == self._classes, self._reach, 0.0)
        else:
            outputs = tree.payload * UNIT
        return Line(outputs, self._classes, tree.leaf_of_row)

    def edge(self, fitted: Fitted, totals: Integers) -> float:
        """The sum of gains won over the greatest: P of a row by its class, sqrt(2) P by a vector of length 1."""
        greatest = 1.0 if fitted.speech is Speech.LABEL else float(np.sqrt(2.0))
        return min(fitted.value / (greatest * max(int(totals[1]), 1)), 1.0)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """A codeword's exponential loss needs A+ and A- only."""
        if self._closed(fitted):
            return super(MarginDescent, self).outcomes(fitted, gains)
        return super().outcomes(fitted, gains)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The least loss; along a codeword the exponential one has it at alpha = (K - 1) / K ln(A+ / A-)."""
        if not self._closed(fitted):
            return super().step(fitted, totals, outcomes)
        step = self.exact(totals, outcomes)
        return step._replace(alpha=2.0 * step.alpha / self._reach, multipliers=2 * step.multipliers)

    def _closed(self, fitted: Fitted) -> bool:
        return self._exponential and fitted.speech is Speech.LABEL
