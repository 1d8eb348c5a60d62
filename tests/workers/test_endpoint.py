"""How members find and trust each other: secrets, strangers, silence."""

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boost_core.errors import CollectiveError, DeadlinePassed, MemberLost
from service.certificates import make_certificates
from tests.workers.meshes import LOOPBACK, certificates, in_threads, open_endpoints
from workers import reception
from workers.endpoint import Endpoint
from workers.link import Link
from workers.mesh import Member, MeshCollective
from workers.messages import job_digest
from workers.roster import HELLO, MAGIC, NONCE_BYTES, PROOF_BYTES, WELCOME, Roster, Seat, new_secret
from workers.tls import contexts, security

pytestmark = [pytest.mark.alone, pytest.mark.faults]

Pair = tuple[Roster, list[Endpoint]]


@pytest.fixture
def pair() -> Iterator[Pair]:
    roster, endpoints = open_endpoints(2)
    yield roster, endpoints
    for endpoint in endpoints:
        endpoint.close()


def call(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10)


def hello(roster: Roster, **changed: int | bytes) -> bytes:
    fields: dict[str, int | bytes] = {
        "magic": MAGIC, "run": roster.run, "caller": 1, "listener": 0,
        "job": job_digest(roster.job_id), "nonce": bytes(NONCE_BYTES),
    }  # fmt: skip
    return HELLO.pack(*(fields | changed).values())


def is_dropped(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(1) == b""
    except ConnectionResetError:
        return True


def assert_sums(links: list[list[Link]]) -> None:
    ends = [MeshCollective(Member("job", 1, rank), links[rank]) for rank in range(len(links))]
    results = in_threads(lambda rank: int(ends[rank].sum(np.array([rank + 1], np.int64))[0]), len(ends))
    for end in ends:
        end.close()
    assert results == [sum(range(len(ends) + 1))] * len(ends)


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\nHost: somewhere\r\n" + b"x" * 100,
        pytest.param({"magic": b"EDGH\x02"}, id="another version"),
        pytest.param({"run": 2}, id="another run"),
        pytest.param({"job": job_digest("another")}, id="another job"),
        pytest.param({"caller": 0}, id="the listener's own rank"),
        pytest.param({"caller": 2}, id="a rank beyond the gang"),
        pytest.param({"listener": 1}, id="looking for another member"),
    ],
)
def test_strangers_are_dropped_and_disturb_nobody(pair: Pair, words: bytes | dict[str, int | bytes]) -> None:
    roster, endpoints = pair
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(endpoints[0].connect, roster, 0, 10.0)
        with call(endpoints[0]) as stranger:
            stranger.sendall(words if isinstance(words, bytes) else hello(roster, **words))
            assert is_dropped(stranger)
        second = pool.submit(endpoints[1].connect, roster, 1, 10.0)
    assert_sums([first.result(), second.result()])


def test_silent_strangers_do_not_hold_up_members(pair: Pair) -> None:
    roster, endpoints = pair
    strangers = [call(endpoints[0]) for _ in range(20)]
    start = time.monotonic()
    links = in_threads(lambda rank: endpoints[rank].connect(roster, rank, 60.0), 2)
    assert time.monotonic() - start < reception.CALLER_SECONDS
    assert_sums(links)
    for stranger in strangers:
        assert is_dropped(stranger)
        stranger.close()


