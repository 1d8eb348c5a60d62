"""The Dask plugin that makes a worker take part in gangs, and the functions that speak to it from outside.

The functions are called through `client.run`, which puts the Worker into `dask_worker`; they run on the
worker's event loop, so none of them waits for anything.
"""

from dataclasses import dataclass
from typing import Any

from distributed import Client, Worker
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import WorkerPlugin

from workers.cluster_calls import bounded
from workers.endpoint import Endpoint
from workers.lease import LeaseBook, Refusal
from workers.machine_limits import memory_limit
from workers.roster import Seat
from workers.shelf import Inventory, Shelf
from workers.tls import contexts

NAME = "edgewise-gang"
REGISTER_SECONDS = 30.0
STARTED = ("executing", "long-running")


@dataclass(frozen=True)
class Occupancy:
    """Who has a worker, and its memory. holder: the (job, run) that has it; limit_bytes: Dask's setting, None = none;
    machine_bytes: of its container or machine."""

    holder: tuple[str, int] | None
    limit_bytes: int | None
    machine_bytes: int


class GangPlugin(WorkerPlugin):
    """Holds a worker's leases and its shelf. Registered once per cluster; workers that join later get it too."""

    name = NAME
    idempotent = True
    leases: LeaseBook
    shelf: Shelf

    def setup(self, worker: Worker) -> None:
        host = get_address_host(worker.address)
        certificates = contexts(worker.security, worker.address)
        self.leases = LeaseBook(lambda: Endpoint(host, certificates))
        self.shelf = Shelf()

    def teardown(self, worker: Worker) -> None:
        self.leases.close()

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """End a member whose task was cancelled, or whose driver's client is gone from the scheduler."""
        if start in STARTED and finish == "released":
            self.leases.task_gone(str(key), "the gang's driver gave it up or is gone")


def register(client: Client) -> None:
    """Make all workers of a cluster, present and future, fit for gangs. Again is harmless."""
    bounded(client, client.register_plugin, GangPlugin(), seconds=REGISTER_SECONDS)


def plugin_of(worker: Worker) -> GangPlugin:
    """Errors: RuntimeError if the plugin is not registered."""
    plugin = worker.plugins.get(NAME)
    if not isinstance(plugin, GangPlugin):
        raise RuntimeError(f"worker {worker.address} has no plugin {NAME!r}; call workers.plugin.register first")
    return plugin


def leases_of(worker: Worker) -> LeaseBook:
    """Errors: RuntimeError if the plugin is not registered."""
    return plugin_of(worker).leases


def inventory(job_id: str, dask_worker: Worker) -> Inventory | None:
    """What the worker still holds of a job."""
    return plugin_of(dask_worker).shelf.inventory(job_id)


def shelved(job_id: str, dask_worker: Worker) -> bytes | None:
    """The rounds of a job that the worker's member has finished, as a checkpoint."""
    return plugin_of(dask_worker).shelf.checkpoint(job_id)


def clear(job_id: str, dask_worker: Worker) -> None:
    """Drop what the worker holds of a job."""
    plugin_of(dask_worker).shelf.clear(job_id)


def holder(dask_worker: Worker) -> tuple[str, int] | None:
    """The (job, run) that has the worker."""
    return leases_of(dask_worker).holder


def occupancy(dask_worker: Worker) -> Occupancy:
    """Who has the worker, and its memory."""
    return Occupancy(holder(dask_worker), dask_worker.memory_manager.memory_limit or None, memory_limit())


def take_seat(job_id: str, run: int, seconds: float, dask_worker: Worker) -> Seat | Refusal:
    """Lease the worker; where its member will listen. See LeaseBook.take."""
    lease = leases_of(dask_worker).take(job_id, run, seconds)
    if isinstance(lease, Refusal):
        return lease
    return Seat(lease.endpoint.host, lease.endpoint.port, dask_worker.address)


def release(job_id: str, run: int, reason: str, dask_worker: Worker) -> None:
    """Give the worker back; a running member is told to end for this reason."""
    leases_of(dask_worker).release(job_id, run, reason)


def cancel(job_id: str, run: int, dask_worker: Worker) -> bool:
    """Ask the worker's member to stop after its round."""
    return leases_of(dask_worker).cancel(job_id, run)
