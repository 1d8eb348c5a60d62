"""The exponential loss over (row, label) pairs with +-1 votes, shared by adaboost and adaboost_mh.

    W(i,l) = c(i,l) exp(-Y(i,l) F(i,l)),   G = W Y,   loss = sum W          (Schapire & Singer 1999)

c depends on the label and on the sign of Y only. Exponents are taken relative to the greatest one of all members, so
weights never underflow: what is tiny against the greatest weight rounds to a gain of 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.intrinsics import LANE, lanes_for
from boost_core.jit import kernel
from boost_core.scores import UNIT, Scores
from boost_core.team import Team

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NO_PAIR = -(1 << 62)  # peak of a label without any pair of that sign
NO_TARGET = -1  # a row with Y = -1 for every label
TILE_ROWS = 64
LN2 = 0.6931471805599453


@dataclass(frozen=True)
class InitialWeights:
    """c(i,l): positive [n_columns] where Y = +1, negative [n_columns] where Y = -1. They sum to 1 over all pairs."""

    positive: Floats
    negative: Floats


@kernel
def _peaks(scores, targets, start, stop, peaks):  # type: ignore[no-untyped-def]
    """peaks (IN/OUT) int64 [2, c]: greatest exponent -Y F a label, negatives in row 0, positives in row 1."""
    for i in range(start, stop):
        target = targets[i]
        for c in range(scores.shape[1]):
            exponent = np.int64(scores[i, c]) if c != target else np.int64(NO_PAIR)
            peaks[0, c] = max(peaks[0, c], exponent)
        if target >= 0:
            peaks[1, target] = max(peaks[1, target], -np.int64(scores[i, target]))


@kernel
def _fill(scores, targets, weights, shift, rows, values, mass):  # type: ignore[no-untyped-def]
    """values, mass (OUT): gains of rows[0]..rows[1]; weights float64 [2, c] (negative, positive) times 2**scale.

    Returns the sum of absolute gains. A tile's exponentials are computed in one flat loop: short inner loops over
    the labels would leave most vector lanes empty.
    """
    n_columns = scores.shape[1]
    flat = scores.reshape(-1)
    buffer = np.empty(TILE_ROWS * n_columns)
    total = np.int64(0)
    for tile in range(rows[0], rows[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, rows[1])
        base = tile * n_columns
        for k in range((stop - tile) * n_columns):
            # a positive exponent can only belong to the row's own label, which is overwritten below
            buffer[k] = ieee_math.exp(min((np.float64(flat[base + k]) - shift) * UNIT, 0.0))
        for i in range(tile, stop):
            at = (i - tile) * n_columns
            row_mass = np.int64(0)
            target = targets[i]
            for c in range(n_columns):
                rounded = ieee_math.round_half_even(buffer[at + c] * weights[0, c])
                gain = rounded if c != target else np.int64(0)
                values[i, c] = -gain
                row_mass += gain
            if target >= 0:
                exponent = (-np.float64(scores[i, target]) - shift) * UNIT
                gain = ieee_math.round_half_even(ieee_math.exp(exponent) * weights[1, target])
                values[i, target] = gain
                row_mass += gain
            values[i, n_columns] = 1
            mass[i] = row_mass
            total += row_mass
    return total


class VoteGains:
    """Turns scores into the gain matrix of the exponential vote loss, reusing its arrays every round."""

    def __init__(self, targets: NDArray[np.int32], initial: InitialWeights, n_pairs: int, team: Team) -> None:
        n_rows, self._n_columns = targets.shape[0], initial.positive.shape[0]
        self._targets = targets
        self._initial = np.stack([initial.negative, initial.positive])
        self._n_pairs = n_pairs
        self._team = team
        padded = LANE * len(lanes_for(self._n_columns + 1))
        self._values = np.zeros((n_rows, padded), np.int32)
        self._mass = np.zeros(n_rows, np.int64)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponents in score units, int64 [2 * n_columns]."""

        def part(start: int, stop: int) -> Integers:
            peaks = np.full((2, self._n_columns), NO_PAIR, np.int64)
            _peaks(scores.values, self._targets, start, stop, peaks)
            return peaks

        n_rows = self._targets.shape[0]
        found = self._team.over(n_rows, n_rows * self._n_columns, part)
        return np.max(found, axis=0).reshape(-1)

    def gains(self, scores: Scores, peaks: Integers) -> tuple[GainMatrix, int]:
        """The gain matrix and the exponents' shift in score units; peaks: the greatest over all members."""
        by_sign = peaks.reshape(2, self._n_columns)
        shift = int(by_sign.max())
        largest = 0.0
        for sign, column in np.argwhere(by_sign > NO_PAIR):
            weight = ieee_math.exp((float(by_sign[sign, column]) - shift) * UNIT)
            largest = max(largest, weight * float(self._initial[sign, column]))
        scale = scale_for(largest, self._n_pairs)
        total = self._fill(scores, np.ldexp(self._initial, scale), float(shift))
        return GainMatrix(self._values, self._mass, self._n_columns, scale, total), shift

    def _fill(self, scores: Scores, weights: Floats, shift: float) -> int:
        def part(start: int, stop: int) -> int:
            rows = (start, stop)
            return int(_fill(scores.values, self._targets, weights, shift, rows, self._values, self._mass))

        n_rows = self._targets.shape[0]
        return sum(self._team.over(n_rows, 8 * n_rows * self._n_columns, part))


def ln_loss(total_mass: int, scale: int, shift: int) -> float:
    """ln of sum W from the integer sum of all members' absolute gains."""
    return float(ieee_math.log(float(total_mass))) - scale * LN2 + shift * UNIT
