"""Temperature scaling (Guo, Pleiss, Sun & Weinberger 2017): one factor for all probabilities, by validation log loss.

The loss is convex in the factor 1 / T, so its least value on a geometric grid is closed in on from coarse to fine. All
members take part with integer sums, and find the same. T = 1 is on the grid: no calibration makes the loss worse.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math

GRID = 1024  # factors are e**(k / GRID): neighbours differ by a thousandth, which moves the loss by some 1e-7 of it
REACH = 8 * GRID  # |k| at most
STEPS = (1024, 128, 16, 2, 1)
SIDE = 8  # points on either side of the best one so far


def factor_of(place: int) -> float:
    """e**(place / GRID)."""
    return float(ieee_math.exp(place / GRID))


def best_temperature(losses_at: Callable[[NDArray[np.float64]], NDArray[np.int64]]) -> float:
    """T of the least loss; losses_at: int64 [m], the sums over all members at factors 1 / T, float64 [m]."""
    best, known = 0, dict[int, int]()
    for step in STEPS:
        places = [best + step * k for k in range(-SIDE, SIDE + 1)]
        places = [place for place in places if abs(place) <= REACH and place not in known]
        found = losses_at(np.array([factor_of(place) for place in places]))
        known |= {place: int(loss) for place, loss in zip(places, found, strict=True)}
        best = min(known, key=lambda place: (known[place], abs(place), place))  # level ones: the nearest to T = 1
    return factor_of(-best)
