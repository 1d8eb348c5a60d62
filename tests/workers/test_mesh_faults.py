"""What a member of a mesh sees when another dies, goes silent, or does not belong to its round."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from boost_core.errors import CollectiveError, DeadlinePassed, MemberLost, StaleMessage
from tests.workers.meshes import LOOPBACK, certificates, connected, in_threads
from workers.link import Link
from workers.mesh import Deadlines, Member, MeshCollective
from workers.messages import HEADER, Header, Kind, Place, dtype_code, job_digest

pytestmark = [pytest.mark.alone, pytest.mark.faults]

ONES = np.ones(10, np.int64)
LARGE = np.ones(1 << 20, np.int64)
PATIENT = Deadlines(60.0, 60.0)  # a test that waits for this has failed
HASTY = Deadlines(0.2, 0.2)
FAST = 5.0  # seconds; far below PATIENT
PLACE = Place(job_digest("job"), 1, 0, 0)
HEADER_OF_ONES = Header(PLACE, Kind.SUM, dtype_code(np.int64), 10, 80)


def loopback_pair(encrypted: bool) -> tuple[socket.socket, socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    if not encrypted:
        return here, there
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(certificates().listening.wrap_socket, there, server_side=True)
        return certificates().calling.wrap_socket(here), listening.result()


class Puppet:
    """Member 1 of 2, whose bytes the test writes by hand; `member` is the real member 0."""

    def __init__(self, encrypted: bool) -> None:
        here, self.socket = loopback_pair(encrypted)
        self.link = Link(1, "member 1 (puppet)", here)
        self.member = self.real_member(PATIENT)

    def real_member(self, deadlines: Deadlines) -> MeshCollective:
        return MeshCollective(Member("job", 1, 0), [self.link], deadlines)

    def die(self) -> None:
        self.socket.close()


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def puppet(request: pytest.FixtureRequest) -> Iterator[Puppet]:
    puppet = Puppet(request.param)
    yield puppet
    puppet.die()
    puppet.member.close()


@pytest.fixture
def quartet() -> Iterator[list[MeshCollective]]:
    ends = connected(4, Deadlines(0.5, 0.5))
    yield ends
    for end in ends:
        end.close()


def seconds(operation: Callable[[], object]) -> float:
    start = time.monotonic()
    operation()
    return time.monotonic() - start


@pytest.mark.parametrize("n_bytes", [0, 1, HEADER.size - 1, HEADER.size, HEADER.size + 1, HEADER.size + 79])
def test_a_member_that_dies_within_its_message_is_lost(puppet: Puppet, n_bytes: int) -> None:
    puppet.socket.sendall((HEADER_OF_ONES.pack() + ONES.tobytes())[:n_bytes])
    puppet.die()
    with pytest.raises(MemberLost, match=r"member 1 \(puppet\)"):
        puppet.member.sum(ONES)


def test_a_member_that_resets_its_connection_is_lost(puppet: Puppet) -> None:
    puppet.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    puppet.die()
    with pytest.raises(MemberLost, match=r"member 1 \(puppet\)"):
        puppet.member.sum(ONES)


def test_a_member_that_dies_while_it_is_waited_for_is_lost_at_once(puppet: Puppet) -> None:
    """It dies after it has received this member's message, so this member is waiting by then."""

    def die_when_asked() -> None:
        puppet.socket.recv(1)
        puppet.die()

    thread = threading.Thread(target=die_when_asked)
    thread.start()
    with pytest.raises(MemberLost):
        assert seconds(lambda: puppet.member.sum(ONES)) < FAST
    thread.join()


def test_a_member_that_dies_while_it_is_sent_much_is_lost(puppet: Puppet) -> None:
    """Its message is complete; what it should receive is more than the sockets hold."""
    gathered = Header(PLACE, Kind.ALL_GATHER, dtype_code(np.int64), 0, 0)

    def die_when_asked() -> None:
        puppet.socket.sendall(gathered.pack())
        puppet.socket.recv(1000)
        puppet.die()

    thread = threading.Thread(target=die_when_asked)
    thread.start()
    with pytest.raises(MemberLost, match="puppet"):
        puppet.member.all_gather(LARGE)
    thread.join()


@pytest.mark.parametrize("n_bytes", [0, 10, HEADER.size, HEADER.size + 10])
def test_a_silent_member_is_named_once_the_deadline_has_passed(puppet: Puppet, n_bytes: int) -> None:
    puppet.socket.sendall((HEADER_OF_ONES.pack() + ONES.tobytes())[:n_bytes])
    member = puppet.real_member(HASTY)
    start = time.monotonic()
    with pytest.raises(DeadlinePassed, match=r"0\.2 s for member 1 \(puppet\) in round 0, step 0 \(sum\)"):
        member.sum(ONES)
    assert 0.2 <= time.monotonic() - start < FAST


