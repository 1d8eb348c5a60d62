"""The optimal strategy for the exponential loss against any baseline (Mukherjee & Schapire 2010, eq. 5 and Lemma 1).

Rows of class y are held against guessing from a distribution b with b_y >= b_l, and votes against label l weigh eta_l:

    L(s) = sum_{l != y} exp(eta_l (s_l - s_y)),     phi_t(s) = sum_{l != y} a_l^t exp(eta_l (s_l - s_y))
    a_l  = 1 - (b_y + b_l) + exp(eta_l) b_l + exp(-eta_l) b_y

T, the number of rounds, is known. With r rounds to come after this one, c(i,l) = phi_r(s_i + e_l), of which random
guessing costs phi_{r+1}(s_i) on average. Let w_l = a_l^r exp(eta_l (s_l - s_y)); up to what all of a row has in common

    G(i,l) = -(exp(eta_l) - 1) w_l,     G(i,y) = sum_l (1 - exp(-eta_l)) w_l = sum_l exp(-eta_l) |G(i,l)|

The loss of a round is the mean potential. It rises only by a weak learner that is worse than the baseline, and after
the last round it is the mean of L, which the strict training error cannot exceed. b, eta and a depend on (y, l).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ln, make_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import LN2, NO_ROW, TILE_ROWS
from boost_core.algorithms.fixed_pairs import EDGE_EPS, on_grid
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, gains_won, scale_for
from boost_core.jit import counted_kernel, kernel
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import UNIT, Scores

Floats = NDArray[np.float64]
LARGEST_ETA = 12.0
PER_UNIT = 1.0 / UNIT


@dataclass(frozen=True)
class Baseline:
    """All of [n_classes, n_classes], row y for rows of class y; the diagonals mean nothing, but for chance.

    chance: what is guessed from; edge: how much of the guesses is the truth instead, so that b = (1 - edge) chance, and
    edge more at the true label. eta: weights of votes in units of 2**-20; step: the one that scores are kept in.
    """

    chance: Floats
    edge: float
    eta: Floats
    step: float

    @property
    def ln_a(self) -> Floats:
        """ln of a."""
        b = guesses(self.chance, self.edge)
        own, found = np.diag(b), np.zeros(b.shape)
        for y, wrong in np.ndindex(b.shape):
            if y != wrong:
                grown = float(ieee_math.exp(self.eta[y, wrong]))
                a = 1.0 - (own[y] + b[y, wrong]) + grown * b[y, wrong] + own[y] / grown
                found[y, wrong] = float(ieee_math.log(a))
        return found


def guesses(chance: Floats, edge: float) -> Floats:
    """b of every class, [n_classes, n_classes]."""
    return np.asarray((1.0 - edge) * chance + edge * np.eye(chance.shape[0]))


def make_baseline(chance: Floats, edge: float, etas: Floats | float) -> Baseline:
    """etas: of each wrong label, or of all; 0: the best for every pair, 0.5 ln(b_y / b_l), which makes a_l least."""
    n_classes = chance.shape[0]
    eta = np.empty((n_classes, n_classes))
    eta[:] = etas
    if not np.any(etas):
        b = guesses(chance, edge)
        for y, wrong in np.ndindex(b.shape):
            odds = b[y, y] / b[y, wrong] if b[y, wrong] > 0 else math.inf
            best = 0.5 * float(ieee_math.log(odds)) if odds < math.inf else LARGEST_ETA
            eta[y, wrong] = min(best, LARGEST_ETA)
    for place in np.ndindex(eta.shape):
        eta[place] = max(on_grid(float(eta[place])), UNIT)
    pairs = eta[~np.eye(n_classes, dtype=np.bool_)]
    return Baseline(chance, edge, eta, max(on_grid(math.fsum(pairs) / pairs.shape[0]), UNIT))


@kernel
def _peak(scores, labels, lag, units, start, stop):  # type: ignore[no-untyped-def]
    """Greatest ln w of rows start..stop, in score units."""
    peak = float(NO_ROW)
    for i in range(start, stop):
        y = labels[i]
        own = np.int64(scores[i, y])
        for c in range(scores.shape[1]):
            if c != y:
                peak = max(peak, (lag[y, c] + np.float64(np.int64(scores[i, c]) - own) * units[y, c]) * PER_UNIT)
    return peak


@counted_kernel
def _fill(scores, labels, copies, tables, exponents, rows, values):  # type: ignore[no-untyped-def]
    """values (OUT): gains of one copy of rows[0]..rows[1]; returns the sums of absolute gains (of one copy a row)
    and, of all copies, of the potentials in units of the largest a and of w.

    tables = (lag, units, rise, shrunk, share), float64 [K, K]; exponents = (2**scale, shift in units of an exponent);
    copies: int64 [n] or [0].
    """
    lag, units, rise, shrunk, share = tables
    factor, shift = exponents
    n_columns = scores.shape[1]
    weights = np.empty((TILE_ROWS, n_columns))
    absolute, potential, held = np.int64(0), np.int64(0), np.int64(0)
    for tile in range(rows[0], rows[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, rows[1])
        for i in range(tile, stop):
            y = labels[i]
            own = np.int64(scores[i, y])
            for c in range(n_columns):
                exponent = lag[y, c] + np.float64(np.int64(scores[i, c]) - own) * units[y, c] - shift
                weights[i - tile, c] = ieee_math.exp(min(exponent, 0.0))
        for i in range(tile, stop):
            y = labels[i]
            own_gain, row_held, row_potential = 0.0, 0.0, 0.0
            for c in range(n_columns):
                if c != y:
                    weight = weights[i - tile, c]
                    gain = ieee_math.round_half_even(weight * rise[y, c] * factor)
                    values[i, c] = -gain
                    absolute += gain
                    own_gain += np.float64(gain) * shrunk[y, c]
                    row_held += weight * factor
                    row_potential += weight * share[y, c] * factor
            gain = ieee_math.round_half_even(own_gain)
            values[i, y] = gain
            values[i, n_columns] = 1
            absolute += gain
            often = copies[i] if copies.shape[0] > 0 else np.int64(1)
            held += often * ieee_math.round_half_even(row_held)
            potential += often * ieee_math.round_half_even(row_potential)
    return absolute, potential, held


@kernel
def _class_sums(values, labels, start, stop, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [K, K]) += gains of rows start..stop by their class."""
    for i in range(start, stop):
        for c in range(sums.shape[1]):
            sums[labels[i], c] += values[i, c]


