"""The gain matrix of a round in fixed point: every weak learner maximises sums of its entries."""

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.intrinsics import add_lanes, lanes_for, width_of
from boost_core.jit import inner_kernel, kernel, step
from boost_core.team import Team
from boost_core.tree import Tree

# Largest gain as a power of two, part of the model format. Equal weights round alike, so round 1 alone moves ln loss by
# up to K / 2**(GAIN_BITS + 1): at 22 bits letter (K = 26) misses its loss identity by 7e-7 in round 1, at 30 by less
# than 1e-8 (docs/engine.md). Sums are int64 throughout, so more bits cost nothing; 31 would leave int32.
GAIN_BITS = 30
SUM_BITS = 62  # sums of all gains stay below 2**62, so that differences of two sums fit int64


class Reading(enum.StrEnum):
    """How a weak learner is to read the channels."""

    TOGETHER = "together"  # one weak learner speaks for all of them
    VOTES = "votes"  # the same, where the answer "class l" is a vote of +1 for l and of -1 for all others
    APART = "apart"  # every channel is a problem of its own and gets a weak learner of its own


@dataclass(frozen=True)
class GainMatrix:
    """Fixed-point gains of one member's rows.

    values: [n_rows, n_padded]: n_channels gains, then a 1 that counts the row, then zeros, if any; int32. With weights
    all of a row is times its number of copies, in int64 (row_weights.py).
    One unit of a value is 2**-scale. total_mass: the sum of this member's absolute gains. rows: int32, in order; all of
    any other row is 0, also its count; None: not known.
    """

    values: NDArray[np.signedinteger]
    n_channels: int
    scale: int
    total_mass: int
    reading: Reading = Reading.TOGETHER
    rows: NDArray[np.int32] | None = None

    @property
    def flat(self) -> tuple[NDArray[np.signedinteger], int]:
        """The values one after another, and how many are in a row: as kernels take them."""
        return self.values.reshape(-1), self.values.shape[1]

    def sums(self, team: Team) -> NDArray[np.int64]:
        """Sums over this member's rows of each channel and, last, their count: int64 [n_channels + 1]."""
        n_rows, n_padded = self.values.shape
        lanes = lanes_for(n_padded)

        def part(start: int, stop: int) -> NDArray[np.int64]:
            sums = np.zeros(n_padded, np.int64)
            add_channels(self.values.reshape(-1), start, stop, lanes, sums)
            return sums

        parts = team.over(n_rows, n_rows * len(lanes), part)
        return np.asarray(np.sum(parts, axis=0)[: self.n_channels + 1])


def scale_for(largest: float, n_cells: int) -> int:
    """Largest integer s with largest * 2**s <= 2**GAIN_BITS and n_cells * largest * 2**s < 2**SUM_BITS.

    largest > 0 is the greatest absolute gain over all members, n_cells > 0 the number of gains over all members.
    """
    return int(scale_within(largest, scale_limits(n_cells)))


class ScaleLimits(NamedTuple):
    """What scale_for keeps to for a number of cells, in 64 bits: exponents of two that the largest gain, and that
    times the cells, may come to; enough: from which fraction (in [0.5, 1)) of a power of two on the latter has a bit
    more."""

    gain_bits: int
    sum_bits: int
    enough: float


def scale_limits(n_cells: int) -> ScaleLimits:
    """See ScaleLimits. n_cells times a fraction is below 2**bits, and below half of that where the fraction is below
    2**(bits - 1) / n_cells; fractions are multiples of 2**-53, so that is rounded up to such."""
    bits = n_cells.bit_length()
    return ScaleLimits(GAIN_BITS, SUM_BITS - bits, math.ldexp(-(-(1 << (bits + 52)) // n_cells), -53))


@inner_kernel
def scale_within(largest, limits):  # type: ignore[no-untyped-def]
    """scale_for for kernels; limits: ScaleLimits."""
    fraction, exponent = math.frexp(largest)  # largest = fraction * 2**exponent, 0.5 <= fraction < 1
    by_size = limits.gain_bits - exponent + (1 if fraction == 0.5 else 0)
    by_sum = limits.sum_bits - exponent + (1 if fraction < limits.enough else 0)
    return min(by_size, by_sum)


@kernel
def add_channels(values, start, stop, lanes, sums):  # type: ignore[no-untyped-def]
    """sums (OUT, int64 [n_padded]) += rows start..stop of values (flat)."""
    width = width_of(lanes)
    for i in range(start, stop):
        add_lanes(sums, (0,), values, i * width, lanes)


@step
def absolute_sum(gains, n_channels, rows):  # type: ignore[no-untyped-def]
    """Sum of the absolute gains of some rows; gains: of GainMatrix.flat."""
    values, pitch = gains
    total = np.int64(0)
    for k in range(rows.shape[0]):
        first = np.int64(rows[k]) * pitch
        for c in range(n_channels):
            total += abs(np.int64(values[np.uint64(first + c)]))
    return total


def channel_sums(gains: GainMatrix, team: Team) -> NDArray[np.int64]:
    """Sums over this member's rows of each channel and, last, their count: int64 [n_channels + 1]."""
    return gains.sums(team)


@kernel
def _won(values, answers, leaf_of_row):  # type: ignore[no-untyped-def]
    """Sum of G(i, h(i)); answers: the label of each leaf."""
    won = np.int64(0)
    for i in range(leaf_of_row.shape[0]):
        won += values[i, answers[leaf_of_row[i]]]
    return won


def gains_won(gains: GainMatrix, tree: Tree) -> int:
    """Sum of the gains of a tree's answers on this member's rows; its leaves answer labels."""
    return int(_won(gains.values, tree.payload[:, 0].copy(), tree.leaf_of_row))
