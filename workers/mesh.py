"""The collective of a gang over plain sockets between every two members.

    direct (small)     every member sends its whole array to every other; each adds up all of them
    in two (large)     member r adds up slice r of all (reduce-scatter), then sends the sums (all-gather)

Measured between two processes on two cores: 80 KB direct 0.05 ms, in two 0.11 ms; 8 MB direct 5.1-5.8 ms, in
two 4.2-5.1 ms. Values that fit int32 travel as such (wire.py): half the bytes, for a pass over the data. Fixed socket
buffers of 1 or 4 MB were no faster than the system's growing ones.

Every operation exchanges messages with all other members at once. None waits for a member that itself waits
for a third, so the one named by DeadlinePassed is the silent one.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Integers
from boost_core.errors import DeadlinePassed
from workers.incoming import CHUNK, Accumulator, Fixed, Incoming, Part, Ragged, as_bytes
from workers.link import Link
from workers.messages import Header, Kind, Place, RunEnded, dtype_code, job_digest
from workers.waiting import Waiting
from workers.wire import Combine, SendBuffers, add_values, keep_larger, warm_up

T = TypeVar("T", bound=np.generic)
DIRECT_BYTES = 1 << 18  # of what a member sends in all; the two ways cross between 80 and 320 KB (see above)


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
    """What goes to one member: the array's length along axis 0, its bytes as views, and whether they are narrow."""

    n_rows: int
    views: list[memoryview]
    narrow: bool = False

    @classmethod
    def of(cls, payload: NDArray[Any], n_rows: int | None = None) -> "Outgoing":
        """A contiguous array as a whole; n_rows: where the payload is the flat form of another array."""
        return cls(payload.shape[0] if n_rows is None else n_rows, as_bytes(payload), payload.dtype == np.int32)


