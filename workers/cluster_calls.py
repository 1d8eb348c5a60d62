"""Questions to a Dask cluster that always come back: every one has a time limit.

Dask's own calls to workers wait as long as a frozen worker is silent, and as long as a lost scheduler takes
to return.
"""

import asyncio
import inspect
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Client
from distributed.client import ClosedClientError

from boost_core.errors import BoostError
from workers.errors import TrainingFailed, WorkersError

GRACE_SECONDS = 1.0  # for answers of which each has its own limit
DOUBT_SECONDS = 0.25  # for a worker that did not answer just before: it is asked, and hardly waited for


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

    Errors: the call's own; if the client is closed under the call, ClosedClientError or TimeoutError. Dask's own
    `sync` would then wait for ever for a loop that has ended, or fail on a result it never had.
    """
    runner: Any = client.loop
    loop: asyncio.AbstractEventLoop = runner.asyncio_loop
    question = _ask(call, *arguments)
    try:
        asked = asyncio.run_coroutine_threadsafe(question, loop)
        try:
            return asked.result(seconds)
        except TimeoutError:
            if not loop.is_closed():
                asked.cancel()
            raise TimeoutError(f"no answer in {seconds:g} s") from None
        except CancelledError as error:
            raise ClosedClientError(f"the connection to {describe(client)} was closed under a call") from error
    finally:
        close_unstarted([question])


async def _ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """The client's methods give coroutines when they are called on its loop, as here."""
    answer = call(*arguments)
    return await answer if inspect.isawaitable(answer) else answer


def close_unstarted(begun: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """Close the coroutines that a loop has been given and never came to start, because it ended first.

    Left alone, each would warn that it was never awaited whenever the garbage collector finds it.
    """
    for coroutine in begun:
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


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


@contextmanager
def losing_the_scheduler(client: Client) -> Iterator[None]:
    """Whatever fails because the client was closed meanwhile is the loss of the scheduler. Errors: SchedulerLost."""
    try:
        yield
    except (WorkersError, BoostError):
        raise
    except Exception as error:  # a client that is closed fails in several ways, at any call
        if client.status == "running":
            raise
        raise SchedulerLost(f"the connection to the scheduler of {describe(client)} was lost: {error!r}") from error


def describe(client: Client) -> str:
    """What to call a cluster in messages."""
    return str(client.scheduler.address) if client.scheduler else "the cluster"


def call_workers(
    client: Client,
    function: Callable[..., Any],
    workers: Sequence[str],
    *arguments: Any,
    seconds: float,
    doubted: Collection[str] = (),
) -> dict[str, Any]:
    """function(*arguments, dask_worker=...) on each of the workers at once, on their event loops.

    Returns what each answered, or the exception that came instead: its own, TimeoutError if it was silent for
    so many seconds, OSError if it could not be reached. Who is doubted has DOUBT_SECONDS at most.
    """

    begun: list[Coroutine[Any, Any, Any]] = []

    async def call(worker: str) -> Any:
        async with asyncio.timeout(min(seconds, DOUBT_SECONDS) if worker in doubted else seconds):
            return (await client.run(function, *arguments, workers=[worker], on_error="return"))[worker]

    async def call_all() -> list[Any]:
        begun.extend(map(call, workers))
        return await asyncio.gather(*begun, return_exceptions=True)

    try:
        answers = bounded(client, call_all, seconds=seconds + GRACE_SECONDS)
    except Exception as error:  # see known_workers
        answers = [error] * len(workers)
    finally:
        close_unstarted(begun)
    return dict(zip(workers, answers, strict=True))
