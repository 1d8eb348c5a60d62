"""Single-label trees (W2, "Greedy" of Mukherjee & Schapire 2010): every leaf answers with one class."""

from typing import Any, ClassVar

import numpy as np

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix, Reading, channel_sums, gains_won
from boost_core.growth import Grower
from boost_core.parameters import Parameter
from boost_core.tree import Tree
from boost_core.weak_learners.impurity import Impurity, as_weights
from boost_core.weak_learners.labels import Labels
from boost_core.weak_learners.limits import LIMITS, limits
from boost_core.weak_learners.votes import Votes

CRITERION = Parameter(
    "criterion",
    "string",
    "error",
    "what a cut improves; error: the sum of gains; gini, entropy: the weighted impurity of the leaves' classes",
    choices=("error", "gini", "entropy"),
    algorithms=("adaboost_m1", "samme", "adaboost_mh"),
)


class SingleLabelTree:
    """Grows by the largest increase of what the criterion says, from the gains of all classes."""

    kind: ClassVar[str] = "tree"
    summary: ClassVar[str] = "tree with one class in every leaf"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    parameters: ClassVar[tuple[Parameter, ...]] = (*LIMITS, CRITERION)

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._limits = limits(parameters)
        criterion = parameters["criterion"]
        self._objective: Labels | Impurity = Labels(1) if criterion == "error" else Impurity(criterion == "gini")

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        max_leaves, max_depth = self._limits
        if gains.reading is Reading.VOTES and gains.n_channels == 1:  # two classes, the signs of the one channel
            tree = self._grower.grow(Votes(free=True), gains, sums, max_leaves, 1, max_depth)
            return one_tree(tree, Speech.VOTES)
        if gains.reading is Reading.VOTES and isinstance(self._objective, Impurity):
            return one_tree(as_votes(self._purest(self._objective, gains), sums), Speech.VOTES)
        tree = self._grower.grow(self._objective, gains, sums, max_leaves, 1, max_depth)
        if gains.reading is Reading.VOTES:
            return one_tree(as_votes(tree, sums), Speech.VOTES)
        return one_tree(tree, Speech.LABEL)

    def _purest(self, objective: Impurity, gains: GainMatrix) -> Tree:
        """A tree grown by impurity, with its sum of gains as value."""
        max_leaves, max_depth = self._limits
        collective, team = self._grower.collective, self._grower.team
        weights = as_weights(gains, team)
        sums = collective.sum(channel_sums(weights, team))
        tree = self._grower.grow(objective, weights, sums, max_leaves, 1, max_depth)
        won = collective.sum(np.array([gains_won(gains, tree)], np.int64))
        return tree._replace(value=int(won[0]))


def as_votes(tree: Tree, sums: Integers) -> Tree:
    """The tree's answers as votes, +1 for the class and -1 for all others; sums: of each channel and the row count."""
    n_leaves = tree.payload.shape[0]
    votes = np.full((n_leaves, sums.shape[0] - 1), -1, np.int32)
    votes[np.arange(n_leaves), tree.payload[:, 0]] = 1
    return tree._replace(payload=votes, value=2 * tree.value - int(sums[:-1].sum()))
