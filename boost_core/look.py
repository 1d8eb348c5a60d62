"""What all members agree on once a round is added: figures of the scores, and what the next round begins with."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Gains

Integers = NDArray[np.int64]


class Seen(NamedTuple):
    """Figures of the current scores over all members."""

    ln_loss: float
    wrong: int
    strictly_wrong: int
    wrong_valid: int
    log_loss: int  # of the validation rows, in units of LogLoss
    stop: bool


class Look(NamedTuple):
    """The current scores' gains and figures."""

    gains: Gains
    totals: Integers  # the algorithm's sums over all members
    sums: Integers  # of each channel and the row count
    seen: Seen
