"""A member's threads: parts in order, errors handed on, nothing waited for that has not begun."""

import threading

import pytest

from boost_core import team
from boost_core.team import Team


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "INLINE_WORK", -1)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 3, 17])
def test_parts_cover_the_range_in_order(eager: None, threads: int, size: int):
    with Team(threads) as crew:
        parts = crew.over(size, 1, lambda start, stop: list(range(start, stop)))
    assert [number for part in parts for number in part] == list(range(size))


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