def test_a_member_that_does_not_read_is_named_once_the_deadline_has_passed(puppet: Puppet) -> None:
    puppet.socket.sendall(Header(PLACE, Kind.ALL_GATHER, dtype_code(np.int64), 0, 0).pack())
    with pytest.raises(DeadlinePassed, match="puppet"):
        puppet.real_member(HASTY).all_gather(LARGE)


def test_rounds_and_their_preparation_have_different_deadlines(puppet: Puppet) -> None:
    member = puppet.real_member(Deadlines(round=0.1, prepare=60.0))
    member.begin_round(3)
    with pytest.raises(DeadlinePassed, match=r"0\.1 s .* round 3"):
        member.barrier()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"job": job_digest("other")}, f"job {job_digest('other').hex()[:8]}, run 1, round 0, step 0"),
        ({"run": 7}, "run 7, round 0, step 0"),
        ({"round": 7}, "run 1, round 7, step 0"),
        ({"step": 7}, "run 1, round 0, step 7"),
    ],
)
def test_a_message_of_another_place_is_stale_by_name(
    puppet: Puppet, changed: dict[str, int | bytes], words: str
) -> None:
    """Before its payload has come, which may be shorter than the expected one."""
    stale = HEADER_OF_ONES._replace(place=PLACE._replace(**changed))
    puppet.socket.sendall(stale.pack())
    with pytest.raises(StaleMessage, match="puppet") as caught:
        puppet.member.sum(ONES)
    assert words in str(caught.value)
    assert f"expected {PLACE}" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": Kind.MAX}, "for max"),
        ({"dtype": dtype_code(np.float64)}, "float64"),
        ({"n_rows": 5, "n_bytes": 40}, "10 rows of int64"),
        ({"kind": 99, "dtype": 98}, "kind 99"),
    ],
)
def test_members_that_do_different_things_are_told_so(puppet: Puppet, changed: dict[str, int], words: str) -> None:
    puppet.socket.sendall(HEADER_OF_ONES._replace(**changed).pack())
    with pytest.raises(CollectiveError, match=words):
        puppet.member.sum(ONES)


def test_bytes_of_another_protocol_are_refused(puppet: Puppet) -> None:
    puppet.socket.sendall(b"GET / HTTP/1.1\r\n" * 10)
    with pytest.raises(CollectiveError, match="not a message of this protocol"):
        puppet.member.sum(ONES)


def test_a_gathered_message_whose_size_is_no_multiple_of_a_row_is_refused(puppet: Puppet) -> None:
    odd = Header(PLACE, Kind.ALL_GATHER, dtype_code(np.int64), 3, 25)
    puppet.socket.sendall(odd.pack())
    with pytest.raises(CollectiveError, match="same shape"):
        puppet.member.all_gather(ONES)


def test_a_dtype_that_cannot_travel_is_refused_before_anything_is_sent(puppet: Puppet) -> None:
    with pytest.raises(CollectiveError, match="complex128"):
        puppet.member.all_gather(np.zeros(3, complex))


def test_after_an_error_nothing_works_any_more(puppet: Puppet) -> None:
    puppet.socket.sendall(HEADER_OF_ONES._replace(kind=Kind.MAX).pack())
    with pytest.raises(CollectiveError, match="max"):
        puppet.member.sum(ONES)
    with pytest.raises(MemberLost):
        puppet.member.sum(ONES)


def test_one_members_error_ends_the_whole_gang_at_once(quartet: list[MeshCollective]) -> None:
    def work(rank: int) -> None:
        with quartet[rank] as member:
            if rank == 2:
                raise ValueError("this member's own mistake")
            member.sum(ONES)

    results = in_threads(work, 4)
    assert isinstance(results[2], ValueError)
    assert all(isinstance(results[rank], MemberLost) for rank in (0, 1, 3))


@pytest.mark.parametrize("values", [ONES, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("silent", range(4))
def test_all_name_the_silent_one_and_nobody_else(
    quartet: list[MeshCollective], values: np.ndarray, silent: int
) -> None:
    """None waits for a member that itself waits for the silent one."""
    port = quartet[(silent + 1) % 4]._links[silent].name
    results = in_threads(lambda rank: None if rank == silent else quartet[rank].all_gather(values), 4)
    first = [error for error in results if isinstance(error, DeadlinePassed)]
    assert first
    for error in first:
        assert str(error).startswith(f"waited 0.5 s for {port} in round")
    assert sum(isinstance(error, CollectiveError) for error in results) == 3


def test_abort_from_another_thread_frees_a_waiting_member(puppet: Puppet) -> None:
    def abort_when_asked() -> None:
        puppet.socket.recv(1)
        puppet.member.abort("the job was given up")

    thread = threading.Thread(target=abort_when_asked)
    thread.start()
    with pytest.raises(CollectiveError, match="the job was given up"):
        puppet.member.sum(ONES)
    thread.join()


def test_links_must_lead_to_all_other_members() -> None:
    here, there = loopback_pair(encrypted=False)
    with here, there, pytest.raises(ValueError, match="member 0 of 2 has links to"):
        MeshCollective(Member("job", 1, 0), [Link(2, "member 2", here)])
