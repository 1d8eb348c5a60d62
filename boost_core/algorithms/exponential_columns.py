"""Binary AdaBoosts side by side, a score column each: one-vs-all, output codes, AdaBoost.MH with a step a label.

A code M in {-1, 0, +1}^(classes x columns) gives row i of class y the label M(y,c) in column c, and no part in it if 0.

    W(i,c) = w(c, sign) exp(-M(y,c) F(i,c)),   G = W M,   loss = share * sum W   (Freund & Schapire 1997, a column)

Columns are normalised apart: each has its own shift, scale, edge and step, so its learners are those of a run of its
own. A column whose learner made no error takes the capped step once and is finished, like such a run.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ALPHA_CAP, atanh_step, ln
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_votes import LN2, TILE_ROWS, InitialWeights
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, Reading, scale_for
from boost_core.jit import counted_kernel, kernel
from boost_core.model import SCORE_UNITS
from boost_core.records import StopReason
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import NO_PAIR, UNIT, Scores

Floats = NDArray[np.float64]


@kernel
def _peaks(scores, labels, code, start, stop, peaks):  # type: ignore[no-untyped-def]
    """peaks (IN/OUT) int64 [2, c]: greatest exponent -M F a column, M = -1 in row 0, M = +1 in row 1."""
    for i in range(start, stop):
        signs = code[labels[i]]
        for c in range(scores.shape[1]):
            score = np.int64(scores[i, c])
            if signs[c] > 0:
                peaks[1, c] = max(peaks[1, c], -score)
            elif signs[c] < 0:
                peaks[0, c] = max(peaks[0, c], score)


@counted_kernel
def _fill(scores, labels, tables, shifts, rows, values, totals):  # type: ignore[no-untyped-def]
    """values (OUT): gains of rows[0]..rows[1]; totals (IN/OUT, int64 [c]): sums of absolute gains.

    tables = (code int8 [k, c], weights float64 [k, c] times 2**scale of the column); shifts float64 [c].
    """
    code, weights = tables
    n_columns = scores.shape[1]
    powers = np.empty(TILE_ROWS * n_columns)
    for tile in range(rows[0], rows[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, rows[1])
        for i in range(tile, stop):
            signs = code[labels[i]]
            for c in range(n_columns):
                exponent = -np.float64(signs[c]) * np.float64(scores[i, c]) - shifts[c]
                powers[(i - tile) * n_columns + c] = exponent * UNIT
        for k in range((stop - tile) * n_columns):
            powers[k] = ieee_math.exp(min(powers[k], 0.0))
        for i in range(tile, stop):
            signs, weight = code[labels[i]], weights[labels[i]]
            for c in range(n_columns):
                gain = ieee_math.round_half_even(powers[(i - tile) * n_columns + c] * weight[c])
                values[i, c] = np.int64(signs[c]) * gain
                totals[c] += gain
            values[i, n_columns] = 1


@dataclass(frozen=True)
class Columns:
    """The binary problems: code int8 [n_classes, n_columns]; initial: a pair's weight by column and sign; share: what
    the sum of weights is multiplied with to give the loss, which is 1 at scores of 0."""

    code: NDArray[np.int8]
    initial: InitialWeights
    share: float = 1.0


def one_against_rest(n_classes: int) -> NDArray[np.int8]:
    """The code with a column a class: +1 there, -1 elsewhere."""
    return (2 * np.eye(n_classes, dtype=np.int8) - 1).astype(np.int8)


def equal_columns(code: NDArray[np.int8], class_counts: Integers) -> Columns:
    """Every row of a column weighs the same, and every column that has rows."""
    rows = np.abs(code).T.astype(np.int64) @ class_counts
    each = 1.0 / np.maximum(rows, 1)
    return Columns(code, InitialWeights(each, each), 1.0 / max(int(np.count_nonzero(rows)), 1))


class ExponentialColumns:
    """An algorithm of binary problems side by side, complete but for its code.

    totals of its gains: [sum of absolute gains, then that of each column]. The gain matrix's arrays are reused.
    """

    ln_initial = 0.0
    reading = Reading.APART

    def __init__(self, problem: Problem, columns: Columns, error_factor: float | None) -> None:
        self.error_factor, self._team, self._labels = error_factor, problem.team, problem.labels
        self._copies = problem.copies
        self._code, self._ln_share = columns.code, float(ieee_math.log(columns.share))
        n_rows, self.n_columns = problem.labels.shape[0], columns.code.shape[1]
        self._initial = np.stack([columns.initial.negative, columns.initial.positive])
        self._weights: Floats = np.select([self._code > 0, self._code < 0], [self._initial[1], self._initial[0]], 0.0)
        self._rows = self._rows_of(problem)  # of each column, over all members
        self._values = new_gains(n_rows, self.n_columns, problem.copies)
        self._capped = np.zeros(self.n_columns, np.bool_)  # took the capped step
        self._finished = np.zeros(self.n_columns, np.bool_)  # and has all its rows right
        self._ln_unit = np.zeros(self.n_columns)  # ln of what one unit of a column's gains means

    def _rows_of(self, problem: Problem) -> Integers:
        return np.asarray(np.abs(self._code).T.astype(np.int64) @ problem.class_counts)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponents in score units, int64 [2 * n_columns]."""

        def part(start: int, stop: int) -> Integers:
            peaks = np.full((2, self.n_columns), NO_PAIR, np.int64)
            _peaks(scores.values, self._labels, self._code, start, stop, peaks)
            return peaks

        n_rows = self._labels.shape[0]
        found = self._team.over(n_rows, n_rows * self.n_columns, part)
        return np.asarray(np.max(found, axis=0).reshape(-1))

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponents over all members."""
        by_sign = peaks.reshape(2, self.n_columns)
        shifts = np.where(self._rows > 0, by_sign.max(axis=0), 0)
        self._finished = self._capped & (shifts < 0)
        scales = np.array([self._scale(by_sign[:, c], int(shifts[c]), c) for c in range(self.n_columns)], np.int64)
        self._ln_unit = shifts * UNIT - scales * LN2
        tables = (self._code, np.ldexp(self._weights, scales))
        columns = self._fill_all(scores, tables, shifts.astype(np.float64))
        total = int(columns.sum())
        matrix = GainMatrix(self._values, self.n_columns, 0, total, self.reading)
        return Gains(matrix, np.concatenate([[total], columns]), 0)

    def _scale(self, peaks: Integers, shift: int, column: int) -> int:
        largest = 0.0
        for sign in range(2):
            if peaks[sign] > NO_PAIR:
                weight = float(ieee_math.exp((float(peaks[sign]) - shift) * UNIT))
                largest = max(largest, weight * float(self._initial[sign, column]))
        return scale_for(largest, int(self._rows[column])) if largest > 0 else 0

    def _fill_all(self, scores: Scores, tables: tuple[NDArray[np.int8], Floats], shifts: Floats) -> Integers:
        def part(start: int, stop: int) -> Integers:
            totals = np.zeros(self.n_columns, np.int64)
            _fill(scores.values, self._labels, tables, shifts, (start, stop), self._values, totals)
            return totals

        n_rows = self._labels.shape[0]
        totals = np.sum(self._team.over(n_rows, 8 * n_rows * self.n_columns, part), axis=0)
        if self._copies is not None:
            totals = weigh(self._values, self._copies, self.n_columns, self._team)
        return np.asarray(totals)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the loss from the integer sums of all members' absolute gains."""
        return self._ln_share + _ln_sum(self._ln_weights(totals))

    def _ln_weights(self, totals: Integers) -> Floats:
        """ln of the sum of weights of each column, -inf where it has none."""
        known = [ln(int(total)) if total > 0 else -math.inf for total in totals[1:]]
        return np.array(known) + self._ln_unit

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """The edges are all that the steps need."""
        return np.empty(0, np.int64)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """A step a column, artanh of its edge; none for a column that is finished or has nothing to gain."""
        values, masses = fitted.values, totals[1:]
        ln_weights = self._ln_weights(totals)
        steps = [
            atanh_step(int(values[c]), int(masses[c]), int(self._rows[c])) if masses[c] > 0 else None
            for c in range(self.n_columns)
        ]
        moves = [s if s and s.refused is None and not self._finished[c] else None for c, s in enumerate(steps)]
        units = np.array([int(s.multipliers[0]) if s else 0 for s in moves], np.int64)
        after = ln_weights + [s.ln_factor if s else 0.0 for s in moves]
        unsure = after + [s.ln_slack if s else 0.0 for s in moves]
        done = [s is None or s.perfect or bool(self._finished[c]) for c, s in enumerate(steps)]
        return Step(
            edge=_mean(ln_weights, [s.edge if s else 0.0 for s in steps]),
            alpha=int(units.sum()) / self.n_columns * UNIT,
            multipliers=units,
            ln_factor=_ln_sum(after) - _ln_sum(ln_weights),
            ln_slack=_ln_sum(unsure) - _ln_sum(after),
            perfect=all(done),
            refused=None if units.any() else _nothing_moves(all(done), steps),
        )

    def taken(self, fitted: Fitted, step: Step) -> None:
        """Columns that took the capped step may be finished."""
        self._capped |= step.multipliers >= round(ALPHA_CAP * (1 << SCORE_UNITS))


def _nothing_moves(all_done: bool, steps: list[Step | None]) -> StopReason:
    if all_done:
        return StopReason.EDGE_ONE
    some_edge = any(step is not None and step.edge > 0 and not step.perfect for step in steps)
    return StopReason.ALPHA_ZERO if some_edge else StopReason.EDGE_ZERO


def _ln_sum(terms: Floats) -> float:
    """ln of the sum of exp(terms), added in their order; -inf is the ln of 0."""
    largest = float(terms.max(initial=-math.inf))
    if largest == -math.inf:
        return largest
    total = 0.0
    for term in terms:
        total += float(ieee_math.exp(term - largest))
    return largest + float(ieee_math.log(total))


def _mean(ln_weights: Floats, values: list[float]) -> float:
    """Mean under weights that are given by their logarithms."""
    largest, total, weighted = float(ln_weights.max()), 0.0, 0.0
    for ln_weight, value in zip(ln_weights, values, strict=True):
        weight = float(ieee_math.exp(ln_weight - largest))
        total += weight
        weighted += weight * value
    return weighted / total
