"""How long kernels take, by a clock that whoever trains hands in: the engine has none of its own.

    times int64 [N_TIMES]   the clock, then nanoseconds in kernels so far, as the caller's thread saw them: in all, and
                            those of the steps that a kernel call has inside

A kernel that reads the clock itself is timed without what Python does to call it (25 ns a reading). Without a clock
every reading is 0, and so are all times.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.intrinsics import call_clock
from boost_core.jit import inner

ADDRESS, NUMBER, KERNELS, HISTOGRAMS, SEARCH, PARTITION, UPDATE, WEIGHTS = range(8)  # entries of times
N_TIMES = 8  # a cache line


def _stopped() -> int:
    return 0


class KernelClock(NamedTuple):
    """A clock that Python and kernels read. now: nanoseconds. address: of a function like clock_gettime of POSIX, int
    (int, int64 seconds and nanoseconds), which is called with `number` and tells the same; 0: kernels have none."""

    now: Callable[[], int] = _stopped
    address: int = 0
    number: int = 0


NO_CLOCK = KernelClock()


def new_times(clock: KernelClock = NO_CLOCK) -> NDArray[np.int64]:
    """Times of nothing so far."""
    times: NDArray[np.int64] = aligned_zeros((N_TIMES,), np.int64)
    times[ADDRESS], times[NUMBER] = clock.address, clock.number
    return times


@inner
def read_clock(times):  # type: ignore[no-untyped-def]
    """Nanoseconds now, 0 without a clock."""
    return call_clock(times[ADDRESS], times[NUMBER])
