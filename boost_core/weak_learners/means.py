"""The objective of mean leaves (W9), shared by regression_stump and regression_tree: least squares to one channel.

A leaf of n rows with sum S of gains says S / n, which takes S**2 / n off the squared error. That is counted in units of
the mean absolute gain of all rows, so that it compares with sums of gains. While a tree grows, its leaves' payloads are
S and n themselves, each in two words of 31 bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.jit import inner, step
from boost_core.model import SCORE_UNITS
from boost_core.objective import cut_value, implements, set_leaves, set_root
from boost_core.tree import Tree
from boost_core.weak_learners.limits import Limits

WORD = 31
N_WORDS = 4


class Means(NamedTuple):
    """A mean a leaf; unit: mean absolute gain of all rows."""

    unit: float


@inner
def _worth(total, n_rows, unit):  # type: ignore[no-untyped-def]
    mean = np.float64(total) / np.float64(n_rows)
    return np.int64(np.rint(np.float64(total) * (mean / unit)))


@step
def _set_leaf(objective, sums, payload):  # type: ignore[no-untyped-def]
    """The worth of a leaf; payload: OUT, the words of S and of n."""
    for place in range(2):
        payload[2 * place] = np.int32(sums[place] >> WORD)
        payload[2 * place + 1] = np.int32(sums[place] & ((1 << WORD) - 1))
    return _worth(sums[0], sums[1], objective.unit)


@implements(cut_value, Means)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    below = _worth(left[0], left[1], objective.unit)
    return below + _worth(sums[0] - left[0], sums[1] - left[1], objective.unit)


@implements(set_root, Means)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    return _set_leaf(objective, sums, payload)


@implements(set_leaves, Means)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_value = _set_leaf(objective, left, left_payload)
    return left_value, _set_leaf(objective, right, right_payload)


def grow_means(grower: Grower, gains: GainMatrix, sums: Integers, limits: Limits) -> Fitted:
    """A tree of means, the largest of them scaled to 1 in score units; its value is the sum of gains times outputs.

    gains: of one channel; sums: of it and the row count, over all members.
    """
    mass = int(grower.collective.sum(np.array([gains.total_mass], np.int64))[0])
    objective = Means(max(mass, 1) / int(sums[-1]))
    tree = grower.grow(objective, gains, sums, limits.max_leaves, N_WORDS, limits.max_depth)
    return one_tree(_scaled(tree), Speech.VALUES)


def _scaled(tree: Tree) -> Tree:
    words = tree.payload.astype(np.int64)
    totals = [int(high << WORD) + int(low) for high, low in words[:, :2]]
    counts = [int(high << WORD) + int(low) for high, low in words[:, 2:]]
    means = [total / count for total, count in zip(totals, counts, strict=True)]
    largest = max(abs(mean) for mean in means)
    outputs = [round(mean / largest * (1 << SCORE_UNITS)) if largest else 0 for mean in means]
    payload = np.array(outputs, np.int32)[:, None]
    return tree._replace(payload=payload, value=means_worth(payload, np.array(totals, np.int64)[:, None]))


def means_worth(payload: NDArray[np.int32], sums: Integers) -> int:
    """The sum of gains times outputs; sums: int64 [n_leaves, 1]."""
    products = (int(total) * int(output) for total, output in zip(sums[:, 0], payload[:, 0], strict=True))
    return sum(products) >> SCORE_UNITS
