"""A fitted weak learner: one tree, or several that speak for a score column each."""

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.tree import Tree

Integers = NDArray[np.int64]
ALL_COLUMNS = -1


class Speech(enum.StrEnum):
    """What a leaf's payload means, times the tree's multiplier in score units."""

    VOTES = "votes"  # one number a score column, +1 or -1: each column gets it times the multiplier
    VALUES = "values"  # the same with any integers
    LABEL = "label"  # the index of the one score column that gets the multiplier


class Part(NamedTuple):
    """One tree; column: the only score column it speaks for, or ALL_COLUMNS. With a column, payload is [leaves, 1]."""

    tree: Tree
    column: int = ALL_COLUMNS


class Fitted(NamedTuple):
    """A round's weak learner."""

    parts: tuple[Part, ...]
    speech: Speech

    @property
    def values(self) -> Integers:
        """Sum of gains of each part over all members."""
        return np.array([part.tree.value for part in self.parts], np.int64)

    @property
    def value(self) -> int:
        """Sum of gains over all members."""
        return sum(part.tree.value for part in self.parts)

    @property
    def n_leaves(self) -> int:
        """Leaves of all parts."""
        return sum(int(part.tree.payload.shape[0]) for part in self.parts)

    def without_rows(self) -> "Fitted":
        """What a model keeps: the same without the leaf of every row."""
        return Fitted(tuple(Part(part.tree.without_rows(), part.column) for part in self.parts), self.speech)


def one_tree(tree: Tree, speech: Speech) -> Fitted:
    """A weak learner of a single tree that speaks for all columns."""
    return Fitted((Part(tree),), speech)
