"""The log loss of validation rows, mean -ln p(label), with the probabilities of probability.py.

It chooses a model's last round and its temperature, so it is taken in plain IEEE operations and summed in integers:
every member of a gang, whatever its processor, finds the same. A temperature T makes p**(1 / T), normalised, of the
probabilities p: 1 / T is the factor below.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.decoding import Decoding, Rule
from boost_core.jit import inner, kernel
from boost_core.probability import Link, Transform
from boost_core.scores import UNIT, Scores
from boost_core.shard import Shard
from boost_core.team import Team

Integers = NDArray[np.int64]
WORST = 1024.0  # a row's loss counts no more, so that sums stay in 62 bits
LEAST_SHARE = 2.0**-52  # of the votes: a class without any has this probability here
PLAIN, DOUBLE, SIGMOID, SIGMOIDS, SHARES, BY_LOSS, BY_SIGNS = range(7)
KINDS = {
    Link.PLAIN: PLAIN,
    Link.DOUBLE: DOUBLE,
    Link.SIGMOID: SIGMOID,
    Link.SIGMOIDS: SIGMOIDS,
    Link.SHARES: SHARES,
}


@inner
def _softplus(x):  # type: ignore[no-untyped-def]
    """ln(1 + e**x)."""
    return max(x, 0.0) + ieee_math.log1p(ieee_math.exp(-abs(x)))


@inner
def _code_logit(row, sides, k, by_loss):  # type: ignore[no-untyped-def]
    """Minus ln of the loss of class k's code word at these scores, or minus its Hamming distance."""
    largest, total, distance = -1e300, 0.0, 0.0
    for c in range(row.shape[0]):
        exponent = -np.float64(sides[c, k]) * np.float64(row[c]) * UNIT
        largest = max(largest, exponent)
        sign = 1.0 if row[c] >= 0 else -1.0
        distance += 0.5 * (1.0 - sign * np.float64(sides[c, k]))
    if not by_loss:
        return -distance
    for c in range(row.shape[0]):
        total += ieee_math.exp(-np.float64(sides[c, k]) * np.float64(row[c]) * UNIT - largest)
    return -(largest + ieee_math.log(total))


@inner
def _set_logits(kind, row, sides, offset, logits):  # type: ignore[no-untyped-def]
    """logits (OUT, float64 [k]): ln of the row's probabilities, up to what is the same for all classes."""
    votes = 0.0
    if kind == SHARES:
        for c in range(row.shape[0]):
            votes += np.float64(row[c])
    for k in range(logits.shape[0]):
        if kind == SIGMOID:
            logits[k] = 2.0 * np.float64(row[0]) * UNIT if k == 1 else 0.0
        elif kind == SIGMOIDS:
            logits[k] = -_softplus(offset - 2.0 * np.float64(row[k]) * UNIT)
        elif kind == SHARES:
            share = np.float64(row[k]) / votes if votes > 0.0 else 1.0
            logits[k] = ieee_math.log(max(share, LEAST_SHARE))
        elif kind >= BY_LOSS:
            logits[k] = _code_logit(row, sides, k, kind == BY_LOSS)
        else:
            logits[k] = np.float64(row[k]) * UNIT * (2.0 if kind == DOUBLE else 1.0)


@kernel
def _add_losses(link, scores, rows, factors, unit, span, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [m]) += losses of rows span[0]..span[1] in units, one a factor.

    link = (kind, offset, sides int8 [c, k], scratch float64 [k]); rows = (labels, copies int64 [n], or [0] for once).
    """
    labels, copies = rows
    kind, offset, sides, logits = link
    for i in range(span[0], span[1]):
        _set_logits(kind, scores[i], sides, offset, logits)
        largest = logits[0]
        for k in range(1, logits.shape[0]):
            largest = max(largest, logits[k])
        weight = unit * np.float64(copies[i]) if copies.shape[0] > 0 else unit
        for f in range(factors.shape[0]):
            total = 0.0
            for k in range(logits.shape[0]):
                total += ieee_math.exp(factors[f] * (logits[k] - largest))
            loss = ieee_math.log(total) + factors[f] * (largest - logits[labels[i]])
            sums[f] += np.int64(np.rint(min(loss, WORST) * weight))


class LogLoss:
    """Of one member's validation rows; n_all: those of all members, copies counted."""

    def __init__(self, transform: Transform, decoding: Decoding, n_classes: int, n_all: int) -> None:
        by_code = BY_LOSS if decoding.rule is Rule.LOSS else BY_SIGNS
        self._kind, self._offset, self._n_classes = KINDS.get(transform.link, by_code), transform.offset, n_classes
        self._sides = decoding.sides
        # a sum of n_all losses of at most WORST = 2**10 stays below 2**62
        self.bits = min(40, 51 - max(n_all, 1).bit_length())
        self._n_all = max(n_all, 1)

    def sums(self, scores: NDArray[np.integer], shard: Shard, factors: NDArray[np.float64], team: Team) -> Integers:
        """Sum of the rows' losses in units of 2**-bits at each factor, int64 [m], a row counted as often as its copies;
        scores [n, c] in score units."""
        n_rows = shard.n_rows
        rows = (shard.labels, np.empty(0, np.int64) if shard.copies is None else shard.copies)

        def part(start: int, stop: int) -> Integers:
            sums = np.zeros(factors.shape[0], np.int64)
            link = (self._kind, self._offset, self._sides, np.empty(self._n_classes))
            _add_losses(link, scores, rows, factors, 2.0**self.bits, (start, stop), sums)
            return sums

        work = 16 * n_rows * self._n_classes * factors.shape[0]
        return np.asarray(np.sum(team.over(n_rows, work, part), axis=0))

    def of_rows(self, scores: Scores, rows: Shard | None, factors: NDArray[np.float64], team: Team) -> Integers:
        """The same of all this member's rows, block by block of their scores; None: there are none."""
        total = np.zeros(factors.shape[0], np.int64)
        if rows is None:
            return total
        for span, block in scores.blocks():
            copies = None if rows.copies is None else rows.copies[span]
            total += self.sums(block, replace(rows, labels=rows.labels[span], copies=copies), factors, team)
        return total

    def mean(self, total: int) -> float:
        """Mean loss from the sum over all members."""
        return total * 2.0**-self.bits / self._n_all
