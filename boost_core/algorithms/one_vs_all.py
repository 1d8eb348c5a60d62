"""One-vs-all: a binary AdaBoost for every class against all others, side by side; the largest score wins."""

from typing import Any, ClassVar

from boost_core.algorithms.adaboost_mh import error_factor, initial_weights
from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_columns import Columns, ExponentialColumns, equal_columns, one_against_rest
from boost_core.parameters import Parameter
from boost_core.probability import Link


class OneVsAll(ExponentialColumns):
    """Column l is AdaBoost on the labels Y(:,l)."""

    name: ClassVar[str] = "one_vs_all"
    summary: ClassVar[str] = "a binary AdaBoost for every class against the others"
    source: ClassVar[str] = "Freund & Schapire, JCSS 55, 1997; Allwein, Schapire & Singer, JMLR 1, 2000"
    guarantee: ClassVar[str] = (
        "mean loss of the columns = that of their sqrt(1 - edge^2) products; training error <= K/2 of it"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "init_weights",
            "string",
            "uniform",
            "weights before round 1: equal for all rows, or those that adaboost_mh gives the (row, label) pairs",
            choices=("uniform", "asymmetric", "balanced"),
        ),
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("stump", "hamming_tree")
    link: ClassVar[Link] = Link.SIGMOIDS
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        code, kind = one_against_rest(problem.n_classes), parameters["init_weights"]
        factor = error_factor(initial_weights(kind, problem.class_counts), int(problem.class_counts.sum()))
        equal = equal_columns(code, problem.class_counts)
        weighted = Columns(code, initial_weights(kind, problem.class_counts))
        super().__init__(problem, equal if kind == "uniform" else weighted, factor)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None