class BaselinePairs:
    """A game of a known number of rounds. totals of its gains: [sum of absolute gains, of potentials, of w, gains by
    class of row and label (K K)]."""

    def __init__(self, problem: Problem, baseline: Baseline) -> None:
        n_rows, self.n_columns = problem.labels.shape[0], problem.n_classes
        self._labels, self._team, self._all_rows = problem.labels, problem.team, problem.all_rows
        self._copies, self._baseline = problem.copies, baseline
        self._rounds, self._round = problem.rounds, 0
        self._values = new_gains(n_rows, self.n_columns, problem.copies)
        ln_a, some = baseline.ln_a, np.flatnonzero(problem.class_counts)
        others = ~np.eye(self.n_columns, dtype=np.bool_)
        self._ln_largest = float(ln_a[some][others[some]].max())
        self._ln_a = np.where(others, ln_a - self._ln_largest, 0.0)
        grown = _exp(baseline.eta)
        self._largest_rise = float((grown - 1.0).max(where=others, initial=0.0))
        rise = (grown - 1.0) / self._largest_rise
        self._units = UNIT * (baseline.eta / baseline.step)
        self._shares = (rise, _exp(-baseline.eta), _exp(self._ln_a))
        self.ln_initial = self._at_start(problem.class_counts, others)

    def _at_start(self, counts: Integers, others: NDArray[np.bool_]) -> float:
        """ln of the mean of phi_T(0)."""
        each = _exp(self._rounds * self._ln_a)
        total = math.fsum(int(counts[y]) * math.fsum(each[y][others[y]]) for y in range(self.n_columns) if counts[y])
        return float(ieee_math.log(total / self._all_rows)) + self._rounds * self._ln_largest

    def _lag(self) -> Floats:
        """r ln a, less that of the largest a, with r rounds to come after the next one; -1 once the game is over."""
        return np.asarray((self._rounds - self._round - 1) * self._ln_a)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest ln w, rounded up to score units, int64 [1]."""
        state = (scores.values, self._labels, self._lag(), self._units)
        n_rows = self._labels.shape[0]
        found = self._team.over(n_rows, n_rows * self.n_columns, lambda a, b: float(_peak(*state, a, b)))
        return np.array([math.ceil(max(found))], np.int64)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponent over all members."""
        shift, n_rows, n_columns = int(peaks[0]), self._labels.shape[0], self.n_columns
        scale = scale_for(float(n_columns - 1), self._all_rows * n_columns)
        exponents = (float(np.ldexp(1.0, scale)), shift * UNIT)
        often = np.empty(0, np.int64) if self._copies is None else self._copies
        state = (scores.values, self._labels, often, (self._lag(), self._units, *self._shares), exponents)

        def part(start: int, stop: int) -> tuple[int, ...]:
            return tuple(int(each) for each in _fill(*state, (start, stop), self._values))

        sums = self._team.over(n_rows, 8 * n_rows * n_columns, part)
        absolute, potential, held = (sum(each[k] for each in sums) for k in range(3))
        if self._copies is not None:
            absolute = int(weigh(self._values, self._copies, n_columns, self._team).sum())
        totals = np.array([absolute, potential, held, *self._by_class().reshape(-1)], np.int64)
        return Gains(GainMatrix(self._values, n_columns, scale, absolute), totals, shift)

    def _by_class(self) -> Integers:
        def part(start: int, stop: int) -> Integers:
            sums = np.zeros((self.n_columns, self.n_columns), np.int64)
            _class_sums(self._values, self._labels, start, stop, sums)
            return sums

        n_rows = self._labels.shape[0]
        return np.asarray(np.sum(self._team.over(n_rows, n_rows * self.n_columns, part), axis=0))

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the mean potential."""
        to_come = self._rounds - self._round
        in_units = ln(int(totals[1])) - gains.matrix.scale * LN2 + gains.shift * UNIT
        return in_units + to_come * self._ln_largest - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """The sum of G(i, h(i)) on this member's rows."""
        return np.array([gains_won(gains.matrix, fitted.parts[0].tree)], np.int64)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """One vote. The edge is how much of the guesses from chance the truth must replace for them to win as much."""
        won, by_class = int(outcomes[0]), totals[3:].reshape(self.n_columns, self.n_columns)
        own = int(np.trace(by_class))
        chance = math.fsum((self._baseline.chance * by_class).reshape(-1))
        edge = (won - chance) / (own - chance) if own > chance else 0.0
        before = float(ieee_math.exp(self._ln_largest)) * int(totals[1])
        after = max(int(totals[2]) - self._largest_rise * won, 1.0)
        rise = float(ieee_math.log(after / before)) if after > before > 0 else 0.0
        pairs = self._all_rows * self.n_columns
        slack = math.log1p(pairs * (1.0 + self._largest_rise) / after)
        edge = edge if edge > EDGE_EPS else 0.0
        return make_step(edge, self._baseline.step, rise, slack, perfect=won == own)

    def taken(self, fitted: Fitted, step: Step) -> None:
        """One round fewer to come."""
        self._round += 1


def _exp(exponents: Floats) -> Floats:
    """exp of every entry, the same bits on every processor."""
    flat = [float(ieee_math.exp(float(each))) for each in exponents.reshape(-1)]
    return np.array(flat, np.float64).reshape(exponents.shape)
