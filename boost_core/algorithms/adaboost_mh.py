"""AdaBoost.MH (Schapire & Singer 1999; Kegl 2013): K coupled binary problems, by votes, odds or a stump a label."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Integers, Pace, Paced, Problem
from boost_core.algorithms.delegating import Delegating
from boost_core.algorithms.exponential_columns import Columns, ExponentialColumns, one_against_rest
from boost_core.algorithms.exponential_sets import SetColumns, SetVotes, set_form
from boost_core.algorithms.exponential_votes import InitialWeights
from boost_core.algorithms.set_weights import hamming_factor, set_weights
from boost_core.algorithms.vote_form import vote_form, wants_columns
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.scores import Scores


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


def _form_of_sets(kind: str, sets: NDArray[np.uint8], problem: Problem) -> tuple[SetVotes | SetColumns, float]:
    """The form for rows of several labels, and what their strict Hamming error is at most in units of the loss."""
    mass, all_rows = problem.class_counts, problem.all_rows
    weights = set_weights(kind, mass, all_rows)
    own_sizes = np.bincount(sets.sum(axis=1, dtype=np.int64), minlength=mass.shape[0] + 1)
    sizes = problem.collective.max((own_sizes > 0).astype(np.int64)) > 0
    factor = hamming_factor(weights, sizes, mass, all_rows)
    if wants_columns(problem):
        return SetColumns(sets, weights, problem, factor), factor
    return set_form(sets, weights, problem), factor


class AdaBoostMH(Delegating):
    """Weights W(i,l) = W1(i,l) exp(-Y(i,l) F(i,l)); the edge is the sum of W Y H over the sum of W."""

    name: ClassVar[str] = "adaboost_mh"
    summary: ClassVar[str] = "AdaBoost.MH: multiclass boosting of the Hamming loss with vote vectors"
    source: ClassVar[str] = "Schapire & Singer, Machine Learning 37, 1999; Kegl, arXiv 1312.6086, 2013"
    guarantee: ClassVar[str] = (
        "weighted Hamming error <= loss = prod Z, Z = sqrt(1 - edge^2) with one step for all labels; "
        "training error <= sqrt(K - 1) loss with asymmetric weights, K/2 loss with uniform ones; with several labels a "
        "row the Hamming error <= a factor below 2 (asymmetric; uniform: 1) times the loss"
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
    weak_learners: ClassVar[tuple[str, ...]] = (
        "hamming_tree",
        "stump",
        "product",
        "independent_stumps",
        "real_tree",
        "tree",
    )
    link: ClassVar[Link] = Link.SIGMOIDS
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        if problem.sets is not None:
            form, factor = _form_of_sets(parameters["init_weights"], problem.sets, problem)
            super().__init__(form, factor)
            return
        initial = initial_weights(parameters["init_weights"], problem.class_counts)
        factor = error_factor(initial, int(problem.class_counts.sum()))
        if wants_columns(problem):
            code = one_against_rest(problem.n_classes)
            super().__init__(ExponentialColumns(problem, Columns(code, initial), factor), factor)
        else:
            super().__init__(vote_form(problem.labels, initial, problem), factor)

    def pace(self, scores: Scores, peaks: Integers) -> Pace | None:
        """See algorithms.base.Paced."""
        return self._form.pace(scores, peaks) if isinstance(self._form, Paced) else None

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        return None
