"""One connection to another member: what is still to be sent to it, and what is still to come from it.

Sockets never block here: a link sends and receives what it can, and the collective waits for all its links at
once. So two members can send each other more than their sockets' buffers hold, and whoever is waited for is
the one that is silent.
"""

import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.errors import CollectiveError, MemberLost
from workers.messages import HEADER, Header, check_kind, check_place, describe

VIEWS_PER_CALL = 512  # the system takes at most IOV_MAX (1024 on Linux, POSIX promises 16) views in one call
CHUNK = 1 << 16  # elements added at once; 8 MB sums took 4.2 ms whole, 3.7-4.4 ms by chunks of 64-1024 KB


def as_bytes(array: NDArray[Any]) -> list[memoryview]:
    """The bytes of a C-contiguous array without a copy; no view at all if it is empty."""
    return [array.data.cast("B")] if array.size else []


class Incoming(Protocol):
    """Where one message's payload goes, view by view."""

    expected: Header

    def fit(self, header: Header) -> bool:
        """Whether a payload of the header's size can be taken; called once, when the header is there."""

    def room(self) -> list[memoryview]:
        """Where the next bytes go."""

    def filled(self) -> None:
        """The room of the last call is full."""


class Fixed:
    """A message of known size that goes straight to its place."""

    def __init__(self, expected: Header, array: NDArray[Any]) -> None:
        self.expected = expected
        self._views = as_bytes(array)

    def fit(self, header: Header) -> bool:
        return header.n_bytes == self.expected.n_bytes and header.n_rows == self.expected.n_rows

    def room(self) -> list[memoryview]:
        return self._views

    def filled(self) -> None:
        self._views = []


class Ragged:
    """A message whose length along axis 0 only its sender knows; `array` is what came."""

    def __init__(self, expected: Header, tail: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.expected = expected
        self.array: NDArray[Any] = np.empty((0, *tail), dtype)
        self._views: list[memoryview] = []

    def fit(self, header: Header) -> bool:
        row_bytes = self.array.dtype.itemsize * int(np.prod(self.array.shape[1:], dtype=np.int64))
        if header.n_bytes != header.n_rows * row_bytes:
            return False
        self.array = np.empty((header.n_rows, *self.array.shape[1:]), self.array.dtype)
        self._views = as_bytes(self.array)
        return True

    def room(self) -> list[memoryview]:
        return self._views

    def filled(self) -> None:
        self._views = []


class Accumulator:
    """Combines members' arrays of one shape elementwise, chunk by chunk in whatever order they arrive.

    own: this member's part, flat and contiguous; it is not changed unless it is also `out`.
    """

    def __init__(self, combine: np.ufunc, own: NDArray[Any], out: NDArray[Any]) -> None:
        self._combine = combine
        self.out = out
        self._so_far = [own] * -(-out.size // CHUNK)

    def take(self, number: int, received: NDArray[Any]) -> None:
        """Combine one member's chunk with what is there."""
        start = number * CHUNK
        stop = start + received.size
        self._combine(self._so_far[number][start:stop], received, out=self.out[start:stop])
        self._so_far[number] = self.out


class Part:
    """A message that is combined into an accumulator; only one chunk of it is ever held."""

    def __init__(self, expected: Header, accumulator: Accumulator, scratch: NDArray[Any]) -> None:
        self.expected = expected
        self._accumulator = accumulator
        self._scratch = scratch
        self._number = 0

    def _chunk(self) -> NDArray[Any]:
        left = self._accumulator.out.size - self._number * CHUNK
        return self._scratch[: max(0, min(CHUNK, left))]

    def fit(self, header: Header) -> bool:
        return header.n_bytes == self.expected.n_bytes and header.n_rows == self.expected.n_rows

    def room(self) -> list[memoryview]:
        return as_bytes(self._chunk())

    def filled(self) -> None:
        self._accumulator.take(self._number, self._chunk())
        self._number += 1


class Link:
    """An open, authenticated connection to the member `rank`, called `name` in errors."""

    def __init__(self, rank: int, name: str, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank = rank
        self.name = name
        self.fileno = connection.fileno()
        self._socket = connection
        self._outgoing: list[memoryview] = []
        self._header = memoryview(bytearray(HEADER.size))
        self._header_left = 0
        self._parts: list[memoryview] = []
        self._in_room = False
        self._incoming: Incoming | None = None

    def begin(self, outgoing: Sequence[memoryview], incoming: Incoming) -> None:
        """Set what to send (header first) and where to receive; `advance` does both."""
        self._outgoing = list(outgoing)
        self._incoming = incoming
        self._header_left = HEADER.size
        room = incoming.room()
        self._in_room = bool(room)
        self._parts = [self._header, *room]

    def advance(self) -> bool:
        """Send and receive what goes without waiting. True once all is sent and received.

        Errors: MemberLost if the connection ended; StaleMessage and CollectiveError if what comes is not what
        this member waits for.
        """
        try:
            if self._outgoing:
                self._push()
            if self._parts:
                self._pull()
        except OSError as error:
            raise MemberLost(f"the connection to {self.name} broke: {error}") from error
        return not self._outgoing and not self._parts

    def events(self) -> int:
        """What to poll for until `advance` can go on."""
        return (select.POLLIN if self._parts else 0) | (select.POLLOUT if self._outgoing else 0)

    def shutdown(self) -> None:
        """End the connection, also under a thread that waits for it; the descriptor stays until `close`."""
        with suppress(OSError):  # the other side was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def _push(self) -> None:
        while self._outgoing:
            try:
                sent = self._socket.sendmsg(self._outgoing[:VIEWS_PER_CALL])
            except BlockingIOError:
                return
            self._outgoing = drop(self._outgoing, sent)

    def _pull(self) -> None:
        while self._parts:
            try:
                received = self._socket.recvmsg_into(self._parts)[0]
            except BlockingIOError:
                return
            if received == 0:
                raise MemberLost(f"{self.name} closed its connection")
            self._parts = drop(self._parts, received)
            if self._header_left:
                self._header_left = max(0, self._header_left - received)
                if self._header_left:
                    continue
                self._check_header()
            if not self._parts:
                self._next_room()

    def _check_header(self) -> None:
        """The header is complete: is it the expected one, and does its payload fit?"""
        assert self._incoming is not None
        expected = self._incoming.expected
        header = Header.unpack(self._header)
        check_place(expected.place, header.place, self.name)
        check_kind(expected, header, self.name)
        if not self._incoming.fit(header):
            raise CollectiveError(
                f"{self.name} sent {describe(header)} at {header.place}; this member expected "
                f"{describe(expected)}: arrays must have the same shape on all members"
            )

    def _next_room(self) -> None:
        """All given room is full: ask for more. None left means that the message is complete."""
        assert self._incoming is not None
        if self._in_room:
            self._incoming.filled()
        self._parts = self._incoming.room()
        self._in_room = bool(self._parts)


def drop(views: list[memoryview], n_bytes: int) -> list[memoryview]:
    """What is left of views after their first n_bytes."""
    for number, view in enumerate(views):
        if n_bytes < len(view):
            return [view[n_bytes:], *views[number + 1 :]]
        n_bytes -= len(view)
    return []