def test_who_says_nothing_is_dropped_in_time(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    roster, endpoints = pair
    monkeypatch.setattr(reception, "CALLER_SECONDS", 0.2)
    with ThreadPoolExecutor(2) as pool, call(endpoints[0]) as silent, call(endpoints[0]) as halting:
        first = pool.submit(endpoints[0].connect, roster, 0, 30.0)
        halting.sendall(hello(roster)[:10])
        assert is_dropped(silent)
        assert is_dropped(halting)
        second = pool.submit(endpoints[1].connect, roster, 1, 30.0)
        assert_sums([first.result(), second.result()])


def test_more_strangers_than_are_heard_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    roster, endpoints = pair
    monkeypatch.setattr(reception, "CALLER_SECONDS", 0.2)
    monkeypatch.setattr(reception, "MOST_CALLERS", 3)
    strangers = [call(endpoints[0]) for _ in range(10)]
    assert_sums(in_threads(lambda rank: endpoints[rank].connect(roster, rank, 30.0), 2))
    for stranger in strangers:
        stranger.close()


def test_a_caller_without_the_secret_is_refused(pair: Pair) -> None:
    """The listener does not let it in; the caller sees that the listener cannot prove itself either."""
    roster, endpoints = pair
    wrong = replace(roster, secret=new_secret())
    with ThreadPoolExecutor(2) as pool:
        listening = pool.submit(endpoints[0].connect, roster, 0, 0.5)
        with pytest.raises(MemberLost, match=r"member 0 .* could not prove that it knows this run's secret"):
            endpoints[1].connect(wrong, 1, 10.0)
        with pytest.raises(DeadlinePassed, match="waited in vain for member 1"):
            listening.result()


def test_a_caller_that_guesses_the_proof_is_refused(pair: Pair) -> None:
    roster, endpoints = pair
    with ThreadPoolExecutor(2) as pool, call(endpoints[0]) as liar:
        first = pool.submit(endpoints[0].connect, roster, 0, 10.0)
        liar.sendall(hello(roster))
        answer = liar.recv(NONCE_BYTES + PROOF_BYTES, socket.MSG_WAITALL)
        liar.sendall(answer[NONCE_BYTES:])  # the listener's own proof, sent back
        assert is_dropped(liar)
        second = pool.submit(endpoints[1].connect, roster, 1, 10.0)
    assert_sums([first.result(), second.result()])


def test_a_member_is_let_in_once(pair: Pair) -> None:
    """Three members, of which the third does not come, so that the listener still listens."""
    roster, endpoints = pair
    trio = replace(roster, seats=(*roster.seats, Seat(LOOPBACK, 1)))

    def prove() -> socket.socket:
        connection = call(endpoints[0])
        greeting = trio.hello(1, 0, bytes(NONCE_BYTES))
        connection.sendall(greeting)
        nonce = connection.recv(NONCE_BYTES + PROOF_BYTES, socket.MSG_WAITALL)[:NONCE_BYTES]
        connection.sendall(trio.proof(b"caller", greeting, nonce))
        assert connection.recv(1) == WELCOME
        return connection

    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(endpoints[0].connect, trio, 0, 1.0)
        first = prove()
        second = prove()
        assert is_dropped(second)
        with pytest.raises(DeadlinePassed, match="member 2"):
            listening.result()
    first.close()
    second.close()


def test_the_secret_is_never_sent_or_shown(pair: Pair) -> None:
    """A listener that knows the secret writes down all that a caller says."""
    roster, endpoints = pair
    heard = b""
    with socket.create_server((LOOPBACK, 0)) as listener, ThreadPoolExecutor(1) as pool:
        seat = Seat(LOOPBACK, listener.getsockname()[1])
        elsewhere = replace(roster, seats=(seat, roster.seats[1]))
        calling = pool.submit(endpoints[1].connect, elsewhere, 1, 10.0)
        connection, _ = listener.accept()
        with connection:
            greeting = connection.recv(HELLO.size, socket.MSG_WAITALL)
            connection.sendall(bytes(NONCE_BYTES) + roster.proof(b"listener", greeting, bytes(NONCE_BYTES)))
            heard = greeting + connection.recv(PROOF_BYTES, socket.MSG_WAITALL)
            connection.sendall(WELCOME)
            calling.result()[0].close()
    assert len(heard) == HELLO.size + PROOF_BYTES
    assert roster.secret not in heard
    assert repr(roster.secret) not in repr(roster)


def test_missing_members_are_named(pair: Pair) -> None:
    roster, endpoints = pair
    named = replace(roster, seats=(roster.seats[0], replace(roster.seats[1], worker="tcp://far:1")))
    with pytest.raises(DeadlinePassed, match=r"waited in vain for member 1 \(tcp://far:1\) to connect"):
        endpoints[0].connect(named, 0, 0.2)


def test_a_member_that_accepts_nobody_is_named(pair: Pair) -> None:
    roster, endpoints = pair
    with pytest.raises(DeadlinePassed, match=r"member 0 .* handshake in time"):
        endpoints[1].connect(roster, 1, 0.2)


def test_a_member_that_does_not_listen_any_more_is_lost(pair: Pair) -> None:
    roster, endpoints = pair
    endpoints[0].close()
    with pytest.raises(MemberLost, match=r"member 0 .* could not be reached"):
        endpoints[1].connect(roster, 1, 10.0)


def test_abort_stops_a_member_that_listens(pair: Pair) -> None:
    roster, endpoints = pair
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(endpoints[0].connect, roster, 0, 60.0)
        with call(endpoints[0]) as stranger:
            stranger.sendall(bytes(HELLO.size))
            assert is_dropped(stranger)  # so it listens by now
        endpoints[0].abort("the gang was given up")
        with pytest.raises(CollectiveError, match="the gang was given up"):
            listening.result()


def test_abort_stops_a_member_that_waits_for_a_listener(pair: Pair) -> None:
    roster, endpoints = pair
    with socket.create_server((LOOPBACK, 0)) as listener, ThreadPoolExecutor(1) as pool:
        seat = Seat(LOOPBACK, listener.getsockname()[1])
        elsewhere = replace(roster, seats=(seat, roster.seats[1]))
        calling = pool.submit(endpoints[1].connect, elsewhere, 1, 60.0)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)  # so it has begun its handshake
            endpoints[1].abort("the gang was given up")
            with pytest.raises(CollectiveError, match="the gang was given up"):
                calling.result()


