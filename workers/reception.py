"""Answering the members that call: the listener's side of the handshake, for all callers at once.

A stranger, or a caller that says nothing, never holds up the others: each has its own deadline, and who fails
is dropped without a word.
"""

import hmac
import logging
import secrets
import select
import socket
import ssl
import time

from boost_core.errors import CollectiveError, DeadlinePassed
from workers.messages import job_digest
from workers.roster import HELLO, MAGIC, NONCE_BYTES, PROOF_BYTES, WELCOME, Roster
from workers.tls import Contexts

logger = logging.getLogger(__name__)
CALLER_SECONDS = 5.0  # a caller that has not proved itself by then is dropped
MOST_CALLERS = 256  # more strangers than that at once wait in the system's queue


class Stranger(Exception):
    """A caller is no member of this run, for the reason given."""


class Caller:
    """A connection that has not proved itself yet."""

    def __init__(self, connection: socket.socket, certificates: Contexts | None) -> None:
        connection.setblocking(False)
        self.connection = connection
        if certificates is not None:
            connection.getpeername()  # raises where it was reset: wrapping would lose the open socket
            self.connection = certificates.listening.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        self.deadline = time.monotonic() + CALLER_SECONDS
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._hello = b""
        self._received = b""

    def advance(self, roster: Roster, rank: int) -> int | None:
        """Read on; the caller's rank once it has proved it, None while there is more to come.

        Errors: Stranger if it is no member of this run; OSError if the connection broke.
        """
        wanted = PROOF_BYTES if self._hello else HELLO.size
        try:
            if isinstance(self.connection, ssl.SSLSocket):
                self.connection.do_handshake()  # nothing is left to do once it is done
            data = self.connection.recv(wanted - len(self._received))
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        if not data:
            raise Stranger("it went away")
        self._received += data
        if len(self._received) < wanted:
            return None
        message, self._received = self._received, b""
        if self._hello:
            return self._check_proof(roster, message)
        self._check_hello(roster, rank, message)
        return None

    def _check_hello(self, roster: Roster, rank: int, hello: bytes) -> None:
        magic, run, caller, listener, job, _ = HELLO.unpack(hello)
        if magic != MAGIC:
            raise Stranger("it speaks another protocol")
        if (job, run) != (job_digest(roster.job_id), roster.run):
            raise Stranger(f"it belongs to job {job.hex()[:8]}, run {run}")
        if listener != rank or not rank < caller < len(roster.seats):
            raise Stranger(f"it calls itself member {caller} and calls member {listener}")
        self._hello = hello
        self.connection.sendall(self._nonce + roster.proof(b"listener", hello, self._nonce))

    def _check_proof(self, roster: Roster, proof: bytes) -> int:
        if not hmac.compare_digest(proof, roster.proof(b"caller", self._hello, self._nonce)):
            raise Stranger("it does not know the secret")
        self.connection.sendall(WELCOME)
        return int(HELLO.unpack(self._hello)[2])


class Reception:
    """The callers in the middle of their handshake, and the members that have arrived."""

    def __init__(
        self, certificates: Contexts | None, roster: Roster, rank: int, arrived: dict[int, socket.socket]
    ) -> None:
        self._certificates = certificates
        self._roster = roster
        self._rank = rank
        self._arrived = arrived
        self._callers: dict[int, Caller] = {}

    @property
    def missing(self) -> list[int]:
        """Ranks that should call and have not arrived."""
        return [rank for rank in range(self._rank + 1, len(self._roster.seats)) if rank not in self._arrived]

    @property
    def full(self) -> bool:
        return len(self._callers) >= MOST_CALLERS

    def wait(self, listener: socket.socket, deadline: float) -> set[int]:
        """File descriptors that have something to read; empty once the next deadline has come."""
        poller = select.poll()
        if not self.full:
            poller.register(listener, select.POLLIN)
        for descriptor in self._callers:
            poller.register(descriptor, select.POLLIN)
        until = min([deadline, *(caller.deadline for caller in self._callers.values())])
        milliseconds = max(0, int(1000 * (until - time.monotonic())) + 1)
        return {descriptor for descriptor, _ in poller.poll(milliseconds)}

    def welcome(self, listener: socket.socket) -> None:
        """Accept one connection. Errors: CollectiveError if the listener was shut."""
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it went away before it was accepted
        except OSError as error:
            raise CollectiveError(f"this member's endpoint is closed: {error}") from error
        try:
            caller = Caller(connection, self._certificates)
        except OSError as error:  # it was reset before its TLS could begin
            logger.info("Dropped a connection to member %d: %s", self._rank, error)
            connection.close()
            return
        self._callers[caller.connection.fileno()] = caller

    def hear(self, ready: set[int]) -> None:
        """Let the callers that said something go on; drop strangers and those that are overdue."""
        now = time.monotonic()
        for descriptor, caller in list(self._callers.items()):
            try:
                if descriptor in ready:
                    self._advance(descriptor, caller)
                elif now >= caller.deadline:
                    raise Stranger(f"it said nothing for {CALLER_SECONDS:g} s")
            except (Stranger, OSError) as error:
                logger.info("Dropped a connection to member %d: %s", self._rank, error)
                self._callers.pop(descriptor).connection.close()

    def _advance(self, descriptor: int, caller: Caller) -> None:
        rank = caller.advance(self._roster, self._rank)
        if rank is None:
            return
        if rank in self._arrived:
            raise Stranger(f"member {rank} is here already")
        self._arrived[rank] = self._callers.pop(descriptor).connection

    def close(self) -> None:
        """Drop all who have not arrived."""
        for caller in self._callers.values():
            caller.connection.close()


def receive_all(
    listener: socket.socket,
    certificates: Contexts | None,
    roster: Roster,
    rank: int,
    deadline: float,
    arrived: dict[int, socket.socket],
) -> None:
    """Add the connections of all members of higher rank to `arrived`; certificates: None in the clear.

    Errors: DeadlinePassed names the members that did not call in time; CollectiveError if the listener was
    shut.
    """
    reception = Reception(certificates, roster, rank, arrived)
    try:
        while missing := reception.missing:
            if time.monotonic() >= deadline:
                names = ", ".join(roster.name(other) for other in missing)
                raise DeadlinePassed(f"waited in vain for {names} to connect to {roster.name(rank)}")
            ready = reception.wait(listener, deadline)
            if listener.fileno() in ready:
                reception.welcome(listener)
            reception.hear(ready)
    finally:
        reception.close()
