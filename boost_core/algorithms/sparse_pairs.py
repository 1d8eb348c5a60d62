"""The exponential loss over pairs on sparse scores (Brukhim et al. 2021; algorithms: exponential_pairs.py).

    u_i = exp(-F(i,y)) is E(i,l) of every untouched label, P_i = (K - 1 - touched) u_i + sum of E over touched labels

u_i is added to all gains of row i. They are then P_i + u_i at the own label, -(E(i,l) - u_i) <= 0 at touched labels and
0 elsewhere. u, E and P are rounded as the whole gain matrix rounds them, so sums differ by exact integers.
"""

import numpy as np

from boost_core import ieee_math
from boost_core.algorithms.base import Gains, Integers, Problem
from boost_core.algorithms.sparse_draws import Weights
from boost_core.fitted import Fitted
from boost_core.jit import counted_kernel, kernel
from boost_core.sparse_gains import Entries, SparseGains
from boost_core.sparse_scores import SparseScores

TILE_ROWS = 256
NO_ROW = -(1 << 62)


@kernel
def _peak(own, start, held, n_classes, rows):  # type: ignore[no-untyped-def]
    """Greatest F(i,l) - F(i,y) over rows[0]..rows[1] and wrong labels, in score units."""
    peak = np.int64(NO_ROW)
    for i in range(rows[0], rows[1]):
        largest = np.int64(0) if start[i + 1] - start[i] < n_classes - 1 else np.int64(NO_ROW)
        for k in range(start[i], start[i + 1]):
            largest = max(largest, np.int64(held[k]))
        peak = max(peak, largest - np.int64(own[i]))
    return peak


