"""AdaBoost.MR (Schapire & Singer 1999): boosting of the ranking of labels; several labels a row: ranking_sets.py."""

from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.adaboost_mm import STEP, AdaBoostMM
from boost_core.algorithms.atanh_step import atanh_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.delegating import Delegating, Form
from boost_core.algorithms.exponential_pairs import ExponentialPairs
from boost_core.algorithms.ranking_sets import RankingSets
from boost_core.fitted import Fitted
from boost_core.jit import kernel
from boost_core.parameters import Parameter
from boost_core.probability import Link

VOTES_SHARE = 0.5  # of the step that votes get

OUTPUTS = Parameter(
    "outputs",
    "string",
    "single",
    "single: weak learners answer one class (tree); votes: +1 or -1 for every label (hamming_tree, stump, product)",
    choices=("single", "votes"),
    weak_learners=(("single", ("tree",)), ("votes", ("hamming_tree", "stump", "product"))),
)


@kernel
def _vote_outcomes(values, labels, votes, leaf_of_row, sums):  # type: ignore[no-untyped-def]
    """sums (OUT, int64 [2]): E of the pairs ranked right (H = +1 at the true label, -1 at the wrong one), and wrong."""
    for i in range(labels.shape[0]):
        row = votes[leaf_of_row[i]]
        own = row[labels[i]]
        for c in range(votes.shape[1]):
            if c != labels[i] and row[c] != own:
                sums[0 if own > 0 else 1] -= values[i, c]


class RankingVotes(ExponentialPairs):
    """Weak learners vote for every label, so both labels of a pair move by half the step."""

    may_be_sparse = False

    def __init__(self, problem: Problem, exact: bool) -> None:
        super().__init__(problem)
        self._exact = exact

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """A+ and A- of the weak learner on this member's rows."""
        sums, tree = np.zeros(2, np.int64), fitted.parts[0].tree
        _vote_outcomes(self._values, self._labels, tree.payload, tree.leaf_of_row, sums)
        return sums

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The step rule that was chosen."""
        if self._exact:
            return self.exact(totals, outcomes, VOTES_SHARE)
        return atanh_step(int(outcomes[0] - outcomes[1]), int(totals[1]), self.n_pairs, VOTES_SHARE)


class AdaBoostMR(Delegating):
    """D(i,l) = E(i,l) / A. Votes H have edge r = 0.5 sum D(i,l) (H(i,y) - H(i,l)) and add alpha / 2 H to the scores."""

    name: ClassVar[str] = "adaboost_mr"
    summary: ClassVar[str] = "AdaBoost.MR: boosting of the ranking loss, with votes for every label or one class a leaf"
    source: ClassVar[str] = "Schapire & Singer, Machine Learning 37, 1999"
    guarantee: ClassVar[str] = (
        "training error <= mean ranking loss * (K - 1) <= (K - 1) prod sqrt(1 - edge^2); with several labels a row the "
        "mean ranking loss <= prod sqrt(1 - edge^2)"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (OUTPUTS, STEP)
    weak_learners: ClassVar[tuple[str, ...]] = ("tree", "hamming_tree", "stump", "product")
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = False
    touched_gains: ClassVar[bool] = True

    def __init__(self, problem: Problem, parameters: Any) -> None:
        form = _form(problem, parameters)
        super().__init__(form, 1.0)
        self.sparse = isinstance(form, ExponentialPairs) and form.sparse

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None


def _form(problem: Problem, parameters: Any) -> Form:
    """Rows of several labels, votes for every label, or one class a leaf: then MR is MM."""
    if problem.sets is not None:
        return RankingSets(problem.sets, problem)
    if parameters["outputs"] == "votes":
        return RankingVotes(problem, exact=parameters["step"] == "exact")
    return AdaBoostMM(problem, parameters)
