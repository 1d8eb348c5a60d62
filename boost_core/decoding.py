"""How a row's scores become a class: the largest score, the sign of the only one, or the nearest row of a code.

A code M in {-1, 0, +1}^(classes x columns) says which side of a column's binary problem each class is on (0: neither).
With f the scores of a row, the class is the first k with the least

    loss       sum_c exp(-M(k,c) f_c)                        (Allwein, Schapire & Singer 2000, loss-based decoding)
    hamming    sum_c (1 - M(k,c) sgn f_c) / 2, sgn 0 := +1

Both distances are integers here. Each class has a largest loss; losses count in units of 2**-36 of the least of those,
so what decides between near classes is never lost beside the losses of far ones.
"""

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.jit import counted_kernel, inner

DISTANCE_BITS = 36  # with up to 4096 columns a sum of losses stays below 2**62
# A class with a larger exponent is farther than the nearest one, whose sum is at most the number of columns: ln 8192.
LARGEST_EXPONENT = 9.1


class Rule(enum.StrEnum):
    """What decides the class."""

    ARGMAX = "argmax"  # one column a class: the largest score, the smallest class among equals
    BINARY = "binary"  # one column: class 1 where it is >= 0
    LOSS = "loss"  # a code, by the exponential loss
    HAMMING = "hamming"  # a code, by the signs that differ
    SIGNS = "signs"  # a column a label, of which a row has several: those whose score is above 0


@dataclass(frozen=True)
class Decoding:
    """A rule with its code, int8 [n_classes, n_columns]; without one: [0, n_columns]."""

    rule: Rule
    code: NDArray[np.int8]

    @property
    def coded(self) -> bool:
        """Whether the rule compares the scores with the rows of a code."""
        return self.rule in (Rule.LOSS, Rule.HAMMING)

    @property
    def sides(self) -> NDArray[np.int8]:
        """The code by columns, [n_columns, n_classes]."""
        return np.ascontiguousarray(self.code.T)


def plain_decoding(n_columns: int, label_sets: bool = False) -> Decoding:
    """The rule of an algorithm that has a score a class, or a single one for two classes; or of label sets."""
    rule = Rule.BINARY if n_columns == 1 else Rule.ARGMAX
    rule = Rule.SIGNS if label_sets else rule
    return Decoding(rule, np.empty((0, n_columns), np.int8))


@inner
def _least_largest_exponent(row, sides, largest):  # type: ignore[no-untyped-def]
    """Each class has a largest exponent -M f; the least of those, in score units (largest: scratch int64 [k])."""
    for c in range(row.shape[0]):
        score, side = np.int64(row[c]), sides[c]
        for k in range(side.shape[0]):
            exponent = -score if side[k] > 0 else (score if side[k] < 0 else np.int64(0))
            largest[k] = exponent if c == 0 else max(largest[k], exponent)
    least = largest[0]
    for k in range(1, largest.shape[0]):
        least = min(least, largest[k])
    return least


@inner
def _lose(row, shift, unit, terms):  # type: ignore[no-untyped-def]
    """terms (OUT, float64 [2 c + 1]): a column's loss for M = +1, then those for M = -1, then that of M = 0."""
    n_columns = row.shape[0]
    for c in range(n_columns):
        score = np.int64(row[c])
        terms[c] = np.float64(-score - shift)
        terms[n_columns + c] = np.float64(score - shift)
    terms[2 * n_columns] = np.float64(-shift)
    for c in range(2 * n_columns + 1):
        terms[c] = ieee_math.exp(min(terms[c] * unit, LARGEST_EXPONENT))


@inner
def _distances(row, sides, by_loss, unit, terms, distances):  # type: ignore[no-untyped-def]
    """distances (OUT, int64 [k]) of a row's scores [c] from every class; sides: int8 [c, k], the code by columns.

    terms: scratch float64 [2 c + 1]. The loops over classes have no branches, so that they are vectorised.
    """
    n_columns = row.shape[0]
    one, neither = np.float64(1 << DISTANCE_BITS), np.int64(1)
    if by_loss:
        _lose(row, _least_largest_exponent(row, sides, distances), unit, terms)
        neither = ieee_math.round_half_even(terms[2 * n_columns] * one)
    distances[:] = 0
    for c in range(n_columns):
        side = sides[c]
        if by_loss:
            plus = ieee_math.round_half_even(terms[c] * one)
            minus = ieee_math.round_half_even(terms[n_columns + c] * one)
        else:
            plus = np.int64(0 if row[c] >= 0 else 2)
            minus = 2 - plus
        for k in range(side.shape[0]):
            distances[k] += plus if side[k] > 0 else (minus if side[k] < 0 else neither)


@counted_kernel
def decode_rows(scores, sides, by_loss, unit, classes):  # type: ignore[no-untyped-def]
    """classes (OUT, int32 [n]): the first class of the least distance; scores [n, c] in units of `unit`."""
    terms, distances = np.empty(2 * sides.shape[0] + 1), np.empty(sides.shape[1], np.int64)
    for i in range(scores.shape[0]):
        _distances(scores[i], sides, by_loss, unit, terms, distances)
        best = 0
        for k in range(1, distances.shape[0]):
            if distances[k] < distances[best]:
                best = k
        classes[i] = best


@counted_kernel
def count_decoding_errors(scores, labels, sides, by_loss, unit, span, copies):  # type: ignore[no-untyped-def]
    """Rows span[0]..span[1] decoded to a wrong class, and those where a wrong class is as near as the right one.

    copies: int64 [n], how often each row counts, or [0] for once.
    """
    terms, distances = np.empty(2 * sides.shape[0] + 1), np.empty(sides.shape[1], np.int64)
    ordinary, strict = np.int64(0), np.int64(0)
    for i in range(span[0], span[1]):
        _distances(scores[i], sides, by_loss, unit, terms, distances)
        own = distances[labels[i]]
        wrong, level = False, False
        for k in range(distances.shape[0]):
            wrong |= (distances[k] < own) | ((distances[k] == own) & (k < labels[i]))
            level |= (distances[k] <= own) & (k != labels[i])
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        ordinary += n_copies * wrong
        strict += n_copies * level
    return ordinary, strict