@counted_kernel
def _fill(state, labels, counts, places, exponents, own_share, rows, out):  # type: ignore[no-untyped-def]
    """Gains of rows[0]..rows[1]; returns the sums of absolute gains, of all P_i and of all u_i.

    state = (own, start, touched, held) of the scores; counts: int64 [n], what all of a row is multiplied with; places:
    int32 [n_classes], of the hot classes, -1 for others; exponents = (2**scale, shift, unit of a score); out (OUT) =
    (untouched, pairs, mass, cold, hot): u_i and P_i; a row's hot entries begin at start[i] + i, so that the own label
    has room.
    """
    own, start, touched, held = state
    factor, shift, unit = exponents
    untouched, pairs, mass, cold, hot = out
    n_others = places.shape[0] - 1
    absolute, total, offset = np.int64(0), np.int64(0), np.int64(0)
    for tile in range(rows[0], rows[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, rows[1])
        first = start[tile]
        weights, alone = np.empty(start[stop] - first), np.empty(stop - tile)
        for i in range(tile, stop):
            base = np.float64(own[i]) + shift
            alone[i - tile] = (0.0 - base) * unit
            for k in range(start[i], start[i + 1]):
                weights[k - first] = (np.float64(held[k]) - base) * unit
        for k in range(alone.shape[0]):
            alone[k] = ieee_math.exp(min(alone[k], 0.0))
        for k in range(weights.shape[0]):
            weights[k] = ieee_math.exp(min(weights[k], 0.0))
        for i in range(tile, stop):
            each = ieee_math.round_half_even(alone[i - tile] * factor)
            to = start[i] + i
            hot.begin[i] = to
            row_mass = (n_others - (start[i + 1] - start[i])) * each
            for k in range(start[i], start[i + 1]):
                gain = ieee_math.round_half_even(weights[k - first] * factor)
                row_mass += gain
                if gain != each:
                    hot.columns[to], hot.gains[to] = places[touched[k]], counts[i] * (each - gain)
                    to += 1
            own_gain = counts[i] * ieee_math.round_half_even(np.float64(row_mass) * own_share)
            row_mass *= counts[i]
            each *= counts[i]
            is_hot = places[labels[i]] >= 0
            if is_hot:
                hot.columns[to], hot.gains[to] = places[labels[i]], own_gain + each
                to += 1
            hot.end[i] = to
            cold.begin[i] = i
            cold.end[i] = i if is_hot or own_gain + each == 0 else i + 1
            cold.columns[i], cold.gains[i] = labels[i], own_gain + each
            untouched[i], pairs[i], mass[i] = each, row_mass, row_mass + own_gain
            absolute += mass[i]
            total += row_mass
            offset += each
    return absolute, total, offset


@kernel
def _outcomes(untouched, pairs, labels, places, hot, answers, leaf_of_row, sums):  # type: ignore[no-untyped-def]
    """sums (OUT, int64 [2]): A+ = sum of P_i over rows answered right, A- = sum of E(i, answer) over the others."""
    for i in range(labels.shape[0]):
        answer = answers[leaf_of_row[i]]
        if answer == labels[i]:
            sums[0] += pairs[i]
            continue
        sums[1] += untouched[i]
        place = places[answer]
        for k in range(hot.begin[i], hot.end[i]):
            if hot.columns[k] == place:
                sums[1] -= hot.gains[k]


class SparsePairs:
    """What ExponentialPairs does with its gain matrix, on sparse scores."""

    def __init__(self, problem: Problem) -> None:
        self._labels, self._team, self._n_classes = problem.labels, problem.team, problem.n_classes
        n_rows = self._labels.shape[0]
        self._untouched, self._pairs, self._mass = (np.empty(n_rows, np.int64) for _ in range(3))
        self._counts = np.ones(n_rows, np.int64) if problem.copies is None else problem.copies
        nowhere = [np.empty(n_rows, np.int64) for _ in range(5)]
        self._cold = Entries(nowhere[0], nowhere[1], np.empty(n_rows, np.int32), nowhere[2])
        self._hot = Entries(nowhere[3], nowhere[4], np.empty(0, np.int32), np.empty(0, self._hot_type(problem)))
        self._places = np.empty(0, np.int32)

    @staticmethod
    def _hot_type(problem: Problem) -> type[np.signedinteger]:
        return np.int32 if problem.copies is None else np.int64

    def peaks(self, scores: SparseScores) -> Integers:
        """This member's greatest exponent, int64 [1]."""
        state = (scores.own, scores.start, scores.held)
        n_rows = self._labels.shape[0]
        work = n_rows + scores.touched.shape[0]
        found = self._team.over(n_rows, work, lambda a, b: int(_peak(*state, self._n_classes, (a, b))))
        return np.array([max(found)], np.int64)

    def gains(self, scores: SparseScores, exponents: tuple[float, float, float], own_share: float, scale: int) -> Gains:
        """The gain matrix; exponents: as in _fill."""
        hot_classes = np.flatnonzero(scores.answered).astype(np.int32)
        self._places = np.full(self._n_classes, -1, np.int32)
        self._places[hot_classes] = np.arange(hot_classes.shape[0], dtype=np.int32)
        n_rows, n_touched = self._labels.shape[0], scores.touched.shape[0]
        if self._hot.columns.shape[0] < n_touched + n_rows:
            room = n_touched + n_rows + n_touched // 4
            self._hot = self._hot._replace(
                columns=np.empty(room, np.int32), gains=np.empty(room, self._hot.gains.dtype)
            )
        state = (scores.own, scores.start, scores.touched, scores.held)
        out = (self._untouched, self._pairs, self._mass, self._cold, self._hot)

        def part(start: int, stop: int) -> tuple[int, ...]:
            found = _fill(state, self._labels, self._counts, self._places, exponents, own_share, (start, stop), out)
            return tuple(int(each) for each in found)

        sums = self._team.over(n_rows, 8 * (n_rows + n_touched), part)
        absolute, total, offset = (sum(each[k] for each in sums) for k in range(3))
        matrix = SparseGains(
            np.empty((0, 0), np.int32),
            self._n_classes,
            scale,
            absolute,
            mass=self._mass,
            cold=self._cold,
            hot=self._hot,
            hot_classes=hot_classes,
            counts=self._counts,
            added=self._untouched,
            offset=offset,
        )
        return Gains(matrix, np.array([absolute, total], np.int64), int(exponents[1]))

    def weights(self, matrix: SparseGains, use_max: bool) -> Weights:
        """What labelled examples are drawn by; matrix: the gains that were made last."""
        parts = (self._labels, self._untouched, self._pairs, matrix.hot, matrix.hot_classes)
        return Weights(*parts, self._n_classes, use_max)

    def outcomes(self, fitted: Fitted) -> Integers:
        """A+ and A- of the weak learner on this member's rows."""
        sums, tree = np.zeros(2, np.int64), fitted.parts[0].tree
        answers, state = tree.payload[:, 0].copy(), (self._untouched, self._pairs, self._labels, self._places)
        _outcomes(*state, self._hot, answers, tree.leaf_of_row, sums)
        return sums
