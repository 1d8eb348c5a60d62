"""Row weights as whole numbers of copies: a row of weight w gives every sum w times what one copy of it would give.

Weights come as float64. The unit that they are counted in is a power of two, the same for all members:

    whole weights below 2**20        unit 1: the weights themselves
    all others                       the largest weight has 20 bits; then the unit is doubled as long as all are even

A gain is rounded first and multiplied with the row's number of copies afterwards, in int64, so weights 1, 2, 3 give to
the bit what repeated rows give. Only ratios of weights matter to a model, so the unit itself is not kept.
"""

import math

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.collective import Collective
from boost_core.intrinsics import width_for
from boost_core.jit import kernel
from boost_core.team import Team

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
# Bits of the largest weight. Gains keep 62 - 20 bits for their sum over the rows of that weight: 22 bits a gain for a
# million cells, as many as are known to do (docs/engine.md); weights a thousand times smaller are off by 0.1 % at most.
WEIGHT_BITS = 20
MOST_ZEROS = 1 << 10  # trailing zero bits of no weight at all

COUNTED = 1 << 16  # labels that are counted at once


def copies_of(weights: Floats, collective: Collective) -> Integers:
    """How many copies each row counts for, int64 [n_rows], at least 1; weights: float64 [n_rows] > 0, finite.

    All members call it at the same time: the unit depends on all weights.
    """
    whole = bool((weights == np.rint(weights)).all())
    facts = np.array([float(weights.max(initial=0.0)), float(not whole)])
    largest, fractions = (float(fact) for fact in collective.max(facts))
    exponent = math.frexp(largest)[1]
    if not fractions and exponent <= WEIGHT_BITS:
        return weights.astype(np.int64)
    copies = np.maximum(np.rint(np.ldexp(weights, WEIGHT_BITS - exponent)), 1.0).astype(np.int64)
    zeros = -int(collective.max(np.array([-_common_zeros(copies)], np.int64))[0])
    return copies >> np.int64(min(zeros, WEIGHT_BITS))


def _common_zeros(copies: Integers) -> int:
    """How often all numbers can be halved."""
    either = int(np.bitwise_or.reduce(copies)) if copies.shape[0] else 0
    return (either & -either).bit_length() - 1 if either else MOST_ZEROS


def class_mass(labels: NDArray[np.int32], copies: Integers | None, n_classes: int) -> Integers:
    """Rows of each class, a row counted as often as its copies, int64 [n_classes]; copies None: once."""
    mass = np.zeros(n_classes, np.int64)
    if copies is None:
        for start in range(0, len(labels), COUNTED):  # NumPy makes int64 of them
            mass += np.bincount(labels[start : start + COUNTED], minlength=n_classes)
        return mass
    np.add.at(mass, labels, copies)
    return mass


def total_mass(n_rows: int, copies: Integers | None) -> int:
    """Rows, counted as often as their copies."""
    return n_rows if copies is None else int(copies.sum())


def new_gains(n_rows: int, n_channels: int, copies: Integers | None) -> NDArray[np.signedinteger]:
    """Room for a gain matrix and its count of rows, [n_rows, padded]: int32, for weighted rows int64."""
    dtype: type[np.signedinteger] = np.int32 if copies is None else np.int64
    return aligned_zeros((n_rows, width_for(n_channels + 1)), dtype)


@kernel
def _weigh(values, copies, n_channels, start, stop, sums):  # type: ignore[no-untyped-def]
    """values (gains and count; IN/OUT) of rows start..stop times their copies; sums (IN/OUT, int64 [n_channels]) +=
    absolute gains."""
    for i in range(start, stop):
        for c in range(n_channels + 1):
            values[i, c] *= copies[i]
        for c in range(n_channels):
            sums[c] += abs(values[i, c])


def weigh(values: NDArray[np.signedinteger], copies: Integers, n_channels: int, team: Team) -> Integers:
    """Make gains of one copy a row (values: IN/OUT) those of all copies; returns each channel's absolute sum."""

    def part(start: int, stop: int) -> Integers:
        sums = np.zeros(n_channels, np.int64)
        _weigh(values, copies, n_channels, start, stop, sums)
        return sums

    n_rows = values.shape[0]
    return np.asarray(np.sum(team.over(n_rows, 4 * n_rows * n_channels, part), axis=0))
