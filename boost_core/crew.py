"""Threads of one kernel that share its blocks of work: a leader publishes them, whoever is free claims the next one.

    leader    publish -> claim, do, finish ... -> await_all -> publish -> ... -> dismiss
    helper                claim, do, finish ...               claim ...         -> leaves

How helpers come into the kernel, and that nobody is inside any more when it ends: posts.py. The leader waits for blocks
that a helper has claimed, and at the end for who is still inside, never for a helper that has not come: one that gets
no processor costs nothing, where a barrier would wait for it.

Every thread begins with blocks of its own (first_of) and takes others' only when these are done: what a block is about
then stays in one processor's caches. A block that changed threads at every publication had to be fetched from the other
processor, which took half as long as its sums.

The array: PUBLICATION counts them, and from CLAIMS on stands for every block the last publication it was claimed in. A
claim sets it to the publication that it was made for, so nobody can claim a block of one that is over; a publication
stays as it is until all its blocks are finished, so what it describes may be read without further care.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.intrinsics import exchange, fetch_add, load_shared, pause, yield_processor
from boost_core.jit import kernel, step
from boost_core.kernel_times import KERNELS, read_clock
from boost_core.native_calls import LEADER, Room, call_address, replace_if, task_at
from boost_core.objective import implementation
from boost_core.posts import PATIENCE, invite, n_threads, withdraw

PUBLICATION, FINISHED, DISMISSED, CLAIMS = 0, 8, 16, 24  # a cache line apart
NOTHING = -1
ALL_PARTS = -1  # in place of a block's number
THREAD = 1 << 32  # of a number, what is more than that of a block

Integers = NDArray[np.int64]


def new_crew(most_blocks: int) -> Integers:
    """A crew without work, for so many blocks at most."""
    crew: Integers = aligned_zeros((CLAIMS + most_blocks,), np.int64)
    return crew


@step
def gather(crew):  # type: ignore[no-untyped-def]
    """A crew that nobody is in any more may work again, also on another number of blocks; helpers may come at once, and
    find nothing before the first publication."""
    for claimed in range(CLAIMS, crew.shape[0]):
        crew[claimed] = crew[PUBLICATION]
    exchange(crew, DISMISSED, 0)


@step
def publish(crew):  # type: ignore[no-untyped-def]
    """Offer all blocks once more: their number changes only while nobody is inside, and what they are about must be
    written before."""
    exchange(crew, FINISHED, 0)
    fetch_add(crew, PUBLICATION, 1)


@step
def first_of(thread, n_threads, n_blocks):  # type: ignore[no-untyped-def]
    """The block that a thread begins with; thread 0 leads."""
    return thread * n_blocks // n_threads


@step
def claim(crew, n_blocks, first):  # type: ignore[no-untyped-def]
    """The number of a block that is now the caller's, looked for from `first` on, or NOTHING."""
    publication = load_shared(crew, PUBLICATION)
    for step_ in range(n_blocks):
        block = first + step_
        block -= n_blocks if block >= n_blocks else 0
        before = load_shared(crew, CLAIMS + block)
        if before < publication and replace_if(crew, CLAIMS + block, before, publication):
            return block
    return NOTHING


@step
def finish(crew):  # type: ignore[no-untyped-def]
    """A claimed block is done."""
    fetch_add(crew, FINISHED, 1)


@step
def await_all(crew, n_blocks):  # type: ignore[no-untyped-def]
    """Return once all blocks are done."""
    spins = 0
    while load_shared(crew, FINISHED) < n_blocks:
        spins += 1
        pause()
        if spins > PATIENCE:
            yield_processor()


@step
def dismiss(crew):  # type: ignore[no-untyped-def]
    """No more work will be published."""
    fetch_add(crew, DISMISSED, 1)


@step
def dismissed(crew):  # type: ignore[no-untyped-def]
    """Whether a helper may leave."""
    return load_shared(crew, DISMISSED) > 0


def do_part(task: Any, *arguments: Any) -> Any:
    """(block, thread, start, stop): a block of what a task does; thread: whose room it may use. A task's type is a
    NamedTuple of what it needs, for which a part is implemented (objective.implements)."""
    return implementation(do_part, type(task))(task, *arguments)


def join_parts(task: Any) -> None:
    """Bring together what the parts have left, once all are done; implemented like do_part, for every task."""
    implementation(join_parts, type(task))(task)


@step
def _do_part(context, number, kind):  # type: ignore[no-untyped-def]
    """A block of a task, of thread * THREAD + block, or ALL_PARTS: join them. At the context: (edges, task)."""
    edges, task = task_at(context, kind)
    if number == ALL_PARTS:
        join_parts(task)
    else:
        block = number & (THREAD - 1)
        do_part(task, block, number // THREAD, edges[block], edges[block + 1])


@step
def _do_blocks(context, helper, kind):  # type: ignore[no-untyped-def]
    """Do blocks of a task while there are any; helper: its number, or LEADER. At the context: (crew, threads, edges,
    what calls _do_part)."""
    crew, n_threads, edges, part = task_at(context, kind)
    n_blocks, thread = edges.shape[0] - 1, helper + 1
    first = first_of(thread, n_threads, n_blocks)
    block = claim(crew, n_blocks, first)
    while block != NOTHING:
        call_address(part[0], part[1], thread * THREAD + block)
        finish(crew)
        block = claim(crew, n_blocks, first)


@kernel
def share_out(crew, posts, n_blocks, part, blocks, times):  # type: ignore[no-untyped-def]
    """Do a task's blocks, with whoever waits at the posts; part, blocks: calls (Sharing); times: IN/OUT
    (kernel_times.py). Who comes late finds no block and touches nothing."""
    began = read_clock(times)
    publish(crew)
    invite(posts, blocks)
    call_address(blocks[0], blocks[1], LEADER)
    await_all(crew, n_blocks)
    withdraw(posts)
    call_address(part[0], part[1], ALL_PARTS)
    times[KERNELS] += read_clock(times) - began


class Sharing:
    """Makes what share_out is given for one task after another: where these are of a type, only what has changed is
    told. It holds none of them: rows' leaves of a round would be kept while those of the next one are found."""

    def __init__(self) -> None:
        self._part, self._blocks = Room(_do_part), Room(_do_blocks)

    def of(self, task: Any, crew: Integers, posts: Integers, edges: Integers, times: Integers) -> tuple[Any, ...]:
        """What share_out is given, for as long as the sharing, the task and edges (int64 [n_blocks + 1]) live."""
        part = self._part.call((edges, task))
        blocks = self._blocks.call((crew, n_threads(posts), edges, part))
        return crew, posts, edges.shape[0] - 1, part, blocks, times
