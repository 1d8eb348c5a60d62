"""Codewords of the classes: the corners of a regular simplex (Saberian & Vasconcelos 2011, section 3, in closed form).

    rho_j = sqrt(K (K - 1 - j) / ((K - 1) (K - j)))
    Y[k,j] = 0 for k < j,   rho_j for k = j,   -rho_j / (K - 1 - j) for k > j          (j = 0..K - 2)

Rows have length 1 and inner products -1 / (K - 1), columns sum to 0. Two classes have the codewords +1 and -1. A
component tells three kinds of classes apart: those before its own class, that class, and those after it.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def component(j: int, n_classes: int) -> Floats:
    """Y[k,j] of the three kinds of classes k: before j, j itself, after j."""
    own = math.sqrt(n_classes * (n_classes - 1 - j) / ((n_classes - 1) * (n_classes - j)))
    return np.array([0.0, own, -own / (n_classes - 1 - j)])


def kinds(j: int, n_classes: int) -> NDArray[np.int64]:
    """Each class's kind in component j: 0 before, 1 the class j itself, 2 after; int64 [n_classes]."""
    return 1 + np.sign(np.arange(n_classes) - j)


def codewords(n_classes: int) -> Floats:
    """All codewords, float64 [n_classes, n_classes - 1]."""
    return np.stack([component(j, n_classes)[kinds(j, n_classes)] for j in range(n_classes - 1)], axis=1)