class MeshCollective:
    """A member's end of the mesh. Implements boost_core.collective.Collective; used by one thread.

    links: one open connection to every other member. After an error nothing works any more: the connections
    are shut, so that the others notice at once.
    """

    def __init__(self, member: Member, links: Sequence[Link], deadlines: Deadlines | None = None) -> None:
        self.rank = member.rank
        self.size = len(links) + 1
        self.bytes_sent = 0
        self.seconds_spent = 0.0  # in exchanges so far: packing, sending, waiting, adding up what comes
        self.seconds_packing = 0.0  # of these, making what is sent
        # Each member begins with the next one, so that not all send to the same member at first.
        following = sorted(links, key=lambda link: (link.rank - member.rank) % self.size)
        self._links = {link.rank: link for link in following}
        if sorted([*self._links, member.rank]) != list(range(self.size)):
            raise ValueError(f"member {member.rank} of {self.size} has links to {sorted(self._links)}")
        self._deadlines = deadlines or Deadlines()
        self._place = Place(job_digest(member.job_id), member.run, 0, 0)
        self._scratch: dict[int, NDArray[np.uint8]] = {}
        self._buffers = SendBuffers()
        self._waiting = Waiting()
        self._ended = ""
        warm_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin_round(self, number: int) -> None:
        self._place = self._place._replace(round=number, step=0)

    def sum(self, values: Integers) -> Integers:
        return self._all_reduce(Kind.SUM, add_values, values)

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._all_reduce(Kind.MAX, keep_larger, values)

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        n_nodes, _, n_channels = histograms.shape
        n_used = n_channels if n_used is None else n_used
        if self.size == 1:
            return histograms[:, :, :n_used]
        began = time.perf_counter()
        start, stop = int(bounds[self.rank]), int(bounds[self.rank + 1])
        sums = np.ascontiguousarray(histograms[:, start:stop, :n_used])
        if sums.base is not None or sums is histograms:
            sums = sums.copy()
        spent = time.perf_counter() - began
        self.seconds_packing, self.seconds_spent = self.seconds_packing + spent, self.seconds_spent + spent
        flat = sums.reshape(-1)
        header = self._header(Kind.REDUCE_SCATTER, sums)

        def outgoing(rank: int) -> Outgoing:
            bins = (int(bounds[rank]), int(bounds[rank + 1]))
            return Outgoing.of(self._buffers.histograms(rank, histograms, bins, n_used), n_nodes)

        self._exchange(header, outgoing, self._parts_of(header, Accumulator(add_values, flat, flat)))
        return sums

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        if self.size == 1:
            return [values]
        array = np.ascontiguousarray(values)
        header = self._header(Kind.ALL_GATHER, array)
        received = {rank: Ragged(header, array.shape[1:], array.dtype) for rank in self._links}
        message = Outgoing(array.shape[0], as_bytes(array))
        self._exchange(header, lambda _: message, received.__getitem__)
        return [array if rank == self.rank else received[rank].array for rank in range(self.size)]

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        if len(parts) != self.size:
            raise ValueError(f"one array for each of {self.size} members is wanted, got {len(parts)}")
        arrays = [np.ascontiguousarray(part) for part in parts]
        header = self._header(Kind.ALL_TO_ALL, arrays[self.rank])
        received = {rank: Ragged(header, (), arrays[self.rank].dtype) for rank in self._links}

        def outgoing(rank: int) -> Outgoing:
            return Outgoing(arrays[rank].shape[0], as_bytes(arrays[rank]))

        self._exchange(header, outgoing, received.__getitem__)
        return [arrays[rank] if rank == self.rank else received[rank].array for rank in range(self.size)]

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

    def _all_reduce(self, kind: Kind, combine: Combine, values: NDArray[T]) -> NDArray[T]:
        if self.size == 1:
            return values
        own = np.asarray(values, order="C").reshape(-1)
        out = np.empty_like(own)
        if own.nbytes * (self.size - 1) <= DIRECT_BYTES:
            self._reduce_direct(kind, combine, own, out)
        else:
            self._reduce_in_two(kind, combine, own, out)
        return out.reshape(values.shape)

    def _reduce_direct(self, kind: Kind, combine: Combine, own: NDArray[Any], out: NDArray[Any]) -> None:
        header = self._header(kind, own)
        message = Outgoing.of(self._buffers.flat(self.rank, own), own.shape[0])
        self._exchange(header, lambda _: message, self._parts_of(header, Accumulator(combine, own, out)))

    def _reduce_in_two(self, kind: Kind, combine: Combine, own: NDArray[Any], out: NDArray[Any]) -> None:
        cuts = [own.size * rank // self.size for rank in range(self.size + 1)]
        parts = [slice(start, stop) for start, stop in itertools.pairwise(cuts)]
        mine = out[parts[self.rank]]
        header = self._header(kind, mine)

        def outgoing(rank: int) -> Outgoing:
            part = own[parts[rank]]
            return Outgoing.of(self._buffers.flat(rank, part), part.shape[0])

        self._exchange(header, outgoing, self._parts_of(header, Accumulator(combine, own[parts[self.rank]], mine)))
        headers = {rank: self._header(kind, out[part]) for rank, part in enumerate(parts)}
        message = Outgoing.of(self._buffers.flat(self.rank, mine), mine.shape[0])
        self._exchange(headers[self.rank], lambda _: message, lambda rank: Fixed(headers[rank], out[parts[rank]]))

    def _header(self, kind: Kind, array: NDArray[Any]) -> Header:
        """What every member's message of the next exchange looks like if it holds such an array."""
        return Header(self._place, kind, dtype_code(array.dtype), array.shape[0], array.nbytes)

    def _parts_of(self, header: Header, accumulator: Accumulator) -> Callable[[int], Part]:
        """Messages that are combined as they come, through room for one chunk a member that is kept."""
        for rank in self._links.keys() - self._scratch.keys():
            self._scratch[rank] = np.empty(8 * CHUNK, np.uint8)
        return lambda rank: Part(header, accumulator, self._scratch[rank])

    def _exchange(
        self, header: Header, outgoing: Callable[[int], Outgoing], incoming: Callable[[int], Incoming]
    ) -> None:
        """Send every other member its message and receive theirs. One step."""
        began = time.perf_counter()
        try:
            sent: Outgoing | None = None
            announced = memoryview(b"")
            for rank, link in self._links.items():
                packing = time.perf_counter()
                message = outgoing(rank)
                self.seconds_packing += time.perf_counter() - packing
                if message is not sent:
                    sent, n_bytes = message, sum(map(len, message.views))
                    announced = memoryview(
                        header._replace(n_rows=message.n_rows, n_bytes=n_bytes, narrow=message.narrow).pack()
                    )
                link.begin([announced, *message.views], incoming(rank))
                link.push()
                self.bytes_sent += n_bytes
            self._finish(header)
        except BaseException as error:
            self._shutdown()  # half a message may be on its way: no later operation could be trusted
            if self._ended:
                raise RunEnded(self._ended) from error
            raise
        self._place = self._place._replace(step=self._place.step + 1)
        self.seconds_spent += time.perf_counter() - began

    def _finish(self, header: Header) -> None:
        """Send and receive until every link is done. Errors: DeadlinePassed names those that are not in time."""
        seconds = self._deadlines.round if header.place.round else self._deadlines.prepare
        silent = self._waiting.finish(list(self._links.values()), seconds)
        if silent:
            names = ", ".join(link.name for link in silent)
            kind = Kind(header.kind).name.lower()
            raise DeadlinePassed(
                f"waited {seconds:g} s for {names} in round {header.place.round}, step {header.place.step} ({kind})"
            )

    def _shutdown(self) -> None:
        for link in self._links.values():
            link.shutdown()
