"""Connects to a Dask cluster: an embedded one of local processes, or an external scheduler.

local:N           N worker processes on this machine, gone when the connection is closed
tcp://host:port   a scheduler that runs already
tls://host:port   one that talks to members with its certificates only (tls.py)
"""

import asyncio
import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.comm.core import CommClosedError
from distributed.comm.core import connect as comm_connect
from distributed.security import Security

from workers import plugin
from workers.errors import GangUnavailable
from workers.tls import security

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 10.0
ATTEMPT_SECONDS = 0.5  # to reach a scheduler, before Dask's pauses between its own attempts begin anew
# Some time after a worker was lost Dask looks whether it is there, and if not it ends the nanny that would bring it
# back: a worker that starts slowly, or has just died again, would be gone for good. It reads the setting at every loss.
NEVER_GIVE_UP = {"distributed.deploy.lost-worker-timeout": "10000 hours"}


class Connection:
    """A connected client; as a context manager it gives the client. Close it from the thread that uses it."""

    def __init__(self, client: Client, resources: ExitStack) -> None:
        self.client = client
        self._resources = resources

    def __enter__(self) -> Client:
        return self.client

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. An embedded cluster ends with all its processes. Again is harmless."""
        self._resources.close()


def connect(target: str, seconds: float = ANSWER_SECONDS, tls_dir: Path | None = None) -> Connection:
    """Connect and make the workers fit for gangs, also those that join later.

    seconds: for an external scheduler to answer. tls_dir: this member's certificates.
    Errors: GangUnavailable names the target and what to do.
    """
    stack = ExitStack()
    try:
        if target.startswith("local:"):
            client = start_local(local_workers(target), stack)
        else:
            client = reach(target, seconds, stack, security(tls_dir) if tls_dir else None)
        plugin.register(client)
    except BaseException:
        stack.close()
        raise
    return Connection(client, stack)


def local_workers(target: str) -> int:
    """N of local:N. Errors: GangUnavailable."""
    text = target.removeprefix("local:")
    if not text.isdecimal() or int(text) < 1:
        raise GangUnavailable(f"{target!r} is no cluster: give local:N with at least one worker, as in local:2")
    return int(text)


def start_local(n_workers: int, stack: ExitStack) -> Client:
    """A cluster of processes that only this machine reaches. Its workers end when this process does."""
    dask.config.set(NEVER_GIVE_UP)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="edgewise-"))
    with dask.config.set({"temporary-directory": folder}):
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=max(1, CPU_COUNT // n_workers),
            processes=True,
            host=LOOPBACK,
            dashboard_address=f"{LOOPBACK}:0",  # None would take port 8787
            memory_limit=None,  # a member's arrays are not Dask's to spill, and a restarted worker loses them
            silence_logs=logging.CRITICAL,
        )
    stack.callback(cluster.close)
    client: Client = stack.enter_context(Client(cluster, set_as_default=False))
    return client


async def answers(address: str, seconds: float, members: Security | None) -> None:
    """Errors: OSError (also TimeoutError) unless a Dask server answers; it says why the last attempt failed.

    Asked first, because a client would wait for ever for a listener that accepts it and says nothing. In short
    attempts: within a long one Dask comes to try only every few seconds, and a job would wait whose scheduler is back.
    """
    arguments = members.get_connection_args("client") if members else {}
    until, attempt = time.monotonic() + seconds, ATTEMPT_SECONDS
    while True:
        left = until - time.monotonic()
        try:
            async with asyncio.timeout(left + ATTEMPT_SECONDS):  # later than Dask's own, which knows why
                comm = await comm_connect(address, timeout=min(attempt, left), **arguments)
        except CommClosedError:  # somebody hung up: it is no Dask server, or these certificates will not do
            raise
        except OSError as error:
            reason = error
            while isinstance(reason.__cause__, OSError):
                reason = reason.__cause__
            if time.monotonic() >= until:
                raise reason from None
            if isinstance(reason, TimeoutError):  # nobody refused: the way is long
                attempt *= 2
        else:
            await comm.close()
            return


def reach(target: str, seconds: float, stack: ExitStack, members: Security | None) -> Client:
    """A client of a scheduler that runs already. Errors: GangUnavailable."""
    scheme = target.partition("://")[0]
    if scheme not in {"tcp", "tls"}:
        raise GangUnavailable(f"{target!r} is no cluster: give local:N, tcp://host:port or tls://host:port")
    if scheme == "tls" and members is None:
        raise GangUnavailable(f"{target}: a TLS cluster needs the certificates of its members (tls_dir)")
    members = members if scheme == "tls" else None
    try:
        asyncio.run(answers(target, seconds, members))
        client = Client(target, timeout=seconds, set_as_default=False, security=members)
        stack.enter_context(client)
    except Exception as error:  # a server of another kind can say whatever Dask does not understand, or a size in EiB
        raise GangUnavailable(
            f"no Dask scheduler answers at {target} within {seconds:g} s ({error!r}); "
            "is it running, and is this its address?"
        ) from error
    return client
