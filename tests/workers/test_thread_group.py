"""How a gang of threads ends: no member hangs when another dies, is late, or does something else."""

import threading

import numpy as np
import pytest

from boost_core.collective import Collective
from boost_core.errors import CollectiveError, DeadlinePassed, MemberLost, StaleMessage
from tests.workers.meshes import in_threads
from workers.thread_group import ThreadGroup

pytestmark = [pytest.mark.alone, pytest.mark.faults]

ONES = np.ones(3, np.int64)


def test_run_returns_the_members_results_by_rank() -> None:
    def member(collective: Collective) -> int:
        return int(collective.sum(np.array([collective.rank], np.int64))[0]) * 10 + collective.rank

    assert ThreadGroup(3).run(member) == [30, 31, 32]


def test_run_raises_the_members_own_error_and_not_what_followed() -> None:
    def member(collective: Collective) -> None:
        if collective.rank == 1:
            raise ValueError("seven is no colour")
        collective.sum(ONES)

    with pytest.raises(ValueError, match="seven is no colour"):
        ThreadGroup(3, deadline_seconds=60.0).run(member)


def test_abort_frees_members_that_wait_and_those_that_come_later() -> None:
    group = ThreadGroup(2, deadline_seconds=60.0)
    waiting = threading.Event()

    def member(rank: int) -> None:
        if rank == 0:
            waiting.set()
            group.collective(0).sum(ONES)
        else:
            waiting.wait()
            group.abort("the test is over")
            group.collective(1).sum(ONES)

    results = in_threads(member, 2)
    assert [type(result) for result in results] == [MemberLost, MemberLost]
    assert {str(result) for result in results} == {"the test is over"}


def test_a_silent_member_is_named_once_the_deadline_has_passed() -> None:
    group = ThreadGroup(3, deadline_seconds=0.2)
    results = in_threads(lambda rank: None if rank == 1 else group.collective(rank).sum(ONES), 3)
    assert results[1] is None
    assert isinstance(results[0], DeadlinePassed)
    assert "waited 0.2 s for member 1 at" in str(results[0])
    assert isinstance(results[2], DeadlinePassed)


def test_members_in_different_rounds_are_told_so() -> None:
    def member(collective: Collective) -> None:
        collective.begin_round(collective.rank + 4)
        collective.sum(ONES)

    with pytest.raises(StaleMessage, match=r"round [45], step 0.*expected.*round [45], step 0"):
        ThreadGroup(2).run(member)


def test_members_that_do_different_things_are_told_so() -> None:
    def member(collective: Collective) -> None:
        (collective.sum if collective.rank else collective.max)(ONES)

    with pytest.raises(CollectiveError, match=r"called (sum|max) at .* called (sum|max)"):
        ThreadGroup(2).run(member)


def test_members_whose_arrays_differ_are_told_so() -> None:
    def member(collective: Collective) -> None:
        collective.sum(np.zeros(collective.rank + 1, np.int64))

    with pytest.raises(CollectiveError, match=r"one shape, got \[\(1,\), \(2,\)\]"):
        ThreadGroup(2).run(member)


@pytest.mark.parametrize("size", [0, -1])
def test_a_group_has_members(size: int) -> None:
    with pytest.raises(ValueError, match="at least one member"):
        ThreadGroup(size)


def test_a_member_of_another_group_is_refused() -> None:
    with pytest.raises(ValueError, match="a group of 2 has no member 2"):
        ThreadGroup(2).collective(2)
