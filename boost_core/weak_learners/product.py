"""Products of stumps (W5; Kegl & Busa-Fekete 2009): the votes of several stumps, multiplied label by label.

    H(x) = H_1(x) * ... * H_m(x);  fitting H_q with the others fixed is fitting a stump to G * (product of the others)

A product says what a complete tree says whose every level asks one stump's question, so that is what it becomes.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import Integers
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix, channel_sums
from boost_core.growth import Grower
from boost_core.jit import kernel
from boost_core.parameters import Parameter
from boost_core.tree import GAIN_SHIFT, NODE_FIELDS, Tree
from boost_core.weak_learners.votes import Votes

MAX_PASSES = 20  # a pass that changes anything raises an integer, so passes end by themselves: this ends them sooner


@kernel
def _multiply(values, votes, leaf_of_row, start, stop, products):  # type: ignore[no-untyped-def]
    """products (OUT) = values times the votes [n_leaves, c] of each row's leaf; both [n, padded], counts kept."""
    n_channels = votes.shape[1]
    for i in range(start, stop):
        vote = votes[leaf_of_row[i]]
        for c in range(n_channels):
            products[i, c] = values[i, c] * vote[c]
        for c in range(n_channels, values.shape[1]):
            products[i, c] = values[i, c]


class Product:
    """Raises the sum of gains factor by factor, in passes over all of them."""

    kind: ClassVar[str] = "product"
    summary: ClassVar[str] = "product of the votes of several stumps"
    source: ClassVar[str] = "Kegl & Busa-Fekete, Boosting products of base classifiers, ICML 2009"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("factors", "integer", 2, "stumps in a product", minimum=2, maximum=8),
        Parameter("loop", "boolean", True, "refit the factors until none gets better; false: fit each of them once"),
    )

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._grower = grower
        self._n_factors = int(parameters["factors"])
        self._passes = MAX_PASSES if parameters["loop"] else 1

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        """Sums: of each channel and the row count, over all members."""
        fitting = _Fitting(self._grower, gains, sums)
        factors: list[Tree | None] = [None] * self._n_factors  # None: the constant 1
        for _ in range(self._passes):
            improved = [fitting.improve(factors, q) for q in range(self._n_factors)]
            if not any(improved):
                break
        n_rows = self._grower.shard.n_rows
        tree = multiplied([factor for factor in factors if factor], gains.n_channels, fitting.value, n_rows)
        return one_tree(tree, Speech.VOTES)


class _Fitting:
    """A product on its way: the gains times all its factors, and its value."""

    def __init__(self, grower: Grower, gains: GainMatrix, sums: Integers) -> None:
        self._grower, self._gains, self._sums = grower, gains, sums
        self._current = gains.values  # times all factors
        self._threshold = int(grower.collective.sum(np.array([gains.total_mass], np.int64))[0]) >> GAIN_SHIFT
        self.value = int(sums[:-1].sum())

    def improve(self, factors: list[Tree | None], q: int) -> bool:
        """Replace factor q (factors: IN/OUT) by the best stump, if the product gets better by more than rounding."""
        values = self._times(self._current, factors[q])  # a factor times itself is 1: these are the others alone
        others = replace(self._gains, values=values)
        if values is self._gains.values:
            sums = self._sums
        else:
            sums = self._grower.collective.sum(channel_sums(others, self._grower.team))
        stump = self._grower.grow(Votes(free=False), others, sums, 2, others.n_channels)
        if stump.value - self.value <= self._threshold:
            return False
        factors[q], self.value = stump, stump.value
        self._current = self._times(values, stump)
        return True

    def _times(self, values: NDArray[np.signedinteger], factor: Tree | None) -> NDArray[np.signedinteger]:
        if factor is None:
            return values
        products, n_rows = np.empty_like(values), values.shape[0]
        votes, leaves = factor.payload, factor.leaf_of_row
        self._grower.team.over(n_rows, values.size, lambda a, b: _multiply(values, votes, leaves, a, b, products))
        return products


def multiplied(factors: list[Tree], n_channels: int, value: int, n_rows: int) -> Tree:
    """The product of stumps as a complete tree, a level a stump; constants take no level.

    Leaf b of d levels is reached by the bits of b, the first level's first: 0 left, 1 right.
    """
    levels = [factor for factor in factors if factor.nodes.shape[0] > 0]
    depth = len(levels)
    nodes = np.zeros((2**depth - 1, NODE_FIELDS), np.int64)
    payload = np.ones((2**depth, n_channels), np.int32)
    leaf_of_row = np.zeros(n_rows, np.int32)
    for level, factor in enumerate(levels):
        first, width = 2**level - 1, 2**level
        places = np.arange(width)
        children = np.stack([2 * places, 2 * places + 1], axis=1)
        nodes[first : first + width] = factor.nodes[0]
        nodes[first : first + width, 4:] = ~children if level == depth - 1 else 2 * width - 1 + children
        payload *= factor.payload[(np.arange(2**depth) >> (depth - 1 - level)) & 1]
        leaf_of_row = 2 * leaf_of_row + factor.leaf_of_row
    for factor in factors:
        if factor.nodes.shape[0] == 0:
            payload *= factor.payload[0]
    return Tree(nodes, payload, value, leaf_of_row)
