"""Calls by an address: compiled code finds the task that Python has put into a room, whatever it is made of."""

import gc
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core.jit import JIT_DISABLED, step
from boost_core.native_calls import Room, make_call, task_at

compiled = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


class Lot(NamedTuple):
    """Of every kind that a task may be made of; small numbers leave gaps, and nested ones gaps at their ends."""

    flag: bool
    wide: float
    small: np.int8
    pair: tuple[int, bool]
    flags: tuple[bool, bool, bool]
    narrow: np.int32
    nothing: tuple[()]
    codes: NDArray[np.uint8]
    half: np.float32
    deep: tuple[tuple[np.uint8, tuple[np.int16]], int]
    seen: NDArray[np.float64]


@step
def _note(context, number, kind):  # type: ignore[no-untyped-def]
    lot = task_at(context, kind)
    seen = lot.seen
    seen[0], seen[1], seen[2], seen[3], seen[4] = lot.flag, lot.wide, lot.small, lot.pair[0], lot.pair[1]
    seen[5], seen[6], seen[7], seen[8], seen[9] = lot.flags[0], lot.flags[1], lot.flags[2], lot.narrow, lot.half
    seen[10], seen[11], seen[12] = lot.deep[0][0], lot.deep[0][1][0], lot.deep[1]
    seen[13], seen[14] = lot.codes[1, 2], lot.codes.shape[0] * 100 + lot.codes.shape[1]
    seen[15] = number


@step
def _add(context, number, kind):  # type: ignore[no-untyped-def]
    numbers, factor = task_at(context, kind)
    for i in range(numbers.shape[0]):
        numbers[i] += number * factor


def a_lot(seen: NDArray[np.float64], codes: NDArray[np.uint8]) -> Lot:
    return Lot(
        flag=True,
        wide=-2.5,
        small=np.int8(-7),
        pair=(1 << 40, True),
        flags=(False, True, False),
        narrow=np.int32(-123456),
        nothing=(),
        codes=codes,
        half=np.float32(0.75),
        deep=((np.uint8(200), (np.int16(-300),)), -9),
        seen=seen,
    )


def test_a_task_arrives_as_it_was_given():
    seen, codes = np.zeros(16), np.arange(12, dtype=np.uint8).reshape(3, 4)
    room, lot = Room(_note), a_lot(seen, codes)
    make_call(*room.call(lot), -5)
    assert seen.tolist() == [1, -2.5, -7, 1 << 40, 1, 0, 1, 0, -123456, 0.75, 200, -300, -9, 6, 304, -5]
    part = np.ascontiguousarray(codes[:2, 1:])
    later = lot._replace(codes=part, flag=False, wide=4.0, half=np.float32(1.5), flags=(True, True, True))
    make_call(*room.call(later), 3)
    assert seen.tolist() == [0, 4.0, -7, 1 << 40, 1, 1, 1, 1, -123456, 1.5, 200, -300, -9, 7, 203, 3]


def test_tasks_of_other_types_are_other_calls():
    room, whole, real = Room(_add), np.zeros(3, np.int64), np.zeros(2)
    task: tuple[Any, ...]
    for task in ((whole, 2), (real, 0.5), (whole, 3), (real, 0.25)):
        make_call(*room.call(task), 4)
    assert whole.tolist() == [20, 20, 20]
    assert real.tolist() == [3.0, 3.0]


@compiled
def test_only_a_task_of_another_type_has_another_address():
    room, numbers = Room(_add), np.zeros(3, np.int64)
    first = room.call((numbers, 2))
    assert room.call((np.zeros(5, np.int64), 7)) == first
    assert room.call((numbers.astype(np.int32), 2))[0] != first[0]


@compiled
def test_a_room_holds_no_arrays():
    room, numbers = Room(_add), np.zeros(3, np.int64)
    gone = weakref.ref(numbers)
    make_call(*room.call((numbers, 1)), 1)
    del numbers
    gc.collect()
    assert gone() is None
    others = np.zeros(3, np.int64)  # which may lie where those did
    make_call(*room.call((others, 1)), 1)
    assert others.tolist() == [1, 1, 1]


def test_any_thread_may_call():
    room, numbers = Room(_add), np.zeros(1, np.int64)
    task = (numbers, 1)
    call = room.call(task)
    threads = [threading.Thread(target=make_call, args=(*call, 1)) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert numbers.tolist() == [2]


@compiled
def test_what_cannot_lie_in_a_room_is_refused():
    with pytest.raises(TypeError, match="a task may hold arrays, numbers and tuples of them, not unicode_type"):
        Room(_add).call((np.zeros(1), "1"))
