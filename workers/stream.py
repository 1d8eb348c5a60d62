"""The bytes between two members. A stream never waits: what cannot go on raises BlockingIOError."""

import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

RECORD_BYTES = 1 << 14  # the most that TLS encrypts at once
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


class TlsStream:
    """A socket under TLS, its handshake done."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self.fileno = connection.fileno
        self.close = connection.close

    def send(self, views: Sequence[memoryview]) -> int:
        try:
            return self._socket.send(self._next(views))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error

    def receive(self, views: Sequence[memoryview]) -> int:
        try:
            return self._socket.recv_into(views[0])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error
        except ssl.SSLEOFError:
            return 0

    def shutdown(self) -> None:
        with suppress(OSError):  # the other side was faster
            # not SSLSocket's own: the thread that waits would go on without TLS
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _next(self, views: Sequence[memoryview]) -> memoryview | bytes:
        """What to send in one call. The same again as long as nothing was sent: OpenSSL asks for that."""
        if len(views[0]) >= RECORD_BYTES or len(views) == 1:
            return views[0]
        parts, n_bytes = [], 0
        for view in views:
            parts.append(view[: RECORD_BYTES - n_bytes])
            n_bytes += len(parts[-1])
            if n_bytes == RECORD_BYTES:
                break
        return b"".join(parts)


def stream_over(connection: socket.socket) -> Stream:
    """The stream of an authenticated connection."""
    return TlsStream(connection) if isinstance(connection, ssl.SSLSocket) else PlainStream(connection)
