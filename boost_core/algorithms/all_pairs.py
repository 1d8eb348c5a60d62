"""All pairs: a binary AdaBoost for every pair of classes, on their rows only, decoded by loss or by votes."""

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_columns import ExponentialColumns, equal_columns
from boost_core.decoding import Decoding, Rule
from boost_core.parameters import Parameter
from boost_core.probability import Link

MOST_CLASSES = 64  # 2016 columns: gains and scores take 16 KB a row

DECODING = Parameter(
    "decoding",
    "string",
    "loss",
    "loss: the class whose code has the least exponential loss at the scores; hamming: the fewest wrong signs",
    choices=("loss", "hamming"),
)


def pairs_code(n_classes: int) -> NDArray[np.int8]:
    """A column for each pair of classes, (0,1), (0,2), ..., (1,2), ...: the first is +1, the second -1."""
    pairs = list(combinations(range(n_classes), 2))
    code = np.zeros((n_classes, len(pairs)), np.int8)
    for column, (first, second) in enumerate(pairs):
        code[first, column], code[second, column] = 1, -1
    return code


class AllPairs(ExponentialColumns):
    """Column (a, b) is AdaBoost on the rows of classes a and b."""

    name: ClassVar[str] = "all_pairs"
    summary: ClassVar[str] = "a binary AdaBoost for every pair of classes"
    source: ClassVar[str] = "Allwein, Schapire & Singer, JMLR 1, 2000"
    guarantee: ClassVar[str] = "mean loss of the columns = that of their sqrt(1 - edge^2) products"
    parameters: ClassVar[tuple[Parameter, ...]] = (DECODING,)
    weak_learners: ClassVar[tuple[str, ...]] = ("stump", "hamming_tree")
    link: ClassVar[Link] = Link.DISTANCES
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        code = pairs_code(problem.n_classes)
        # a row takes part in K - 1 of the columns: those it has no part in may outvote it whatever its own losses are
        super().__init__(problem, equal_columns(code, problem.class_counts), None)
        self.decoding = Decoding(Rule(parameters["decoding"]), code)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""
        if n_classes > MOST_CLASSES:
            return f"all_pairs learns up to {MOST_CLASSES} classes, the data have {n_classes}; ecoc learns more"
        return None
