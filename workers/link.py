"""One connection to another member: what is still to be sent to it, and what is still to come from it.

Sockets never block here: a link sends and receives what it can, and the collective waits for all its links at
once. So two members can send each other more than their sockets' buffers hold, and whoever is waited for is
the one that is silent.
"""

import select
import socket

from boost_core.errors import CollectiveError, MemberLost
from workers.incoming import Incoming
from workers.messages import HEADER, Header, check_kind, check_place, describe
from workers.stream import stream_over


class Link:
    """An open, authenticated connection to the member `rank`, called `name` in errors."""

    def __init__(self, rank: int, name: str, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank = rank
        self.name = name
        self._stream = stream_over(connection)
        self.fileno = self._stream.fileno()
        self._outgoing: list[memoryview] = []
        self._header = memoryview(bytearray(HEADER.size))
        self._header_left = 0
        self._parts: list[memoryview] = []
        self._in_room = False
        self._incoming: Incoming | None = None

    def begin(self, outgoing: list[memoryview], incoming: Incoming) -> None:
        """Set what to send (header first) and where to receive; `advance` does both."""
        self._outgoing = outgoing
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
        sent = self.push()
        return self.pull() and sent

    def push(self) -> bool:
        """Send what goes without waiting. True once all is sent. Errors: MemberLost."""
        try:
            while self._outgoing:
                self._outgoing = drop(self._outgoing, self._stream.send(self._outgoing))
        except BlockingIOError:
            return False
        except OSError as error:
            raise MemberLost(f"the connection to {self.name} broke: {error}") from error
        return True

    def pull(self) -> bool:
        """Receive what is there. True once all is received. Errors: as of `advance`."""
        try:
            while self._parts:
                received = self._stream.receive(self._parts)
                if received == 0:
                    raise MemberLost(f"{self.name} closed its connection")
                self._received(received)
        except BlockingIOError:
            return False
        except OSError as error:
            raise MemberLost(f"the connection to {self.name} broke: {error}") from error
        return True

    def events(self) -> int:
        """What to poll for until `advance` can go on."""
        return (select.POLLIN if self._parts else 0) | (select.POLLOUT if self._outgoing else 0)

    def shutdown(self) -> None:
        """End the connection, also under a thread that waits for it; the descriptor stays until `close`."""
        self._stream.shutdown()

    def close(self) -> None:
        """Give the socket back."""
        self._stream.close()

    def _received(self, n_bytes: int) -> None:
        self._parts = drop(self._parts, n_bytes)
        if self._header_left:
            self._header_left = max(0, self._header_left - n_bytes)
            if self._header_left:
                return
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
