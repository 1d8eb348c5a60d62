"""Which weak-learning conditions a round's weak learner meets, from exact sums over all members (conditions.py).

The costs of a round are C = -G, its gains with the sign changed. Members add integers, so the figures are the same on
any number of them; m_i of the worst baseline is rounded to units of a gain. Gains kept in lists (sparse_gains.py) give
the same integers without a matrix.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Algorithm, Gains
from boost_core.collective import Collective
from boost_core.conditions import Conditions
from boost_core.fitted import Fitted, Speech
from boost_core.gain_matrix import GainMatrix
from boost_core.jit import counted_kernel, inner
from boost_core.sparse_gains import SparseGains
from boost_core.team import Team

Integers = NDArray[np.int64]
N_SUMS = 6  # costs of the answers, all costs, those of the true labels, absolute costs, those of wrong rows, all m_i


@runtime_checkable
class Costed(Protocol):
    """An algorithm whose gain matrix is a draw from the costs that its steps go by."""

    def costed(self, gains: Gains) -> GainMatrix:
        """The gains that were drawn from."""


@inner
def _worst_mean(own, values, start, stop, skipped, base, others):  # type: ignore[no-untyped-def]
    """The greatest mean of the true label's cost and of some wrong ones, which are base - values[start:stop], the place
    skipped left out, and `others` times base. Newton's method from below on the sum of what exceeds m: a few steps."""
    mean = np.float64(own)
    while True:
        total, count = own, np.int64(1)
        if np.float64(base) > mean:
            total, count = total + others * base, count + others
        for k in range(start, stop):
            if k != skipped:
                cost = base - np.int64(values[k])
                if np.float64(cost) > mean:
                    total, count = total + cost, count + 1
        better = np.float64(total) / np.float64(count)
        if better <= mean:
            return mean
        mean = better


@counted_kernel
def _measure(values, labels, answered, start, stop):  # type: ignore[no-untyped-def]
    """The sums of rows start..stop; answered = (number of columns, class of each leaf, leaf of each row)."""
    n_columns, answers, leaf_of_row = answered
    sums = np.zeros(N_SUMS, np.int64)
    for i in range(start, stop):
        row, y = values[i], labels[i]
        answer = answers[leaf_of_row[i]]
        own = -np.int64(row[y])
        sums[0] -= row[answer]
        mass = np.int64(0)
        for c in range(n_columns):
            sums[1] -= row[c]
            mass += abs(np.int64(row[c]))
        sums[2] += own
        sums[3] += mass
        sums[4] += mass if answer != y else 0
        sums[5] += np.int64(np.rint(_worst_mean(own, row, 0, n_columns, y, np.int64(0), np.int64(0))))
    return sums


@counted_kernel
def _measure_sparse(cold, hot, added, mass, labels, answered, start, stop):  # type: ignore[no-untyped-def]
    """The same from entries of G + u, u = added; answered = (places of the classes among the hot ones, class of each
    leaf, leaf of each row)."""
    places, answers, leaf_of_row = answered
    n_columns = places.shape[0]
    sums = np.zeros(N_SUMS, np.int64)
    for i in range(start, stop):
        y, base = labels[i], np.int64(added[i])
        answer = answers[leaf_of_row[i]]
        own, paid, total, mine = base, base, n_columns * base, -1
        for k in range(cold.begin[i], cold.end[i]):
            own -= cold.gains[k]
            total -= cold.gains[k]
        for k in range(hot.begin[i], hot.end[i]):
            gain = np.int64(hot.gains[k])
            total -= gain
            if hot.columns[k] == places[y]:
                own, mine = own - gain, k
            if hot.columns[k] == places[answer]:
                paid -= gain
        sums[0] += own if answer == y else paid
        sums[1] += total
        sums[2] += own
        sums[3] += mass[i]
        sums[4] += mass[i] if answer != y else 0
        untouched = n_columns - 1 - (hot.end[i] - hot.begin[i]) + np.int64(mine >= 0)
        state = (hot.gains, hot.begin[i], hot.end[i], mine, base, untouched)
        sums[5] += np.int64(np.rint(_worst_mean(own, *state)))
    return sums


class ConditionMeter:
    """Measures a member's rounds, if that is wanted; labels: of its rows. All members measure at the same time."""

    def __init__(self, wanted: bool, labels: NDArray[np.int32], collective: Collective, team: Team) -> None:
        self._wanted, self._labels = wanted, labels
        self._collective, self._team = collective, team
        self._fitted: Fitted | None = None

    def note(self, fitted: Fitted) -> None:
        """The weak learner that was fitted last, before a step made something else of its leaves."""
        self._fitted = fitted if self._wanted else None

    def measure(self, algorithm: Algorithm, gains: Gains) -> Conditions | None:
        """How the weak learner noted meets each condition at these gains; None where nobody asks."""
        if self._fitted is None:
            return None
        matrix = algorithm.costed(gains) if isinstance(algorithm, Costed) else gains.matrix
        return conditions_of(self._collective.sum(self._sums(self._fitted, matrix)), matrix.n_channels)

    def _sums(self, fitted: Fitted, matrix: GainMatrix) -> Integers:
        tree, n_rows, n_columns = fitted.parts[0].tree, self._labels.shape[0], matrix.n_channels
        votes = fitted.speech is Speech.VOTES  # +1 for one label
        answers = tree.payload.argmax(axis=1).astype(np.int32) if votes else tree.payload[:, 0].copy()
        said = (answers, tree.leaf_of_row)
        if isinstance(matrix, SparseGains):
            places = np.full(n_columns, -1, np.int32)
            places[matrix.hot_classes] = np.arange(matrix.hot_classes.shape[0], dtype=np.int32)
            lists = (matrix.cold, matrix.hot, matrix.added, matrix.mass, self._labels, (places, *said))
            parts = self._team.over(n_rows, 8 * n_rows, lambda a, b: _measure_sparse(*lists, a, b))
        else:
            state = (matrix.values, self._labels, (n_columns, *said))
            parts = self._team.over(n_rows, 4 * n_rows * n_columns, lambda a, b: _measure(*state, a, b))
        return np.asarray(np.sum(parts, axis=0, dtype=np.int64))


def conditions_of(sums: Integers, n_classes: int) -> Conditions:
    """From the sums over all members, int64 [6]: ratios of integers."""
    paid, total, own, absolute, wrong, worst = (int(each) for each in sums)
    n_wrong = n_classes - 1
    return Conditions(
        uniform=_ratio(total - n_classes * paid, total - n_classes * own),
        worst=_ratio(worst - paid, worst - own),
        mr=_ratio(-paid, total - own),
        mh=_ratio(total - 2 * paid, absolute),
        samme=_ratio(n_wrong * absolute - n_classes * wrong, n_wrong * absolute),
        m1=_ratio(absolute - 2 * wrong, absolute),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole != 0 else None
