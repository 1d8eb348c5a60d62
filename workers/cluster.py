"""Connects to a Dask cluster: an embedded one of local processes, or an external scheduler.

local:N           N worker processes on this machine, gone when the connection is closed
tcp://host:port   a scheduler that runs already
"""

import asyncio
import logging
import tempfile
from contextlib import ExitStack
from types import TracebackType

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.comm.core import connect as comm_connect

from workers import plugin
from workers.errors import GangUnavailable

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 10.0
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


def connect(target: str, seconds: float = ANSWER_SECONDS) -> Connection:
    """Connect and make the workers fit for gangs, also those that join later.

    seconds: for an external scheduler to answer. Errors: GangUnavailable names the target and what to do.
    """
    stack = ExitStack()
    try:
        if target.startswith("local:"):
            client = start_local(local_workers(target), stack)
        else:
            client = reach(target, seconds, stack)
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


async def answers(address: str, seconds: float) -> None:
    """Errors: OSError, TimeoutError unless a Dask server answers.

    Asked first, because a client would wait for ever for a listener that accepts it and says nothing.
    """
    comm = await asyncio.wait_for(comm_connect(address, timeout=seconds), seconds)
    await comm.close()


def reach(target: str, seconds: float, stack: ExitStack) -> Client:
    """A client of a scheduler that runs already. Errors: GangUnavailable."""
    scheme = target.partition("://")[0]
    if scheme == "tls":
        raise GangUnavailable(f"{target}: TLS clusters are not supported yet; give tcp://host:port")
    if scheme != "tcp":
        raise GangUnavailable(f"{target!r} is no cluster: give local:N or tcp://host:port")
    try:
        asyncio.run(answers(target, seconds))
        client: Client = stack.enter_context(Client(target, timeout=seconds, set_as_default=False))
    except (OSError, TimeoutError, ValueError) as error:
        raise GangUnavailable(
            f"no Dask scheduler answers at {target} within {seconds:g} s ({error!r}); "
            "is it running, and is this its address?"
        ) from error
    return client
