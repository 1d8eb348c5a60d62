"""The bytes between two members. A stream never waits: what cannot go on raises BlockingIOError."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

VIEWS_PER_CALL = 512  # the system takes at most IOV_MAX (1024 on Linux, POSIX promises 16) views in one call


class Stream(Protocol):
    """One open connection that never blocks."""

    def fileno(self) -> int:
        """What to poll."""

    def send(self, views: Sequence[memoryview]) -> int:
        """Send some of the views' bytes; how many. Errors: BlockingIOError, OSError."""

    def receive(self, views: Sequence[memoryview]) -> int:
        """Fill some of the views; how many bytes, 0 at the end. Errors: BlockingIOError, OSError."""

    def shutdown(self) -> None:
        """End the connection, also under a thread that waits for it."""

    def close(self) -> None:
        """Give the descriptor back."""


class PlainStream:
    """A socket as it is: many views in one system call."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self.fileno = connection.fileno
        self.close = connection.close

    def send(self, views: Sequence[memoryview]) -> int:
        return self._socket.sendmsg(views if len(views) <= VIEWS_PER_CALL else views[:VIEWS_PER_CALL])

    def receive(self, views: Sequence[memoryview]) -> int:
        return self._socket.recvmsg_into(views)[0]

    def shutdown(self) -> None:
        with suppress(OSError):  # the other side was faster
            self._socket.shutdown(socket.SHUT_RDWR)
