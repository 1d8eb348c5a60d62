"""The potential of the boosting game for any proper loss, by recursion (Mukherjee & Schapire 2010, Theorem 4).

A proper loss falls with the true label's votes and rises with the others'. With u_l the votes by which wrong label l
trails, p the chance of a vote for the true label and q that of one for any wrong label,

    phi_0(u) = L(u),   phi_t(u) = p phi_{t-1}(u + 1) + q sum_l phi_{t-1}(u - e_l)

The wrong labels' votes matter as a multiset only, a partition of their number, and every state that a game of T rounds
can come to is kept: all partitions of 0..T into at most K - 1 parts, with a potential each for every round in which it
can occur. That is a lot from some T on, so games that are too long are refused (`most_rounds`).

All sums have a fixed order and are plain IEEE operations, so every member computes the same potentials.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
State = tuple[int, ...]  # votes of the wrong labels that have some, descending

# What a member keeps: about half a second of listing the states, 16 MB of potentials.
MOST_STATES = 50_000
MOST_POTENTIALS = 2_000_000
MOST_ROUNDS = 600  # exp of more does not fit a float
LN2 = 0.6931471805599453


def _zero_one(u: int) -> float:
    return 1.0 if u <= 0 else 0.0


def _hinge(u: int) -> float:
    return float(max(0, 1 - u))


def _exponential(u: int) -> float:
    return float(ieee_math.exp(-float(u)))


def _logistic(u: int) -> float:
    """ln(1 + exp(-u)) / ln 2: 1 for a label that is level."""
    return (max(-u, 0) + float(ieee_math.log(1.0 + float(ieee_math.exp(-abs(float(u))))))) / LN2


# Of a row: the loss of its best wrong label, or the sum over all of them. Each is at least 1 where the row is lost.
OF_WORST: dict[str, Callable[[int], float]] = {"zero_one": _zero_one, "hinge": _hinge}
OF_ALL: dict[str, Callable[[int], float]] = {"exponential": _exponential, "logistic": _logistic}
LOSSES = (*OF_WORST, *OF_ALL)


@functools.cache
def most_rounds(n_classes: int) -> int:
    """The longest game of so many classes whose states are few enough to be kept."""
    parts = min(n_classes - 1, MOST_ROUNDS)
    ways = [1] + [0] * MOST_ROUNDS  # partitions of m into parts of at most so many: as many as into so many parts
    for part in range(1, parts + 1):
        for m in range(part, MOST_ROUNDS + 1):
            ways[m] += ways[m - part]
    states, potentials = 0, 0
    for rounds in range(MOST_ROUNDS + 1):
        states += ways[rounds]
        potentials += states
        if states > MOST_STATES or potentials > MOST_POTENTIALS:
            return rounds - 1
    return MOST_ROUNDS


def _more_votes(state: State, n_wrong: int) -> Iterator[tuple[State, int]]:
    """What a vote for a wrong label makes of a state, labels with equal votes together: (state, how many of them)."""
    start = 0
    while start < len(state):
        stop = start + 1
        while stop < len(state) and state[stop] == state[start]:
            stop += 1
        yield (*state[:start], state[start] + 1, *state[start + 1 :]), stop - start
        start = stop
    if len(state) < n_wrong:
        yield (*state, 1), n_wrong - len(state)


class VoteTable:
    """All potentials of a game of `rounds` rounds against n_wrong wrong labels; p: chance of the true one."""

    def __init__(self, loss: str, rounds: int, n_wrong: int, p: float) -> None:
        self._loss, self._rounds, self._n_wrong = loss, rounds, n_wrong
        self._p, self._q = p, (1.0 - p) / n_wrong
        self._place: dict[State, int] = {(): 0}
        self._stop = [1]  # states of up to m votes for wrong labels
        self._next, self._often = self._list_states()
        self._potentials = self._all_potentials()

    def _list_states(self) -> tuple[Integers, Floats]:
        """What follows each state, [n_states, widest], and for how many labels; unused places say state 0, 0 times."""
        found: list[list[tuple[int, int]]] = []
        level: list[State] = [()]
        for _ in range(self._rounds):
            following: list[State] = []
            for state in level:
                row = []
                for more, labels in _more_votes(state, self._n_wrong):
                    if more not in self._place:
                        self._place[more] = len(self._place)
                        following.append(more)
                    row.append((self._place[more], labels))
                found.append(row)
            level = following
            self._stop.append(len(self._place))
        widest = max((len(row) for row in found), default=1)
        places, often = np.zeros((len(found), widest), np.int64), np.zeros((len(found), widest))
        for number, row in enumerate(found):
            for column, (place, labels) in enumerate(row):
                places[number, column], often[number, column] = place, labels
        return places, often

    def _all_potentials(self) -> list[Floats]:
        """Of every state after 0, 1, ..., `rounds` rounds; a state of m wrong votes has all other votes right."""
        by_round = [self._final()]
        for played in range(self._rounds - 1, -1, -1):
            later, n = by_round[-1], self._stop[played]
            wrong = np.zeros(n)
            for column in range(self._next.shape[1]):
                wrong += self._often[:n, column] * later[self._next[:n, column]]
            by_round.append(self._p * later[:n] + self._q * wrong)
        return by_round[::-1]

    def _final(self) -> Floats:
        """The losses once all votes are given."""
        states, own = list(self._place), np.empty(len(self._place), np.int64)
        votes = np.zeros((len(states), min(self._n_wrong, max(self._rounds, 1))), np.int64)
        for number, state in enumerate(states):
            votes[number, : len(state)] = state
            own[number] = self._rounds - sum(state)
        trails = own[:, np.newaxis] - votes
        return self._losses(trails, own, self._n_wrong - votes.shape[1])

    def _losses(self, trails: Integers, own: Integers, unlisted: int) -> Floats:
        """trails: int64 [n_states, labels], the least one first; unlisted: further labels without votes."""
        # no game has trails beyond these; the constant of a run without a step may, and nobody asks for its loss
        trails, own = (np.clip(each, -self._rounds, self._rounds) + self._rounds for each in (trails, own))
        of_trail = (OF_WORST | OF_ALL)[self._loss]
        known = np.array([of_trail(u) for u in range(-self._rounds, self._rounds + 1)])
        if self._loss in OF_WORST:
            return np.asarray(known[trails[:, 0]])
        total = np.zeros(trails.shape[0])
        for column in range(trails.shape[1]):
            total += known[trails[:, column]]
        return np.asarray(total + unlisted * known[own])

    def at_start(self) -> float:
        """The potential before the first round: what the final loss cannot exceed if every round has the edge."""
        return float(self._potentials[0][0])

    def seen(self, ascending: Integers, to_come: int) -> Integers:
        """What of the trails matters with so many rounds to come: all of them."""
        return ascending

    def over(self, ascending: Integers) -> Floats:
        """The losses of rows with these trails (int64 [n_rows, K - 1]) at the end of the game."""
        own = (self._rounds + ascending.sum(axis=1)) // (self._n_wrong + 1)
        return self._losses(ascending, own, 0)

    def costs(self, states: Integers, to_come: int) -> Floats:
        """Potentials after one more vote, [n_states, K]: for the true label (column 0) or for the wrong one in place j.

        states: int64 [n_states, K - 1], ascending trails; to_come: rounds after this one.
        """
        played = self._rounds - to_come - 1
        own = (played + states.sum(axis=1)) // (self._n_wrong + 1)
        votes = own[:, np.newaxis] - states
        # of a run without a step: see `_losses`
        places = np.array([self._place.get(tuple(row[row > 0].tolist()), 0) for row in votes], np.int64)
        group = np.zeros(votes.shape, np.int64)
        group[:, 1:] = np.cumsum(votes[:, 1:] != votes[:, :-1], axis=1)
        group = np.minimum(group, self._next.shape[1] - 1)
        after = self._potentials[played + 1]
        return np.column_stack([after[places], after[np.take_along_axis(self._next[places], group, axis=1)]])
