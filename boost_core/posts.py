"""Posts: where a team's helpers wait, inside compiled code, for a kernel that wants help.

    leader's kernel   invite ------------------ withdraw          one of another kind, later: invite ...
    helper            waiting: makes the call, is back, ... waiting                           makes the call

Between the kernels of a round a helper never enters Python: to leave one kernel for the next by way of the interpreter
took it 60 to 100 us, three times a round of 2.7 ms, as it waits for the interpreter's lock, which the leader holds just
then, and sleeps and wakes meanwhile. A post tells it a native call (native_calls.py), whatever its arguments are.

posts int64 [n_helpers * POST]: of each helper its state, and the call. AWAY: in Python, or asleep; only the leader, in
Python, may then call it back. CALLED: on its way; EXPECTED: it may begin when it arrives. WAITING: it has arrived;
INVITED: it may begin. INSIDE: makes the call, so the leader must not return: a call that finds nothing to do soon ends,
as the leader would wait for a helper that has lost its processor meanwhile. Until the kernel ends (HELD) it waits on.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.intrinsics import exchange, load_shared, pause, yield_processor
from boost_core.jit import kernel, step
from boost_core.native_calls import call_address, replace_if

POST = 16  # entries of a helper: two cache lines, as processors fetch them in pairs
STATE, ADDRESS, CONTEXT, HELD = range(4)
AWAY, CALLED, EXPECTED, WAITING, INVITED, INSIDE = range(6)
# How often a helper looks for an invitation before it goes: 0.6 ms, as a round's kernels are some 0.1 ms apart.
LOOKS, LOOKS_A_YIELD = 20_000, 16
# Looks, some 20 to 50 ns each, before a waiting leader offers its processor to others, and before a helper without work
# leaves.
PATIENCE = 400


def new_posts(n_helpers: int) -> NDArray[np.int64]:
    """Nobody is there."""
    posts: NDArray[np.int64] = aligned_zeros((n_helpers * POST,), np.int64)
    return posts


def n_threads(posts: NDArray[np.int64]) -> int:
    """Helpers, and the leader."""
    return len(posts) // POST + 1


@step
def invite(posts, call):  # type: ignore[no-untyped-def]
    """Ask all who wait or are on their way to make a call (native_calls.call_of), with the helper's number as its last
    argument. Who has been asked is not asked again, unless it has come back."""
    for at in range(0, posts.shape[0], POST):
        exchange(posts, at + HELD, 1)
        state = load_shared(posts, at + STATE)
        if state in (CALLED, WAITING):
            posts[at + ADDRESS], posts[at + CONTEXT] = call
            if not replace_if(posts, at + STATE, CALLED, EXPECTED):  # it may have arrived since
                replace_if(posts, at + STATE, WAITING, INVITED)


@step
def withdraw(posts):  # type: ignore[no-untyped-def]
    """Nobody begins the call any more, and who had begun has ended it: what it refers to may go."""
    for at in range(0, posts.shape[0], POST):
        exchange(posts, at + HELD, 0)
        if not (
            replace_if(posts, at + STATE, EXPECTED, CALLED)  # then it has not arrived, and cannot have begun
            or replace_if(posts, at + STATE, INVITED, WAITING)
        ):
            looks = 0
            while load_shared(posts, at + STATE) == INSIDE:
                looks += 1
                pause()
                if looks > PATIENCE:
                    yield_processor()


@step
def all_near(posts):  # type: ignore[no-untyped-def]
    """Whether nobody is away: who is can only be called back from Python."""
    n_away = 0
    for at in range(0, posts.shape[0], POST):
        n_away += load_shared(posts, at + STATE) == AWAY
    return n_away == 0


@step
def hold(posts):  # type: ignore[no-untyped-def]
    """Let helpers wait on until Team.release, as Python has more to do than usual before the next kernel."""
    for at in range(0, posts.shape[0], POST):
        exchange(posts, at + HELD, 1)


@kernel
def serve(posts, number, bell, heard):  # type: ignore[no-untyped-def]
    """Make the calls that helper `number`, who was called, is invited to, until there is none for a while or it is
    wanted in Python: the bell (int64 [1]) says something else than `heard`."""
    at = number * POST
    while not (replace_if(posts, at + STATE, CALLED, WAITING) or replace_if(posts, at + STATE, EXPECTED, INVITED)):
        pass  # it was invited, or that was taken back, between the two
    looks = 0
    while True:
        if replace_if(posts, at + STATE, INVITED, INSIDE):
            call_address(posts[at + ADDRESS], posts[at + CONTEXT], number)
            exchange(posts, at + STATE, WAITING)
            looks = 0
        wanted = load_shared(bell, 0) != heard
        while not wanted and looks < LOOKS and load_shared(posts, at + STATE) != INVITED:
            looks += 1
            pause()
            if looks % LOOKS_A_YIELD == 0:
                yield_processor()
                wanted = load_shared(bell, 0) != heard
                looks = 0 if load_shared(posts, at + HELD) == 1 else looks
        if (wanted or looks >= LOOKS) and replace_if(posts, at + STATE, WAITING, AWAY):
            return
