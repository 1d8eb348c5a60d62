"""The collective's in-memory twin: the members are threads of one process.

One barrier an operation: a member copies its part into its slot, waits for the others, then reads all slots.
Slots alternate between two sets. A member can write to a set again only two operations later, and the barrier
between them is passed only after everybody has read it.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Integers
from boost_core.errors import CollectiveError, DeadlinePassed, MemberLost
from workers.messages import Kind, Place, check_place, job_digest
from workers.wire import wire_bytes

Result = TypeVar("Result")


@dataclass(frozen=True)
class Slot:
    """One member's part in an operation."""

    place: Place
    kind: Kind
    array: NDArray[Any]


class ThreadGroup:
    """A gang of threads. `collective(rank)` is the end of one member.

    A wait of more than `deadline_seconds` breaks the group for all members, as `abort` does.
    """

    def __init__(self, size: int, deadline_seconds: float = 30.0) -> None:
        if size < 1:
            raise ValueError(f"a group has at least one member, got size {size}")
        self.size = size
        self.deadline_seconds = deadline_seconds
        self._barrier = threading.Barrier(size)
        self._slots: list[list[Slot | None]] = [[None] * size, [None] * size]
        self._ended = ""

    def collective(self, rank: int) -> "ThreadCollective":
        """The end of member `rank`, to be used by one thread."""
        if not 0 <= rank < self.size:
            raise ValueError(f"a group of {self.size} has no member {rank}")
        return ThreadCollective(self, rank)

    def abort(self, reason: str = "a member of the group is gone") -> None:
        """Break the group: every member that waits, or will wait, gets MemberLost with the reason."""
        self._ended = self._ended or reason
        self._barrier.abort()

    def run(self, member: Callable[["ThreadCollective"], Result]) -> list[Result]:
        """Run a function as every member, each in its own thread; the results by rank.

        Errors: the first member's own exception. What the others then raise because of it is left out.
        """

        def guarded(rank: int) -> Result:
            try:
                return member(self.collective(rank))
            except BaseException as error:
                self.abort(f"member {rank} stopped: {error!r}")
                raise

        with ThreadPoolExecutor(self.size) as pool:
            futures = [pool.submit(guarded, rank) for rank in range(self.size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=lambda error: (isinstance(error, CollectiveError), isinstance(error, MemberLost)))
        return [future.result() for future in futures]

    def exchange(self, rank: int, step: int, slot: Slot) -> list[Slot]:
        """Put in one member's slot and return all members' once everybody has called it."""
        slots = self._slots[step % 2]
        slots[rank] = slot
        try:
            self._barrier.wait(self.deadline_seconds)
        except threading.BrokenBarrierError:
            self._explain(step, slot)
        filled = [other for other in slots if other is not None]
        for number, other in enumerate(filled):
            check_place(slot.place, other.place, f"member {number}")
            if other.kind != slot.kind:
                raise CollectiveError(
                    f"member {number} called {other.kind.name.lower()} at {other.place} where member {rank} "
                    f"called {slot.kind.name.lower()}: the members no longer run the same program"
                )
        return filled

    def _explain(self, step: int, slot: Slot) -> None:
        """Errors: MemberLost if the group was aborted, else DeadlinePassed."""
        if self._ended:
            raise MemberLost(self._ended) from None
        late = [number for number, other in enumerate(self._slots[step % 2]) if not arrived(other, slot)]
        names = ", ".join(f"member {number}" for number in late) or "the others"
        raise DeadlinePassed(f"waited {self.deadline_seconds:g} s for {names} at {slot.place}") from None


def arrived(other: Slot | None, slot: Slot) -> bool:
    """Whether a slot was filled for the same operation."""
    return other is not None and other.place == slot.place


class ThreadCollective:
    """One member's end of a ThreadGroup. Implements boost_core.collective.Collective."""

    def __init__(self, group: ThreadGroup, rank: int) -> None:
        self.rank = rank
        self.size = group.size
        self.bytes_sent = 0
        self._group = group
        self._place = Place(job_digest("threads"), 0, 0, 0)
        self._steps = 0

    def begin_round(self, number: int) -> None:
        self._place = self._place._replace(round=number, step=0)

    def sum(self, values: Integers) -> Integers:
        return self._all_reduce(Kind.SUM, np.add, values)

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._all_reduce(Kind.MAX, np.maximum, values)

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        used = histograms[:, :, :n_used]
        if self.size == 1:
            return used
        parts = self._exchange(Kind.REDUCE_SCATTER, used)
        slices = [used[:, bounds[rank] : bounds[rank + 1]] for rank in range(self.size) if rank != self.rank]
        self.bytes_sent += sum(map(wire_bytes, slices))
        start, stop = bounds[self.rank], bounds[self.rank + 1]
        return np.ascontiguousarray(combine(np.add, [part[:, start:stop] for part in parts]))

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        if self.size == 1:
            return [values]
        self.bytes_sent += values.nbytes * (self.size - 1)
        return [part.copy() for part in self._exchange(Kind.ALL_GATHER, values)]

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if len(parts) != self.size:
            raise ValueError(f"one array for each of {self.size} members is wanted, got {len(parts)}")
        self.bytes_sent += sum(part.nbytes for rank, part in enumerate(parts) if rank != self.rank)
        ends = [np.cumsum(part) for part in self._exchange(Kind.ALL_GATHER, np.array([len(part) for part in parts]))]
        whole = self._exchange(Kind.ALL_TO_ALL, np.concatenate(parts))
        return [np.split(each, cuts[:-1])[self.rank].copy() for each, cuts in zip(whole, ends, strict=True)]

    def barrier(self) -> None:
        self._exchange(Kind.BARRIER, np.empty(0, np.int64))

    def _all_reduce(self, kind: Kind, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        if self.size == 1:
            return values
        self.bytes_sent += wire_bytes(values) * (self.size - 1)
        return combine(function, self._exchange(kind, values))

    def _exchange(self, kind: Kind, array: NDArray[Any]) -> list[NDArray[Any]]:
        """All members' arrays. The own one is copied, for its owner may change it when it goes on."""
        slot = Slot(self._place, kind, array.copy(order="C"))
        slots = self._group.exchange(self.rank, self._steps, slot)
        self._steps += 1
        self._place = self._place._replace(step=self._place.step + 1)
        return [other.array for other in slots]


def combine(function: np.ufunc, parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Elementwise over members; a new array. Errors: CollectiveError if the shapes differ."""
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise CollectiveError(f"members' arrays must have one shape, got {sorted(shapes)}")
    result = parts[0].copy()
    for part in parts[1:]:
        function(result, part, out=result)
    return result
