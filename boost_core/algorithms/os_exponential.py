"""The optimal strategy of the boosting game for the exponential loss (Mukherjee & Schapire 2010, eq. 5, Lemma 1)."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.adaboost_mm_fixed import LEAST, MOST
from boost_core.algorithms.base import Problem
from boost_core.algorithms.baseline_pairs import LARGEST_ETA, BaselinePairs, guesses, make_baseline
from boost_core.algorithms.delegating import Delegating, Form
from boost_core.algorithms.fixed_pairs import FixedPairs, best_alpha, on_grid
from boost_core.parameters import Parameter
from boost_core.probability import Link

SUM_TOLERANCE = 1e-6  # how far the numbers of a distribution may be from 1 in all


class UniformBaseline(FixedPairs):
    """The edge over uniform guessing and one eta for all labels: a fixed sequence of one step, of any length."""

    def __init__(self, problem: Problem, edge: float, eta: float) -> None:
        super().__init__(problem)
        self._plan = (on_grid(eta or best_alpha(edge, self.n_columns)), edge)

    def planned(self, number: int) -> tuple[float, float | None]:
        """The same in all rounds."""
        return self._plan


class OSExponential(Delegating):
    """Every weak learner has one vote of weight eta, so the prediction is the plain plurality of the rounds."""

    name: ClassVar[str] = "os_exponential"
    summary: ClassVar[str] = "optimal strategy against weak learners of a known edge, exponential loss, equal votes"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    guarantee: ClassVar[str] = (
        "training error <= loss <= (K - 1) kappa(edge, eta)^rounds while every edge is met; with a baseline, after all "
        "rounds, training error <= loss <= mean of sum_l a(y,l)^rounds"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("edge", "number", 0.1, "edge over chance that every round can reach", minimum=LEAST, maximum=MOST),
        Parameter(
            "eta",
            "number",
            0.0,
            "weight of a vote; 0: the best one for the edge, 0.5 ln(1 + K edge / (1 - edge)); with a baseline the best "
            "one for every pair of labels",
            minimum=0.0,
            maximum=LARGEST_ETA,
        ),
        Parameter(
            "etas",
            "array",
            [],
            "weight of a vote against each class where it is wrong, in the order of the classes",
            minimum=LEAST,
            maximum=LARGEST_ETA,
            excludes=("eta",),
        ),
        Parameter(
            "baseline",
            "array",
            [],
            "what chance guesses: a distribution over the classes, or one for each true class, row after row; the edge "
            "is added at the true label; empty: uniform",
            minimum=0.0,
            maximum=1.0,
        ),
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = True
    touched_gains: ClassVar[bool] = True

    def __init__(self, problem: Problem, parameters: Any) -> None:
        form = _form(problem, parameters)
        super().__init__(form, form.error_factor if isinstance(form, UniformBaseline) else None)
        self.sparse = isinstance(form, UniformBaseline) and form.sparse

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None

    @staticmethod
    def settings_refusal(parameters: Mapping[str, Any], n_classes: int, rounds: int) -> tuple[str, str] | None:
        """Numbers that are not one a class, or a baseline that is no guess at the true label."""
        given = len(parameters["etas"])
        if given not in (0, n_classes):
            return "etas", f"there are {n_classes} classes, got {given} numbers; give one for each class"
        given = len(parameters["baseline"])
        if given == 0:  # uniform: never wrong, and there may be too many classes to write it out
            return None
        if given not in (n_classes, n_classes * n_classes):
            wanted = f"{n_classes}, or {n_classes * n_classes} for a row for each true class"
            return "baseline", f"there are {n_classes} classes, got {given} numbers; give {wanted}"
        wrong = _wrong_baseline(_chance(parameters["baseline"], n_classes), float(parameters["edge"]))
        return None if wrong is None else ("baseline", wrong)

    @staticmethod
    def plans_rounds(parameters: Mapping[str, Any]) -> bool:
        """With a baseline, pairs of labels weigh by the rounds to come."""
        return _is_general(parameters)


def _is_general(parameters: Mapping[str, Any]) -> bool:
    return bool(parameters["baseline"] or parameters["etas"])


def _form(problem: Problem, parameters: Any) -> Form:
    """Any baseline, or the uniform one, whose rounds are alike."""
    edge, eta = float(parameters["edge"]), float(parameters["eta"])
    if not _is_general(parameters):
        return UniformBaseline(problem, edge, eta)
    chance = _chance(parameters["baseline"], problem.n_classes)
    chance /= np.array([[math.fsum(row)] for row in chance])  # in one order on every processor
    etas = np.array(parameters["etas"], np.float64) if parameters["etas"] else eta
    return BaselinePairs(problem, make_baseline(chance, edge, etas))


def _chance(given: Any, n_classes: int) -> NDArray[np.float64]:
    """What chance guesses on rows of each class, [n_classes, n_classes]."""
    numbers = np.array(given or [1.0 / n_classes] * n_classes, np.float64)
    return np.array(np.broadcast_to(numbers.reshape(-1, n_classes), (n_classes, n_classes)))


def _wrong_baseline(chance: NDArray[np.float64], edge: float) -> str | None:
    """What keeps the rows from being distributions that favour the true label, with the edge added."""
    for y, row in enumerate(chance):
        if abs(row.sum() - 1.0) > SUM_TOLERANCE:
            return f"the numbers for true class {y} (from 0) add up to {row.sum():.6g}; a distribution adds up to 1"
    b = guesses(chance, edge)
    for y, row in enumerate(b):
        favoured = int(row.argmax())
        if row[favoured] > row[y]:
            found = f"class {favoured} with {row[favoured]:.6g} and the true one with {row[y]:.6g}"
            return f"rows of class {y} (from 0) would be guessed {found}; no label may be likelier than the true one"
    return None