def test_who_speaks_in_the_clear_stays_out_of_a_gang_with_certificates() -> None:
    roster, endpoints = open_endpoints(2, certificates=certificates())
    in_the_clear = Endpoint(LOOPBACK)
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(endpoints[0].connect, roster, 0, 60.0)
        with pytest.raises(MemberLost, match="ended the handshake"):
            in_the_clear.connect(roster, 1, 10.0)
        member = endpoints[1].connect(roster, 1, 60.0)
        assert_sums([listening.result(), member])
    for endpoint in (*endpoints, in_the_clear):
        endpoint.close()


@pytest.mark.parametrize("encrypted", [False, True])
def test_strangers_that_reset_their_connections_disturb_nobody(encrypted: bool) -> None:
    roster, endpoints = open_endpoints(2, certificates=certificates() if encrypted else None)
    for said in (b"", b"something"):
        stranger = call(endpoints[0])
        stranger.sendall(said)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stranger.close()
    assert_sums(in_threads(lambda rank: endpoints[rank].connect(roster, rank, 30.0), 2))
    for endpoint in endpoints:
        endpoint.close()


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    strange = contexts(security(tmp_path), "tls://")
    roster, endpoints = open_endpoints(2, certificates=certificates())
    stranger = Endpoint(LOOPBACK, strange)
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(endpoints[0].connect, roster, 0, 60.0)
        with pytest.raises(MemberLost, match=r"member 0 .* has no certificate of this cluster"):
            stranger.connect(roster, 1, 10.0)
        member = endpoints[1].connect(roster, 1, 60.0)
        assert_sums([listening.result(), member])
    for endpoint in (*endpoints, stranger):
        endpoint.close()


def test_nothing_is_said_in_the_clear_between_members_with_certificates() -> None:
    """A listener writes down what a caller with certificates says first: nothing of the run."""
    roster, endpoints = open_endpoints(2, certificates=certificates())
    with socket.create_server((LOOPBACK, 0)) as listener, ThreadPoolExecutor(1) as pool:
        seat = Seat(LOOPBACK, listener.getsockname()[1])
        calling = pool.submit(endpoints[1].connect, replace(roster, seats=(seat, roster.seats[1])), 1, 10.0)
        connection, _ = listener.accept()
        with connection:
            heard = connection.recv(1 << 16)
        with pytest.raises(MemberLost):
            calling.result()
    assert heard[:2] == b"\x16\x03"  # a TLS handshake
    assert job_digest(roster.job_id) not in heard
    for endpoint in endpoints:
        endpoint.close()
