"""A member's listening socket, and how members find and trust each other before the first message.

Member r calls all members of lower rank, then answers those of higher rank. Both sides prove that they know
the run's secret without sending it:

    caller                                      listener
    hello(job, run, ranks, nonce)       ->
                                        <-      nonce, HMAC(secret, "listener" hello nonce)
    HMAC(secret, "caller" hello nonce)  ->
                                        <-      welcome

On a cluster with certificates all of it, and everything after it, goes through TLS, where both sides show theirs
first. Whoever cannot, says nothing, or belongs to another run is dropped, and the listener goes on. All endpoints
listen before any member is told the roster, so nobody has to call twice.
"""

import hmac
import secrets
import socket
import ssl
import time
from contextlib import suppress

from boost_core.errors import DeadlinePassed, MemberLost
from workers.link import Link
from workers.messages import RunEnded
from workers.reception import receive_all
from workers.roster import NONCE_BYTES, PROOF_BYTES, WELCOME, Roster
from workers.tls import Contexts


class Endpoint:
    """A listening socket on one host of this machine, on a port the system chooses."""

    def __init__(self, host: str, certificates: Contexts | None = None) -> None:
        """certificates: those of the cluster, None in the clear.

        Errors: OSError if the host is none of this machine's addresses.
        """
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        self._listener = socket.create_server((host, 0), family=family, backlog=128)
        self._listener.setblocking(False)
        self.host = host
        self.port = int(self._listener.getsockname()[1])
        self._certificates = certificates
        self._calling: socket.socket | None = None
        self._ended = ""

    def connect(self, roster: Roster, rank: int, seconds: float) -> list[Link]:
        """Links to all other members.

        Errors: DeadlinePassed names the members that are not connected after so many seconds; MemberLost one
        that refused; RunEnded if `abort` was called.
        """
        deadline = time.monotonic() + seconds
        open_sockets: dict[int, socket.socket] = {}
        try:
            for other in range(rank):
                open_sockets[other] = self._call(roster, rank, other, deadline)
            receive_all(self._listener, self._certificates, roster, rank, deadline, open_sockets)
        except BaseException as error:
            for connection in open_sockets.values():
                connection.close()
            if self._ended:
                raise RunEnded(self._ended) from error
            raise
        return [Link(other, roster.name(other), connection) for other, connection in open_sockets.items()]

    def abort(self, reason: str) -> None:
        """Stop a `connect` that another thread is in; it raises RunEnded with the reason."""
        self._ended = reason
        for waiting in (self._listener, self._calling):
            if waiting is not None:
                with suppress(OSError):  # not connected any more
                    socket.socket.shutdown(waiting, socket.SHUT_RDWR)  # see TlsStream.shutdown

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _call(self, roster: Roster, rank: int, other: int, deadline: float) -> socket.socket:
        seat = roster.seats[other]
        try:
            connection = socket.create_connection((seat.host, seat.port), time_left(deadline))
        except TimeoutError as error:
            raise DeadlinePassed(f"{roster.name(other)} could not be reached in time") from error
        except OSError as error:
            raise MemberLost(f"{roster.name(other)} could not be reached: {error}") from error
        if self._certificates is not None:
            try:
                connection.getpeername()  # as in reception.py
                connection = self._certificates.calling.wrap_socket(connection, do_handshake_on_connect=False)
            except OSError as error:
                connection.close()
                raise MemberLost(f"{roster.name(other)} ended the connection before its TLS began: {error}") from error
        self._calling = connection
        try:
            introduce(connection, roster, rank, other, deadline)
        except BaseException:
            connection.close()
            raise
        finally:
            self._calling = None
        return connection


def introduce(connection: socket.socket, roster: Roster, rank: int, other: int, deadline: float) -> None:
    """The caller's side of the handshake."""
    name = roster.name(other)
    try:
        if isinstance(connection, ssl.SSLSocket):
            connection.settimeout(time_left(deadline))
            connection.do_handshake()
        hello = roster.hello(rank, other, secrets.token_bytes(NONCE_BYTES))
        connection.sendall(hello)
        answer = receive_exactly(connection, NONCE_BYTES + PROOF_BYTES, deadline)
        nonce, proof = answer[:NONCE_BYTES], answer[NONCE_BYTES:]
        if not hmac.compare_digest(proof, roster.proof(b"listener", hello, nonce)):
            raise MemberLost(f"{name} could not prove that it knows this run's secret")
        connection.sendall(roster.proof(b"caller", hello, nonce))
        receive_exactly(connection, len(WELCOME), deadline)
    except TimeoutError as error:
        raise DeadlinePassed(f"{name} did not finish the handshake in time") from error
    except ssl.SSLCertVerificationError as error:
        raise MemberLost(f"{name} has no certificate of this cluster: {error.verify_message}") from error
    except (OSError, EOFError) as error:
        raise MemberLost(
            f"{name} ended the handshake: it is gone, or it belongs to another job or run, or it holds another secret"
        ) from error


def receive_exactly(connection: socket.socket, n_bytes: int, deadline: float) -> bytes:
    """Errors: TimeoutError after the deadline, EOFError if the connection ends first."""
    data = b""
    while len(data) < n_bytes:
        connection.settimeout(time_left(deadline))
        received = connection.recv(n_bytes - len(data))
        if not received:
            raise EOFError
        data += received
    return data


def time_left(deadline: float) -> float:
    """Seconds until the deadline, never quite zero: a timeout of 0 would mean "do not wait" to a socket."""
    return max(0.001, deadline - time.monotonic())
