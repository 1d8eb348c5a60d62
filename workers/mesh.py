"""The collective of a gang over plain sockets between every two members.

    direct (small)     every member sends its whole array to every other; each adds up all of them
    in two (large)     member r adds up slice r of all (reduce-scatter), then sends the sums (all-gather)

Measured between two processes on two cores: 80 KB direct 0.05 ms, in two 0.11 ms; 8 MB direct 5.1-5.8 ms, in
two 4.2-5.1 ms. Sending int32 where the values fit gave 3.7-4.4 ms there and lost at every smaller size, so
nothing is converted. Fixed socket buffers of 1 or 4 MB were no faster than the system's growing ones.

Every operation exchanges messages with all other members at once. None waits for a member that itself waits
for a third, so the one named by DeadlinePassed is the silent one.
"""

import itertools
import math
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Integers
from boost_core.errors import DeadlinePassed
from workers.link import CHUNK, Accumulator, Fixed, Incoming, Link, Part, Ragged, as_bytes
from workers.messages import Header, Kind, Place, RunEnded, dtype_code, job_digest

T = TypeVar("T", bound=np.generic)
DIRECT_BYTES = 1 << 18  # see the measurement above: the two ways cross between 80 and 320 KB


@dataclass(frozen=True)
class Deadlines:
    """How long an operation may wait for other members, in seconds.

    round: from round 1 on, when members differ only by their share of the rows and kernels are compiled.
    prepare: in round 0, where members read and bin unequal shares and compile.
    """

    round: float = 30.0
    prepare: float = 600.0


@dataclass(frozen=True)
class Member:
    """Who this member is: the job it trains, in which run, and its rank."""

    job_id: str
    run: int
    rank: int


class Outgoing(NamedTuple):
    """What goes to one member: its length along axis 0, its bytes, and where they are."""

    n_rows: int
    n_bytes: int
    views: list[memoryview]

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Outgoing":
        """A contiguous array as a whole."""
        return cls(array.shape[0], array.nbytes, as_bytes(array))


