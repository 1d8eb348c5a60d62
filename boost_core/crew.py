"""Threads of one kernel that share its blocks of work: a leader publishes them, whoever is free claims the next one.

    leader    publish -> claim, do, finish ... -> await_all -> publish -> ... -> dismiss
    helper                claim, do, finish ...               claim ...         -> leaves

How helpers come into the kernel, and that nobody is inside any more when it ends: posts.py. The leader waits only for
blocks that a helper has claimed, never for a helper as such: on a busy machine a helper that does not get a processor
costs nothing, where a barrier would wait for it.

The array: CLAIM holds (publication << 32) + next block, so that a claim names what it belongs to; a publication stays
as it is until all its blocks are finished, so what it describes may be read without further care.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.intrinsics import exchange, fetch_add, load_shared, yield_processor
from boost_core.jit import kernel, step
from boost_core.kernel_times import KERNELS, read_clock
from boost_core.native_calls import borrowed, call_of
from boost_core.objective import implementation
from boost_core.posts import PATIENCE, invite, withdraw

CLAIM, FINISHED, DISMISSED = 0, 8, 16  # a cache line apart
BLOCK_MASK = (1 << 32) - 1
NOTHING = -1


def new_crew(n_blocks: int = 0) -> NDArray[np.int64]:
    """A crew without work: all blocks of the publication before the first count as claimed."""
    crew: NDArray[np.int64] = aligned_zeros((24,), np.int64)
    crew[CLAIM] = n_blocks
    return crew


@kernel
def gather(crew):  # type: ignore[no-untyped-def]
    """A crew that nobody is in any more may work again, also on another number of blocks. Before the first publication
    nobody may look for blocks."""
    exchange(crew, DISMISSED, 0)


@kernel
def publish(crew):  # type: ignore[no-untyped-def]
    """Offer all blocks once more: their number changes only while nobody is inside, and what they are about must be
    written before."""
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


def do_part(task: Any, *arguments: Any) -> Any:
    """(block, start, stop): a block of what a task does. A task's type is a NamedTuple of what it needs, for which a
    part is implemented (objective.implements)."""
    return implementation(do_part, type(task))(task, *arguments)


@step
def _do_blocks(crew, edges, task):  # type: ignore[no-untyped-def]
    """Do blocks of a task while there are any."""
    n_blocks = edges.shape[0] - 1
    block = claim(crew, n_blocks)
    while block != NOTHING:
        do_part(task, block, edges[block], edges[block + 1])
        finish(crew)
        block = claim(crew, n_blocks)


@kernel
def share_out(crew, posts, edges, task, times):  # type: ignore[no-untyped-def]
    """Do a task's blocks, with whoever waits at the posts; edges: int64 [n_blocks + 1]; times: IN/OUT
    (kernel_times.py). Who comes late finds no block and touches nothing."""
    task = borrowed(task)
    began = read_clock(times)
    n_blocks = edges.shape[0] - 1
    publish(crew)
    call = call_of(_do_blocks, (crew, edges, task))
    block = claim(crew, n_blocks)
    while block != NOTHING:
        invite(posts, call)
        do_part(task, block, edges[block], edges[block + 1])
        finish(crew)
        block = claim(crew, n_blocks)
    await_all(crew, n_blocks)
    withdraw(posts)
    times[KERNELS] += read_clock(times) - began
