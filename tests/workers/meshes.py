"""Meshes whose members are threads of the test: real sockets over loopback, one process."""

import functools
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from service.certificates import make_certificates
from workers.endpoint import Endpoint
from workers.mesh import Deadlines, Member, MeshCollective
from workers.roster import Roster, Seat, new_secret
from workers.tls import Contexts, contexts, security

LOOPBACK = "127.0.0.1"


def open_endpoints(
    size: int, job_id: str = "job", run: int = 1, certificates: Contexts | None = None
) -> tuple[Roster, list[Endpoint]]:
    """Listening endpoints and the roster of their members."""
    endpoints = [Endpoint(LOOPBACK, certificates) for _ in range(size)]
    seats = tuple(Seat(endpoint.host, endpoint.port) for endpoint in endpoints)
    return Roster(job_id, run, seats, new_secret()), endpoints


def in_threads(function: Callable[[int], Any], size: int) -> list[Any]:
    """function(rank) in one thread per rank; results by rank, an exception in place of a missing result."""
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(function, rank) for rank in range(size)]
    return [future.exception() or future.result() for future in futures]


@functools.cache
def certificates() -> Contexts:
    """Those of a cluster that lasts as long as the tests."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        found = contexts(security(Path(folder)), "tls://")
    assert found is not None
    return found


def connected(
    size: int, deadlines: Deadlines | None = None, run: int = 1, certificates: Contexts | None = None
) -> list[MeshCollective]:
    """The ends of a connected mesh, by rank."""
    roster, endpoints = open_endpoints(size, run=run, certificates=certificates)

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
