"""Runs one member of an external cluster: its scheduler, or a worker with the nanny that restarts it.

Dask would move a worker's data to disk, pause it or end it by rules of its own about memory. A member's arrays are
not Dask's to move, so these rules are off: what a job needs is estimated before it starts, and the container's
limit is the last word.
"""

import asyncio
import signal
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import dask
from distributed import Nanny, Scheduler
from distributed.security import Security

from workers.machine_limits import cpu_limit, memory_limit
from workers.tls import security

NO_RULES = {f"distributed.worker.memory.{rule}": False for rule in ("target", "spill", "pause", "terminate")}
# A scheduler that comes back is waited for by new workers: theirs end with it, and their nannies with them.
DEATH_SECONDS = 60.0
BEAT_SECONDS = 5.0
OWN_PAGES = "127.0.0.1:0"  # Dask serves pages in the clear, to whoever asks: nobody beyond this machine may


@dataclass(frozen=True)
class MemberPlace:
    """Where a member listens, its certificates (None: in the clear), and the folder of its files.

    ready_file: touched every few seconds while the member is well.
    """

    host: str
    tls_dir: Path | None
    folder: Path | None = None
    ready_file: Path | None = None

    def security(self) -> Security | None:
        """Errors: GangUnavailable if a certificate is missing."""
        return security(self.tls_dir) if self.tls_dir else None

    async def keep_telling(self, is_well: Callable[[], bool]) -> None:
        """Touch the file as long as the member is well; its event loop is, if this runs."""
        while True:
            if self.ready_file is not None and is_well():
                self.ready_file.touch()
            await asyncio.sleep(BEAT_SECONDS)

    @property
    def protocol(self) -> str:
        """What members speak."""
        return "tls" if self.tls_dir else "tcp"


def run_scheduler(place: MemberPlace, port: int, ready: Callable[[str], None]) -> None:
    """Run a scheduler until a signal ends it. `ready` gets its address. Errors: OSError, GangUnavailable."""

    async def serve() -> None:
        stop = stop_signal()
        async with Scheduler(
            host=place.host,
            port=port,
            protocol=place.protocol,
            security=place.security(),
            dashboard=False,
            idle_timeout=None,
        ) as scheduler:
            ready(scheduler.address)
            await first_of(stop.wait(), scheduler.finished(), place.keep_telling(lambda: True))

    asyncio.run(serve())


def run_worker(place: MemberPlace, scheduler: str, threads: int, ready: Callable[[str], None]) -> int:
    """Run a worker until a signal ends it (then 0), or its scheduler is gone (then 1: start it again).

    threads: 0 = as many as the container may use cores. Errors: OSError, GangUnavailable.
    """

    async def serve() -> int:
        stop = stop_signal()
        async with Nanny(
            scheduler,
            nthreads=threads or cpu_limit(),
            host=place.host,
            protocol=place.protocol,
            security=place.security(),
            local_directory=str(folder),
            memory_limit=memory_limit(),
            death_timeout=DEATH_SECONDS,
            dashboard=False,
            dashboard_address=OWN_PAGES,
            config=NO_RULES,
        ) as nanny:
            ready(str(nanny.worker_address))
            await first_of(stop.wait(), nanny.finished(), place.keep_telling(nanny.is_alive))
        return 0 if stop.is_set() else 1

    with ExitStack() as stack:
        folder = place.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="edgewise-worker-"))
        stack.enter_context(dask.config.set(NO_RULES))
        return asyncio.run(serve())


def stop_signal() -> asyncio.Event:
    """Set when the process is asked to end."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, event.set)
    return event


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait for whatever comes first."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
