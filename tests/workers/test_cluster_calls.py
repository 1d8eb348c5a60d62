"""Calls to a cluster whose client ends under them."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.client import ClosedClientError

from workers import cluster_calls
from workers.cluster_calls import SchedulerLost, bounded, call_workers, losing_the_scheduler
from workers.errors import TrainingFailed

pytestmark = pytest.mark.alone


class EndingLoop(asyncio.SelectorEventLoop):
    """Ends when what another thread asked of it has run for so many of its turns."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns
        self.set_exception_handler(lambda *_: None)  # that tasks of a loop that ended are pending is the point

    def call_soon_threadsafe(self, *asked: Any, **options: Any) -> asyncio.Handle:
        handle = self.call_soon(*asked, **options)
        for _ in range(self.turns):
            self.call_soon(self.stop)
            self.run_forever()
        self.close()
        return handle


class EndingClient:
    """A client whose loop ends under a call."""

    scheduler = None

    def __init__(self, turns: int) -> None:
        self.loop = SimpleNamespace(asyncio_loop=EndingLoop(turns))

    async def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return {worker: function(*arguments) for worker in workers}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("turns", range(9))
def test_a_loop_that_ends_leaves_no_coroutine_unawaited(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_calls, "GRACE_SECONDS", 0.01)
    client: Any = EndingClient(turns)
    answers = call_workers(client, int, ["tcp://a", "tcp://b"], "7", seconds=0.01)
    for answer in answers.values():
        assert answer == 7 or isinstance(answer, TimeoutError)
    assert set(answers) == {"tcp://a", "tcp://b"}
    gc.collect()


def test_the_last_turns_suffice() -> None:
    client: Any = EndingClient(turns=8)
    assert call_workers(client, int, ["tcp://a"], "7", seconds=1.0) == {"tcp://a": 7}


def test_a_call_that_is_no_coroutine() -> None:
    client: Any = EndingClient(turns=4)
    assert bounded(client, int, "7", seconds=1.0) == 7


def test_a_call_that_the_closing_client_cancels() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    client: Any = EndingClient(turns=3)
    with pytest.raises(ClosedClientError, match="the cluster was closed under a call"):
        bounded(client, cancelled, seconds=1.0)


def test_a_client_whose_loop_has_ended() -> None:
    client: Any = EndingClient(turns=1)
    client.loop.asyncio_loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        bounded(client, int, "7", seconds=1.0)


@pytest.mark.parametrize(
    ("status", "raised", "seen"),
    [
        ("closed", AttributeError("no scheduler"), SchedulerLost),
        ("closing", ClosedClientError("closed"), SchedulerLost),
        ("closed", TrainingFailed("a member died"), TrainingFailed),
        ("running", AttributeError("no scheduler"), AttributeError),
    ],
)
def test_what_a_closed_client_breaks_is_the_loss_of_its_scheduler(
    status: str, raised: Exception, seen: type[Exception]
) -> None:
    client: Any = SimpleNamespace(status=status, scheduler=None)
    with pytest.raises(seen) as caught, losing_the_scheduler(client):
        raise raised
    assert type(caught.value) is seen


def test_who_is_doubted_is_hardly_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(cluster_calls.asyncio, "timeout", lambda seconds: limits.append(seconds) or no_limit())
    client: Any = EndingClient(turns=8)
    doubted = ("tcp://b",)
    answers = call_workers(client, int, ["tcp://a", "tcp://b"], "7", seconds=3.0, doubted=doubted)
    assert answers == {"tcp://a": 7, "tcp://b": 7}
    assert limits == [3.0, cluster_calls.DOUBT_SECONDS]


@asynccontextmanager
async def no_limit() -> AsyncIterator[None]:
    yield
