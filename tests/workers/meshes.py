"""Meshes whose members are threads of the test: real sockets over loopback, one process."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from workers.endpoint import Endpoint
from workers.mesh import Deadlines, Member, MeshCollective
from workers.roster import Roster, Seat, new_secret

LOOPBACK = "127.0.0.1"


def open_endpoints(size: int, job_id: str = "job", run: int = 1) -> tuple[Roster, list[Endpoint]]:
    """Listening endpoints and the roster of their members."""
    endpoints = [Endpoint(LOOPBACK) for _ in range(size)]
    seats = tuple(Seat(endpoint.host, endpoint.port) for endpoint in endpoints)
    return Roster(job_id, run, seats, new_secret()), endpoints


def in_threads(function: Callable[[int], Any], size: int) -> list[Any]:
    """function(rank) in one thread per rank; results by rank, an exception in place of a missing result."""
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(function, rank) for rank in range(size)]
    return [future.exception() or future.result() for future in futures]


def connected(size: int, deadlines: Deadlines | None = None, run: int = 1) -> list[MeshCollective]:
    """The ends of a connected mesh, by rank."""
    roster, endpoints = open_endpoints(size, run=run)

    def connect(rank: int) -> MeshCollective:
        links = endpoints[rank].connect(roster, rank, 10.0)
        return MeshCollective(Member(roster.job_id, roster.run, rank), links, deadlines)

    ends = in_threads(connect, size)
    for endpoint in endpoints:
        endpoint.close()
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return ends