class MeshCollective:
    """A member's end of the mesh. Implements boost_core.collective.Collective; used by one thread.

    links: one open connection to every other member. After an error nothing works any more: the connections
    are shut, so that the others notice at once.
    """

    def __init__(self, member: Member, links: Sequence[Link], deadlines: Deadlines | None = None) -> None:
        self.rank = member.rank
        self.size = len(links) + 1
        self.bytes_sent = 0
        # Each member begins with the next one, so that not all send to the same member at first.
        following = sorted(links, key=lambda link: (link.rank - member.rank) % self.size)
        self._links = {link.rank: link for link in following}
        if sorted([*self._links, member.rank]) != list(range(self.size)):
            raise ValueError(f"member {member.rank} of {self.size} has links to {sorted(self._links)}")
        self._deadlines = deadlines or Deadlines()
        self._place = Place(job_digest(member.job_id), member.run, 0, 0)
        self._scratch: dict[int, NDArray[np.uint8]] = {}
        self._ended = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin_round(self, number: int) -> None:
        self._place = self._place._replace(round=number, step=0)

    def sum(self, values: Integers) -> Integers:
        return self._all_reduce(Kind.SUM, np.add, values)

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._all_reduce(Kind.MAX, np.maximum, values)

    def reduce_scatter(self, histograms: Integers, bounds: Integers) -> Integers:
        if self.size == 1:
            return histograms
        n_nodes = histograms.shape[0]
        own = histograms[:, bounds[self.rank] : bounds[self.rank + 1], :]
        # With one node the slice is contiguous: the first addition writes the copy.
        sums = np.empty_like(own) if n_nodes == 1 else np.array(own, order="C")
        accumulator = Accumulator(np.add, (own if n_nodes == 1 else sums).reshape(-1), sums.reshape(-1))
        header = self._header(Kind.REDUCE_SCATTER, sums)

        def outgoing(rank: int) -> Outgoing:
            start, stop = bounds[rank], bounds[rank + 1]
            views = [view for node in histograms for view in as_bytes(node[start:stop])]
            return Outgoing(n_nodes, sum(map(len, views)), views)

        self._exchange(header, outgoing, self._parts_of(header, accumulator))
        return sums

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        if self.size == 1:
            return [values]
        array = np.ascontiguousarray(values)
        header = self._header(Kind.ALL_GATHER, array)
        received = {rank: Ragged(header, array.shape[1:], array.dtype) for rank in self._links}
        self._exchange(header, lambda _: Outgoing.of(array), received.__getitem__)
        return [array if rank == self.rank else received[rank].array for rank in range(self.size)]

    def barrier(self) -> None:
        nothing = np.empty(0, np.int64)
        header = self._header(Kind.BARRIER, nothing)
        self._exchange(header, lambda _: Outgoing.of(nothing), lambda _: Fixed(header, nothing))

    def abort(self, reason: str) -> None:
        """End the collective from another thread: who waits in it gets RunEnded with the reason."""
        self._ended = reason
        self._shutdown()

    def close(self) -> None:
        """Close the connections. What was sent still arrives."""
        for link in self._links.values():
            link.close()

    def _all_reduce(self, kind: Kind, combine: np.ufunc, values: NDArray[T]) -> NDArray[T]:
        if self.size == 1:
            return values
        own = np.asarray(values, order="C").reshape(-1)
        out = np.empty_like(own)
        if own.nbytes <= DIRECT_BYTES:
            self._reduce_direct(kind, combine, own, out)
        else:
            self._reduce_in_two(kind, combine, own, out)
        return out.reshape(values.shape)

    def _reduce_direct(self, kind: Kind, combine: np.ufunc, own: NDArray[Any], out: NDArray[Any]) -> None:
        accumulator = Accumulator(combine, own, out)
        header = self._header(kind, own)
        self._exchange(
            header,
            lambda _: Outgoing.of(own),
            self._parts_of(header, accumulator),
        )

    def _reduce_in_two(self, kind: Kind, combine: np.ufunc, own: NDArray[Any], out: NDArray[Any]) -> None:
        cuts = [own.size * rank // self.size for rank in range(self.size + 1)]
        parts = [slice(start, stop) for start, stop in itertools.pairwise(cuts)]
        accumulator = Accumulator(combine, own[parts[self.rank]], out[parts[self.rank]])
        header = self._header(kind, own[parts[self.rank]])
        self._exchange(
            header,
            lambda rank: Outgoing.of(own[parts[rank]]),
            self._parts_of(header, accumulator),
        )
        headers = {rank: self._header(kind, out[part]) for rank, part in enumerate(parts)}
        self._exchange(
            headers[self.rank],
            lambda _: Outgoing.of(out[parts[self.rank]]),
            lambda rank: Fixed(headers[rank], out[parts[rank]]),
        )

    def _header(self, kind: Kind, array: NDArray[Any]) -> Header:
        """What every member's message of the next exchange looks like if it holds such an array."""
        return Header(self._place, kind, dtype_code(array.dtype), array.shape[0], array.nbytes)

    def _parts_of(self, header: Header, accumulator: Accumulator) -> Callable[[int], Part]:
        """Messages that are combined as they come, through room for one chunk a member that is kept."""
        for rank in self._links.keys() - self._scratch.keys():
            self._scratch[rank] = np.empty(8 * CHUNK, np.uint8)
        dtype = accumulator.out.dtype
        return lambda rank: Part(header, accumulator, self._scratch[rank].view(dtype))

    def _exchange(
        self, header: Header, outgoing: Callable[[int], Outgoing], incoming: Callable[[int], Incoming]
    ) -> None:
        """Send every other member its message and receive theirs. One step."""
        try:
            for rank, link in self._links.items():
                message = outgoing(rank)
                announced = Header(header.place, header.kind, header.dtype, message.n_rows, message.n_bytes)
                link.begin([memoryview(announced.pack()), *message.views], incoming(rank))
                self.bytes_sent += message.n_bytes
            self._finish(header)
        except BaseException as error:
            self._shutdown()  # half a message may be on its way: no later operation could be trusted
            if self._ended:
                raise RunEnded(self._ended) from error
            raise
        self._place = self._place._replace(step=self._place.step + 1)

    def _finish(self, header: Header) -> None:
        """Send and receive until every link is done or the deadline has passed."""
        seconds = self._deadlines.round if header.place.round else self._deadlines.prepare
        deadline = time.monotonic() + seconds
        waiting = [link for link in self._links.values() if not link.advance()]
        while waiting:
            poller = select.poll()
            for link in waiting:
                poller.register(link.fileno, link.events())
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(math.ceil(left * 1000)):
                silent = ", ".join(link.name for link in waiting)
                kind = Kind(header.kind).name.lower()
                raise DeadlinePassed(
                    f"waited {seconds:g} s for {silent} in round {header.place.round}, "
                    f"step {header.place.step} ({kind})"
                )
            waiting = [link for link in waiting if not link.advance()]

    def _shutdown(self) -> None:
        for link in self._links.values():
            link.shutdown()
