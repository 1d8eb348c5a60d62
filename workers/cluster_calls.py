"""Questions to a Dask cluster that always come back: every one has a time limit.

Dask's own calls to workers wait as long as a frozen worker is silent, and as long as a lost scheduler takes
to return.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Client

from workers.errors import TrainingFailed


class SchedulerLost(TrainingFailed):
    """The cluster's scheduler does not answer any more."""


@dataclass(frozen=True)
class WorkerNews:
    """What the scheduler knows of a worker it is connected to. ready: takes tasks now."""

    address: str
    host: str
    threads: int
    ready: bool


def bounded(client: Client, call: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
    """A method of the client, or a coroutine function for its loop, with a time limit.

    Errors: the call's own; TimeoutError, which also comes if the client is closed under the call. Then Dask would
    wait for ever for a loop that has ended.
    """
    return client.sync(partial(call, *arguments), callback_timeout=seconds)


def known_workers(client: Client, seconds: float) -> dict[str, WorkerNews]:
    """The scheduler's workers by address. Errors: SchedulerLost."""

    scheduler: Any = client.scheduler
    if scheduler is None or client.status != "running":
        raise SchedulerLost(f"the connection to the scheduler of {describe(client)} was lost")

    try:
        known = bounded(client, partial(scheduler.identity, n_workers=-1), seconds=seconds)["workers"]
    except Exception as error:  # a client that is closed meanwhile fails in several ways
        raise SchedulerLost(f"the scheduler of {describe(client)} does not answer: {error!r}") from error
    return {
        address: WorkerNews(address, worker["host"], worker["nthreads"], worker["status"] == "running")
        for address, worker in known.items()
    }


def describe(client: Client) -> str:
    """What to call a cluster in messages."""
    return str(client.scheduler.address) if client.scheduler else "the cluster"


def call_workers(
    client: Client, function: Callable[..., Any], workers: Sequence[str], *arguments: Any, seconds: float
) -> dict[str, Any]:
    """function(*arguments, dask_worker=...) on each of the workers at once, on their event loops.

    Returns what each answered, or the exception that came instead: its own, TimeoutError if it was silent for
    so many seconds, OSError if it could not be reached.
    """

    async def call(worker: str) -> Any:
        answers = client.run(function, *arguments, workers=[worker], on_error="return")
        return (await asyncio.wait_for(answers, seconds))[worker]

    async def call_all() -> list[Any]:
        return await asyncio.gather(*map(call, workers), return_exceptions=True)

    try:
        answers = bounded(client, call_all, seconds=seconds + 1.0)
    except Exception as error:  # see known_workers
        answers = [error] * len(workers)
    return dict(zip(workers, answers, strict=True))
