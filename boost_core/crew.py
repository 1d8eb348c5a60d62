"""Threads of one kernel that share its blocks of work: a leader publishes them, whoever is free claims the next one.

    leader    publish -> claim, do, finish ... -> await_all -> publish -> ... -> dismiss
    helper                claim, do, finish ...               claim ...         -> leaves

The leader waits only for blocks that a helper has claimed, never for a helper as such: on a busy machine a helper that
does not get a processor costs nothing, where a barrier would wait for it.

The array: CLAIM holds (publication << 32) + next block, so that a claim names what it belongs to; a publication stays
as it is until all its blocks are finished, so what it describes may be read without further care.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.intrinsics import exchange, fetch_add, load_shared, yield_processor
from boost_core.jit import kernel

CLAIM, FINISHED, DISMISSED = 0, 8, 16  # a cache line apart
BLOCK_MASK = (1 << 32) - 1
NOTHING = -1
# Looks (about 1 ns each) before a waiting thread offers its processor to others: the one it waits for may need it.
PATIENCE = 2_000


def new_crew(n_blocks: int) -> NDArray[np.int64]:
    """A crew without work: all blocks of the publication before the first count as claimed."""
    crew = np.zeros(24, np.int64)
    crew[CLAIM] = n_blocks
    return crew


@kernel
def publish(crew):  # type: ignore[no-untyped-def]
    """Offer all blocks once more (their number never changes). What they are about must be written before."""
    exchange(crew, FINISHED, 0)
    # A helper that looked at the publication before may still add its claim: before the exchange it comes to nothing
    # and is wiped out, after it it is a claim like any other.
    exchange(crew, CLAIM, ((load_shared(crew, CLAIM) >> 32) + 1) << 32)


@kernel
def claim(crew, n_blocks):  # type: ignore[no-untyped-def]
    """The number of a block that is now the caller's, or NOTHING."""
    if load_shared(crew, CLAIM) & BLOCK_MASK >= n_blocks:
        return NOTHING
    block = fetch_add(crew, CLAIM, 1) & BLOCK_MASK
    return block if block < n_blocks else NOTHING


@kernel
def finish(crew):  # type: ignore[no-untyped-def]
    """A claimed block is done."""
    fetch_add(crew, FINISHED, 1)


@kernel
def await_all(crew, n_blocks):  # type: ignore[no-untyped-def]
    """Return once all blocks are done."""
    spins = 0
    while load_shared(crew, FINISHED) < n_blocks:
        spins += 1
        if spins > PATIENCE:
            yield_processor()


@kernel
def dismiss(crew):  # type: ignore[no-untyped-def]
    """No more work will be published."""
    fetch_add(crew, DISMISSED, 1)


@kernel
def dismissed(crew):  # type: ignore[no-untyped-def]
    """Whether a helper may leave."""
    return load_shared(crew, DISMISSED) > 0
