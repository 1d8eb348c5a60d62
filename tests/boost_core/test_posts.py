"""Helpers at their posts: they come when they are invited, go when Python wants them, and nobody is left inside."""

import threading
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core import team
from boost_core.crew import do_part, join_parts
from boost_core.intrinsics import exchange, load_shared
from boost_core.jit import JIT_DISABLED, kernel
from boost_core.objective import implements
from boost_core.posts import AWAY, CALLED, EXPECTED, INVITED, POST, STATE, WAITING, n_threads, new_posts, withdraw
from boost_core.team import Team

compiled = pytest.mark.skipif(JIT_DISABLED, reason="uncompiled kernels have no helpers")
LONG = 20_000_000  # looks, some 20 ms: who waits for so long waits in vain

pytestmark = pytest.mark.usefixtures("kernels_of_tests_are_not_kept")


class Meeting(NamedTuple):
    """Every block waits until all have begun, so that there must be a thread for each; met: whether they came."""

    begun: NDArray[np.int64]
    met: NDArray[np.int64]


@implements(do_part, Meeting)
def _meet(task, block, thread, start, stop):  # type: ignore[no-untyped-def]
    exchange(task.begun, block, 1)
    here = 0
    for _ in range(LONG):
        here = 0
        for other in range(task.begun.shape[0]):
            here += load_shared(task.begun, other)
        if here == task.begun.shape[0]:
            break
    task.met[block] = here == task.begun.shape[0]


@implements(join_parts, Meeting)
def _part(task):  # type: ignore[no-untyped-def]
    for block in range(task.begun.shape[0]):
        task.begun[block] = 0


def meet(crew: Team, threads: int) -> bool:
    """Whether all threads were in a kernel at once."""
    meeting = Meeting(np.zeros(threads, np.int64), np.zeros(threads, np.int64))
    crew.share(meeting, threads, team.SHARED_WORK + 1)
    return bool(meeting.met.all())


@compiled
@pytest.mark.parametrize("threads", [2, 3])
def test_helpers_come_to_kernels(monkeypatch: pytest.MonkeyPatch, threads: int):
    """Not to every one: who has waited for long is away, and is called back for the next one."""
    monkeypatch.setattr(team, "BLOCKS_A_THREAD", 1)
    with Team(threads) as crew:
        met = [meet(crew, threads) for _ in range(20)]
    assert any(met)


@compiled
def test_who_waits_at_a_post_comes_when_python_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(team, "BLOCKS_A_THREAD", 1)
    with Team(2) as crew:
        for _ in range(20):
            meet(crew, 2)
            came = threading.Event()
            crew.together(2, lambda rank, came=came: came.set() if rank else came.wait(30))  # type: ignore[misc]
            assert came.is_set()


@kernel
def take_back(posts):  # type: ignore[no-untyped-def]
    """Withdraw as a kernel does at its end."""
    withdraw(posts)


@pytest.mark.parametrize(
    ("before", "after"), [(EXPECTED, CALLED), (INVITED, WAITING), (WAITING, WAITING), (AWAY, AWAY)]
)
def test_who_has_not_come_is_no_longer_invited(before: int, after: int):
    posts = new_posts(2)
    posts[POST + STATE] = before
    assert n_threads(posts) == 3
    take_back(posts)
    assert posts[POST + STATE] == after
    assert posts[STATE] == AWAY
