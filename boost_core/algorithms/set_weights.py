"""Initial weights of AdaBoost.MH on rows of several labels (Schapire & Singer 1999), summing to 1 over all pairs.

    asymmetric   1 / (2 n p) on a row's p labels, 1 / (2 n (K - p)) on the others; 1 / (n K) each where p is 0 or K
    uniform      1 / (n K)
    balanced     every label holds 1 / K, half on the rows that have it and half on the others (all, where none has it)

Rows of one label each have the weights that single-label data have.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Integers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SetWeights:
    """A pair's weight by_size[sign, p] * by_label[sign, label], sign 1 where the row has the label, p labels in all.

    by_size float64 [2, K + 1], by_label float64 [2, K]; grouped: whether by_size is what differs.
    """

    by_size: Floats
    by_label: Floats
    grouped: bool

    def pairs(self, sets: NDArray[np.uint8]) -> Floats:
        """The weight of every pair, float64 [n_rows, K]."""
        sizes = sets.sum(axis=1, dtype=np.int64)
        of_rows = self.by_size[sets, sizes[:, None]]
        return np.asarray(of_rows * np.take_along_axis(self.by_label, sets.astype(np.int64), axis=0))


def set_weights(kind: str, mass: Integers, all_rows: int) -> SetWeights:
    """mass: rows with each label, int64 [K]; all_rows: rows; both over all members, a row counted as its copies."""
    n_labels, n = mass.shape[0], all_rows
    sizes, labels = np.ones((2, n_labels + 1)), np.ones((2, n_labels))
    if kind == "balanced":
        for label, own in enumerate(mass.tolist()):
            half = 2.0 if 0 < own < n else 1.0
            labels[1, label] = 1.0 / (half * n_labels * max(own, 1))
            labels[0, label] = 1.0 / (half * n_labels * max(n - own, 1))
        return SetWeights(sizes, labels, False)
    sizes[:] = 1.0 / (n * n_labels)
    if kind == "asymmetric":
        for p in range(1, n_labels):
            sizes[1, p] = 1.0 / (2.0 * n * p)
            sizes[0, p] = 1.0 / (2.0 * n * (n_labels - p))
    return SetWeights(sizes, labels, True)


def hamming_factor(weights: SetWeights, sizes: NDArray[np.bool_], mass: Integers, all_rows: int) -> float:
    """The Hamming error over the weighted one, at most: a pair's share 1 / (n K) over its weight.

    sizes: bool [K + 1], which numbers of labels some row has.
    """
    n_labels = mass.shape[0]
    there = np.stack([sizes & (np.arange(n_labels + 1) < n_labels), sizes & (np.arange(n_labels + 1) > 0)])
    labels = np.stack([mass < all_rows, mass > 0])
    least = min(
        float(weights.by_size[sign][there[sign]].min()) * float(weights.by_label[sign][labels[sign]].min())
        for sign in range(2)
        if there[sign].any() and labels[sign].any()
    )
    return 1.0 / (float(all_rows * n_labels) * least)
