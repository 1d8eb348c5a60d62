"""The optimal strategy of the boosting game for the 0-1 loss (Mukherjee & Schapire 2010): boost by majority, K classes.

Or for another proper loss, which is at least 1 where a row is lost (vote_recursion.py), if the game is not too long.

The number of rounds T is known. With r rounds to come after this one, s the votes of a row and phi its potential,

    c(i,l) = phi_r(s_i + e_l),   base_i = phi_{r+1}(s_i) = p c(i,y) + q sum_{l != y} c(i,l),   G(i,l) = base_i - c(i,l)

where p = (1 - gamma) / K + gamma and q = (1 - gamma) / K. A weak learner of edge gamma has a sum of gains >= 0, so the
mean potential does not rise; after the last round it is the mean loss: the strict training error, or not below it.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.adaboost_mm_fixed import LEAST, MOST
from boost_core.algorithms.atanh_step import ln, make_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import LN2
from boost_core.algorithms.vote_potential import ExplicitPotential
from boost_core.algorithms.vote_recursion import LOSSES, VoteTable, most_rounds
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.jit import kernel
from boost_core.model import SCORE_UNITS
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import Scores

LEAST_EXPONENT = -16  # potentials below 2**-16 are no longer magnified: their absolute error would be, too
LN_NOTHING = -700.0  # ln of a loss of 0
ZERO_ONE = LOSSES[0]
LOSS = Parameter(
    "loss",
    "string",
    ZERO_ONE,
    "what a row is worth after the last round, u its lead in votes: zero_one: 1 if u <= 0; hinge: max(0, 1 - u); "
    "exponential, logistic: sum over the wrong labels of exp(-u), log2(1 + exp(-u)). All but zero_one limit the rounds",
    choices=LOSSES,
)


class Game(Protocol):
    """The potentials of a game of a known number of rounds; trails: int64 [n, K - 1], ascending."""

    def at_start(self) -> float:
        """Before the first round."""

    def seen(self, ascending: Integers, to_come: int) -> Integers:
        """What of the trails matters with so many rounds to come."""

    def over(self, ascending: Integers) -> NDArray[np.float64]:
        """The losses at the end, [n]."""

    def costs(self, states: Integers, to_come: int) -> NDArray[np.float64]:
        """After one more vote, for the true label (column 0) or the wrong one in place j, [n, K]."""


@kernel
def _fill(costs, labels, weights, factor, values, base, sums):  # type: ignore[no-untyped-def]
    """values, base (OUT) of every row from its costs [n, K]; weights = (p, q), factor = 2**scale.

    sums (OUT, int64 [4]): of absolute gains, of base, of all costs, of the true labels' costs.
    """
    n_columns = costs.shape[1]
    for i in range(labels.shape[0]):
        own = labels[i]
        wrong = 0.0
        for c in range(n_columns):
            if c != own:
                wrong += costs[i, c]
        base[i] = np.int64(np.rint((weights[0] * costs[i, own] + weights[1] * wrong) * factor))
        for c in range(n_columns):
            cost = np.int64(np.rint(costs[i, c] * factor))
            values[i, c] = base[i] - cost
            sums[0] += abs(base[i] - cost)
            sums[2] += cost
            if c == own:
                sums[3] += cost
        values[i, n_columns] = 1
        sums[1] += base[i]


@kernel
def _cost_of_answers(values, base, answers, leaf_of_row):  # type: ignore[no-untyped-def]
    """Sum of c(i, h(i))."""
    cost = np.int64(0)
    for i in range(base.shape[0]):
        cost += base[i] - values[i, answers[leaf_of_row[i]]]
    return cost


class OSZeroOne:
    """Every weak learner has one vote. The recorded loss is the mean potential; totals: see `_fill`."""

    name: ClassVar[str] = "os_zero_one"
    summary: ClassVar[str] = "optimal strategy against weak learners of a known edge, 0-1 loss: boost by majority"
    source: ClassVar[str] = "Mukherjee & Schapire, A Theory of Multiclass Boosting, NIPS 2010"
    guarantee: ClassVar[str] = "training error after all rounds <= mean loss <= phi(0) while every round has the edge"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("edge", "number", 0.1, "edge over random that every round can reach", minimum=LEAST, maximum=MOST),
        LOSS,
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.SHARES
    fixed_steps: ClassVar[bool] = True
    # a potential says what the error will be, not what it is; after the last round it is the error itself
    error_factor: ClassVar[float | None] = None

    def __init__(self, problem: Problem, parameters: Any) -> None:
        n_rows, self.n_columns = problem.labels.shape[0], problem.n_classes
        self._labels, self._all_rows = problem.labels, problem.all_rows
        self._copies, self._team = problem.copies, problem.team
        self._rounds, self._round = problem.rounds, 0
        self._q = (1.0 - float(parameters["edge"])) / self.n_columns
        self._p = self._q + float(parameters["edge"])
        self._values = new_gains(n_rows, self.n_columns, problem.copies)
        self._base = np.zeros(n_rows, np.int64)
        self._costs = np.zeros((n_rows, self.n_columns))
        self._game = _game(str(parameters["loss"]), self._rounds, self.n_columns - 1, self._p)
        self.ln_initial = ln_of(self._game.at_start())

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None

    @staticmethod
    def settings_refusal(parameters: Mapping[str, Any], n_classes: int, rounds: int) -> tuple[str, str] | None:
        """A game that is too long for its loss."""
        most = most_rounds(n_classes)
        if parameters["loss"] == ZERO_ONE or rounds <= most:
            return None
        asked = f"{parameters['loss']!r} with {n_classes} classes plays at most {most} rounds, got rounds {rounds}"
        return "loss", f"{asked}: it keeps the potentials of all votes that can be; {ZERO_ONE!r} plays any number"

    @staticmethod
    def plans_rounds(parameters: Mapping[str, Any]) -> bool:
        """A potential is about the rounds to come."""
        return True

    def peaks(self, scores: Scores) -> Integers:
        """The potentials of every vote; the binary exponent of the greatest one, int64 [1]."""
        to_come = self._rounds - self._round - 1
        trails = self._trails(scores)
        order = np.argsort(trails, axis=1, kind="stable")
        ascending = np.take_along_axis(trails, order, axis=1)
        if to_come < 0:
            self._costs[:] = self._game.over(ascending)[:, np.newaxis]  # the game is over
        else:
            self._costs[:] = self._costs_of(self._game.seen(ascending, to_come), order, to_come)
        largest = float(self._costs.max(initial=0.0))
        return np.array([max(math.frexp(largest)[1], LEAST_EXPONENT) if largest else LEAST_EXPONENT], np.int64)

    def _trails(self, scores: Scores) -> Integers:
        """By how many votes each wrong label trails, int64 [n_rows, K - 1]: the true label's column is left out."""
        votes = scores.values.astype(np.int64) >> SCORE_UNITS
        rows = np.arange(votes.shape[0])
        trails = votes[rows, self._labels][:, None] - votes
        others = np.ones(votes.shape, np.bool_)
        others[rows, self._labels] = False
        return trails[others].reshape(votes.shape[0], self.n_columns - 1)

    def _costs_of(self, ascending: Integers, order: Integers, to_come: int) -> NDArray[np.float64]:
        """c, float64 [n_rows, K]; rows in the same state are computed once."""
        states, state_of_row = np.unique(ascending, axis=0, return_inverse=True)
        mine = self._game.costs(states, to_come)[state_of_row.reshape(-1)]
        wrong = np.empty((mine.shape[0], self.n_columns - 1))
        np.put_along_axis(wrong, order, mine[:, 1:], axis=1)
        costs = np.empty_like(mine)
        others = np.ones(mine.shape, np.bool_)
        others[np.arange(mine.shape[0]), self._labels] = False
        costs[others] = wrong.reshape(-1)
        costs[~others] = mine[:, 0]
        return costs

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix from the potentials that `peaks` has computed."""
        scale = scale_for(math.ldexp(1.0, int(peaks[0])), self._all_rows * self.n_columns)
        sums = np.zeros(4, np.int64)
        out = (self._values, self._base, sums)
        _fill(self._costs, self._labels, (self._p, self._q), float(np.ldexp(1.0, scale)), *out)
        if self._copies is not None:
            sums = self._weighed(self._copies)
        matrix = GainMatrix(self._values, self.n_columns, scale, int(sums[0]))
        return Gains(matrix, sums, 0)

    def _weighed(self, copies: Integers) -> Integers:
        """Give every row's numbers their weight; the sums of `_fill` of all copies."""
        absolute = weigh(self._values, copies, self.n_columns, self._team).sum()
        self._base *= copies
        costs = self._base[:, None] - self._values[:, : self.n_columns]
        own = costs[np.arange(costs.shape[0]), self._labels]
        return np.array([absolute, self._base.sum(), costs.sum(), own.sum()], np.int64)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the mean potential."""
        if totals[1] == 0:
            return LN_NOTHING
        return ln(int(totals[1])) - gains.matrix.scale * LN2 - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """The sum of c(i, h(i)) on this member's rows."""
        tree = fitted.parts[0].tree
        answers = tree.payload[:, 0].copy()
        return np.array([_cost_of_answers(self._values, self._base, answers, tree.leaf_of_row)], np.int64)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """One vote. The edge is the gamma for which random guessing costs as much: (Cbar - C.1h) / (Cbar - Cy)."""
        before, all_costs, own = (int(total) for total in totals[1:])
        after, n_classes = int(outcomes[0]), self.n_columns
        spread = all_costs - n_classes * own
        edge = (all_costs - n_classes * after) / spread if spread > 0 else 0.0
        # only a missed edge makes the mean potential rise
        rise = ln(after) - ln(before) if after > before > 0 else 0.0
        slack = math.log1p(self._all_rows * n_classes / max(after, 1))
        return make_step(edge, 1.0, rise, slack, perfect=after == 0)

    def taken(self, fitted: Fitted, step: Step) -> None:
        """One round fewer to come."""
        self._round += 1


def _game(loss: str, rounds: int, n_wrong: int, p: float) -> Game:
    return ExplicitPotential(rounds, n_wrong, p) if loss == ZERO_ONE else VoteTable(loss, rounds, n_wrong, p)


def ln_of(share: float) -> float:
    """ln of a probability that may be 0."""
    return float(ieee_math.log(share)) if share > 0 else LN_NOTHING
