"""A member's threads: parts in order, errors handed on, nothing waited for that has not begun."""

import os
import threading
import weakref
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core import placement, team
from boost_core.crew import do_part, join_parts
from boost_core.jit import JIT_DISABLED
from boost_core.objective import implements
from boost_core.team import Rehearsal, Team

pytestmark = pytest.mark.usefixtures("kernels_of_tests_are_not_kept")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "INLINE_WORK", -1)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 3, 17])
def test_parts_cover_the_range_in_order(eager: None, threads: int, size: int):
    with Team(threads) as crew:
        parts = crew.over(size, 1, lambda start, stop: list(range(start, stop)))
    assert [number for part in parts for number in part] == list(range(size))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 17])
def test_each_task_is_run_once(eager: None, threads: int, size: int):
    run: list[int] = []
    with Team(threads) as crew:
        crew.each([partial(run.append, number) for number in range(size)], 1)
    assert sorted(run) == list(range(size))


def test_small_work_stays_with_the_caller():
    with Team(3) as crew:
        [part] = crew.over(10, team.INLINE_WORK, lambda start, stop: (start, stop, threading.current_thread()))
    assert part == (0, 10, threading.current_thread())


def test_an_error_in_any_part_reaches_the_caller_and_the_team_goes_on(eager: None):
    def fail(start: int, stop: int) -> int:
        if start > 0:
            raise ZeroDivisionError(f"part from {start}")
        return stop

    with Team(2) as crew:
        with pytest.raises(ZeroDivisionError, match="part from"):
            crew.over(8, 1, fail)
        assert sum(crew.over(8, 1, lambda start, stop: stop - start)) == 8


def test_others_join_work_that_lasts():
    """The caller's part ends when another thread has begun: both were at it."""
    begun = threading.Event()

    def work(rank: int) -> None:
        if rank == 0:
            assert begun.wait(30)
        else:
            begun.set()

    with Team(2) as crew:
        crew.together(2, work)
    assert begun.is_set()


def test_the_caller_waits_for_those_inside():
    inside, left = threading.Event(), threading.Event()
    ended: list[int] = []

    def work(rank: int) -> None:
        if rank == 0:
            assert inside.wait(30)
            left.set()
        else:
            inside.set()
            assert left.wait(30)
            ended.append(rank)

    with Team(2) as crew:
        crew.together(2, work)
        assert ended == [1]


class Square(NamedTuple):
    """Squares of the numbers of a range, which block each was in, and how often all were done."""

    squares: NDArray[np.int64]
    blocks: NDArray[np.int64]
    calls: NDArray[np.int64]


@implements(do_part, Square)
def _square(task, block, thread, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        task.squares[i] += i * i
        task.blocks[i] = block


@implements(join_parts, Square)
def _count(task):  # type: ignore[no-untyped-def]
    task.calls[0] += 1


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 3, 1000])
def test_a_task_is_done_once_everywhere(threads: int, size: int):
    """Whoever is late for one call is not waited for, and must not touch what the next one does."""
    with Team(threads) as crew:
        for work in (0, team.SHARED_WORK + 1):
            task = Square(np.zeros(size, np.int64), np.full(size, -1, np.int64), np.zeros(1, np.int64))
            for _ in range(20):
                crew.share(task, size, work)
            assert task.calls.tolist() == [20]
            assert task.squares.tolist() == [20 * i * i for i in range(size)]
            assert len(set(task.blocks.tolist())) == (min(crew.blocks(size, work), size))


@pytest.mark.skipif(JIT_DISABLED, reason="a call without compilation holds what it is given")
def test_what_was_shared_is_not_held():
    """A number for each row of a round, while those of the next one are found."""
    with Team(1) as crew:
        squares = np.zeros(9, np.int64)
        gone = weakref.ref(squares)
        crew.share(Square(squares, np.zeros(9, np.int64), np.zeros(1, np.int64)), 9, 0)
        del squares
        assert gone() is None


def test_a_rehearsal_does_both_parts():
    ranks: list[int] = []
    with Rehearsal() as crew:
        crew.together(2, ranks.append)
        assert crew.useful(0, 10**9) == 2
    assert ranks == [0, 1]


def test_threads_are_kept_off_the_processor_of_the_caller(monkeypatch: pytest.MonkeyPatch):
    moves: list[tuple[int, set[int]]] = []
    here = [0]
    helper = threading.Thread(target=(done := threading.Event()).wait)
    helper.start()
    monkeypatch.setattr(placement, "_current", lambda: here[0])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, where: moves.append((thread, where)), raising=False)
    kept = placement.Placement([helper])
    for here[0] in (0, 0, 2, 2):
        kept.keep_apart()
    done.set()
    helper.join()
    assert [where for _, where in moves] == [{1, 2}, {0, 1}]
    assert {thread for thread, _ in moves} == {helper.native_id}


def test_a_processor_that_was_taken_away_fails_no_training(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    def refuse(thread: int, where: set[int]) -> None:
        asked.append(thread)
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(placement, "_current", lambda: len(asked))  # the caller moves all the time
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    with Team(2) as crew:
        ranks: list[int] = []
        for _ in range(3):
            crew.together(2, lambda rank: ranks.append(rank) if rank == 0 else None)
    assert ranks == [0, 0, 0]
    assert len(asked) >= 2
