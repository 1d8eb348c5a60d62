"""Losses of a row's margins m_k = (s_y - s_k) / 2 over the wrong classes k, besides the exponential one.

    logistic   ln(1 + sum_k exp(-m_k))             weights exp(-m_k) / (1 + sum_k exp(-m_k))
    tangent    sum_k (2 arctan m_k - 1)**2         weights 4 (1 - 2 arctan m_k) / (1 + m_k**2), bounded and of any sign

The weight of a margin is minus the loss's derivative in it. Both are gamma-phi losses of the margins (Saberian &
Vasconcelos 2019); with two classes they are those of LogitBoost and TangentBoost (Masnadi-Shirazi, Mahadevan &
Vasconcelos 2010). Sums over rows are of integers: each row's number is rounded in a scale that all members know.
"""

import math
from typing import NamedTuple

import numpy as np

from boost_core import ieee_math
from boost_core.gain_matrix import SUM_BITS
from boost_core.jit import counted_kernel, inner, kernel

ROW_BITS = 50  # of a row's rounded number: rounding works below 2**51
LOWEST_EXPONENT = -600.0  # of weights: lower ones round to no gain, and their scale would leave the range of floats


class Limits(NamedTuple):
    """What a row's loss, sum of absolute weights and second derivative cannot pass."""

    loss: float
    weight: float
    curve: float


def row_limits(logistic: bool, exponent: float, n_classes: int) -> Limits:
    """Limits at scores whose margins are all at least -exponent; tangent losses are limited anyhow."""
    n_wrong = n_classes - 1
    if not logistic:
        return Limits(17.2 * n_wrong, 6.2 * n_wrong, 10.0 * n_wrong)  # (pi + 1)**2; the rest: see the tests
    weight = n_wrong * float(ieee_math.exp(min(max(exponent, LOWEST_EXPONENT), 0.0)))
    loss = max(exponent, 0.0) + min(weight, float(ieee_math.log(float(n_classes))))
    return Limits(loss, min(weight, 1.0), min(weight, 1.0))


def sum_factor(limit: float, n_rows: int) -> float:
    """A power of two that brings rows' numbers up to the limit within what can be rounded and summed."""
    bits = min(ROW_BITS, SUM_BITS - n_rows.bit_length())
    return math.ldexp(1.0, bits - math.frexp(limit)[1])


@inner
def _logistic(margins, own, weights):  # type: ignore[no-untyped-def]
    """The loss of a row and its weights (OUT), [n_classes] both; own: the true class, whose entry is not used."""
    lowest = 0.0
    for k in range(margins.shape[0]):
        if k != own:
            lowest = min(lowest, margins[k])
    total = 0.0
    for k in range(margins.shape[0]):
        weights[k] = ieee_math.exp(lowest - margins[k]) if k != own else 0.0
        total += weights[k]
    rest = ieee_math.exp(lowest)
    for k in range(margins.shape[0]):
        weights[k] /= rest + total
    return ieee_math.log1p(total) if lowest == 0.0 else ieee_math.log(rest + total) - lowest


@inner
def _tangent(margins, own, weights, curves):  # type: ignore[no-untyped-def]
    """As above; curves: OUT, second derivatives in each margin."""
    loss = 0.0
    for k in range(margins.shape[0]):
        if k == own:
            weights[k], curves[k] = 0.0, 0.0
            continue
        m = margins[k]
        root = 2.0 * ieee_math.atan(m) - 1.0
        spread = 1.0 + m * m
        weights[k] = -4.0 * root / spread
        curves[k] = 8.0 * (1.0 - m * root) / (spread * spread)
        loss += root * root
    return loss


@counted_kernel
def fill(logistic, scores, labels, units, rows, copies, values):  # type: ignore[no-untyped-def]
    """values (OUT): gains of rows[0]..rows[1], -weight at a wrong class and their sum at the true one.

    units = (factor of gains, factor of losses, half a unit of a score). Returns the sums of absolute gains, of absolute
    weights and of losses, each row's times its copies (int64 [n], or [0] for one a row); the gains are those of one.
    """
    factor, loss_factor, half_unit = units
    n_classes = scores.shape[1]
    margins, weights, curves = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    absolute, weighed, lost = np.int64(0), np.int64(0), np.int64(0)
    for i in range(rows[0], rows[1]):
        own = np.int64(labels[i])
        for k in range(n_classes):
            margins[k] = (np.float64(scores[i, own]) - np.float64(scores[i, k])) * half_unit
        loss = _logistic(margins, own, weights) if logistic else _tangent(margins, own, weights, curves)
        total, size = np.int64(0), np.int64(0)
        for k in range(n_classes):
            gain = ieee_math.round_half_even(weights[k] * factor)
            values[i, k] = -gain
            total += gain
            size += abs(gain)
        values[i, own] = total
        values[i, n_classes] = 1
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        absolute += (size + abs(total)) * n_copies
        weighed += size * n_copies
        lost += ieee_math.round_half_even(loss * loss_factor) * n_copies
    return absolute, weighed, lost


@counted_kernel
def along(logistic, scores, labels, line, units, rows, copies):  # type: ignore[no-untyped-def]
    """Sums over rows[0]..rows[1] of the loss and its first two derivatives along a line, each times its factor and, as
    in `fill`, the row's copies.

    line = (outputs float64 [leaves, kinds], kinds int64 [n_classes], leaf_of_row, alpha): a class's score moves by
    alpha times the output of its kind; units = (three factors, half a unit of a score).
    """
    outputs, kinds, leaf_of_row, alpha = line
    factors, half_unit = units
    n_classes = scores.shape[1]
    margins, weights, curves = np.empty(n_classes), np.empty(n_classes), np.zeros(n_classes)
    moves = np.empty(n_classes)
    lost, slope, curve = np.int64(0), np.int64(0), np.int64(0)
    for i in range(rows[0], rows[1]):
        own, said = np.int64(labels[i]), outputs[leaf_of_row[i]]
        for k in range(n_classes):
            moves[k] = 0.5 * (said[kinds[own]] - said[kinds[k]])
            margin = (np.float64(scores[i, own]) - np.float64(scores[i, k])) * half_unit
            margins[k] = margin + alpha * moves[k]
        loss = _logistic(margins, own, weights) if logistic else _tangent(margins, own, weights, curves)
        first, second = 0.0, 0.0
        for k in range(n_classes):
            first -= weights[k] * moves[k]
            second += (weights[k] if logistic else curves[k]) * moves[k] * moves[k]
        if logistic:
            second -= first * first
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        lost += ieee_math.round_half_even(loss * factors[0]) * n_copies
        slope += ieee_math.round_half_even(first * factors[1]) * n_copies
        curve += ieee_math.round_half_even(second * factors[2]) * n_copies
    return lost, slope, curve


@kernel
def standing_pairs(labels, line, start, stop):  # type: ignore[no-untyped-def]
    """How many margins of rows start..stop do not grow along the line (outputs, kinds, leaf_of_row)."""
    outputs, kinds, leaf_of_row = line
    count = np.int64(0)
    for i in range(start, stop):
        said = outputs[leaf_of_row[i]]
        for k in range(kinds.shape[0]):
            count += (k != labels[i]) & (said[kinds[labels[i]]] <= said[kinds[k]])
    return count
