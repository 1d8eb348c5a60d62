"""A barrier for the threads of one kernel: they spin for a few microseconds without leaving compiled code."""

import numpy as np
from numpy.typing import NDArray

from boost_core.intrinsics import fetch_add, load_shared, yield_processor
from boost_core.jit import kernel

ARRIVED, GENERATION = 0, 8  # a cache line apart
# Looks (about 1 ns each) before a waiting thread offers its processor to others: the one it waits for may need it.
PATIENCE = 2_000


def new_gate() -> NDArray[np.int64]:
    """A gate that nobody waits at."""
    return np.zeros(16, np.int64)


@kernel
def wait(gate, size):  # type: ignore[no-untyped-def]
    """Return once `size` threads have called it; what each wrote before is seen by all after it."""
    if size == 1:
        return
    generation = load_shared(gate, GENERATION)
    if fetch_add(gate, ARRIVED, 1) == size - 1:
        fetch_add(gate, ARRIVED, -size)
        fetch_add(gate, GENERATION, 1)
    else:
        spins = 0
        while load_shared(gate, GENERATION) == generation:
            spins += 1
            if spins > PATIENCE:
                yield_processor()
