"""AdaBoost.MH (Schapire & Singer 1999) with +-1 vote vectors (Kegl 2013): K coupled binary problems, one step."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.base import Integers, Problem
from boost_core.algorithms.exponential_votes import ExponentialVotes, InitialWeights
from boost_core.parameters import Parameter


def initial_weights(kind: str, class_counts: Integers) -> InitialWeights:
    """W1 of a single-label problem, summing to 1 over all (row, label) pairs.

    asymmetric: half the mass on the true labels; uniform: equal for all pairs; balanced: each class holds 1/K, half on
    its rows and half on the others.
    """
    n_classes, n_rows = class_counts.shape[0], int(class_counts.sum())
    if kind == "uniform":
        each = np.full(n_classes, 1.0 / (n_rows * n_classes))
        return InitialWeights(each, each)
    if kind == "balanced":
        own = class_counts.astype(np.float64)
        return InitialWeights(1.0 / (2.0 * n_classes * own), 1.0 / (2.0 * n_classes * (n_rows - own)))
    positive = np.full(n_classes, 1.0 / (2.0 * n_rows))
    return InitialWeights(positive, np.full(n_classes, 1.0 / (2.0 * n_rows * (n_classes - 1))))


def error_factor(initial: InitialWeights, n_rows: int) -> float:
    """Greatest weight a row's error can have against the loss.

    A wrong row i has a label l with F(l) >= F(y), so its part of the loss is at least
    c(y) exp(-F(y)) + c(l) exp(F(l)) >= 2 sqrt(c(y) c(l)): sqrt(K-1) for asymmetric weights, K/2 for uniform ones.
    """
    # the least product is among the two smallest weights of either sign
    true_labels = np.argsort(initial.positive, kind="stable")[:2]
    wrong_labels = np.argsort(initial.negative, kind="stable")[:2]
    pairs = ((y, wrong) for y in true_labels for wrong in wrong_labels if y != wrong)
    least = min(float(initial.positive[y] * initial.negative[wrong]) for y, wrong in pairs)
    return float(1.0 / (2.0 * n_rows * np.sqrt(least)))


class AdaBoostMH(ExponentialVotes):
    """Weights W(i,l) = W1(i,l) exp(-Y(i,l) F(i,l)); the edge is the sum of W Y H over the sum of W."""

    name: ClassVar[str] = "adaboost_mh"
    summary: ClassVar[str] = "AdaBoost.MH: multiclass boosting of the Hamming loss with vote vectors"
    source: ClassVar[str] = "Schapire & Singer, Machine Learning 37, 1999; Kegl, arXiv 1312.6086, 2013"
    guarantee: ClassVar[str] = (
        "weighted Hamming error <= loss = prod sqrt(1 - edge^2); training error <= sqrt(K - 1) of it"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "init_weights",
            "string",
            "asymmetric",
            "weights of the (row, label) pairs before round 1",
            choices=("asymmetric", "uniform", "balanced"),
        ),
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("hamming_tree", "stump")

    def __init__(self, problem: Problem, parameters: Any) -> None:
        initial = initial_weights(parameters["init_weights"], problem.class_counts)
        n_rows = int(problem.class_counts.sum())
        super().__init__(problem.labels, initial, n_rows * problem.n_classes, problem.team)
        self.error_factor = error_factor(initial, n_rows)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        return None
