"""Calls to a cluster whose client ends under them."""

import asyncio
import gc
from typing import Any

import pytest

from workers.cluster_calls import bounded, call_workers


class EndingClient:
    """A client whose loop ends when a call has run for so many of its turns."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def sync(self, call: Any, callback_timeout: float) -> Any:
        loop = asyncio.new_event_loop()
        future: asyncio.Future[Any] = asyncio.ensure_future(call(), loop=loop)
        for _ in range(self.turns):
            loop.call_soon(loop.stop)
            loop.run_forever()
        loop.close()
        if future.done():
            return future.result()
        future._log_destroy_pending = False  # type: ignore[attr-defined]
        raise TimeoutError(f"nothing came in {callback_timeout} seconds")

    async def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return {worker: function(*arguments) for worker in workers}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("turns", range(9))
def test_a_loop_that_ends_leaves_no_coroutine_unawaited(turns: int) -> None:
    client: Any = EndingClient(turns)
    answers = call_workers(client, int, ["tcp://a", "tcp://b"], "7", seconds=1.0)
    for answer in answers.values():
        assert answer == 7 or isinstance(answer, TimeoutError)
    assert set(answers) == {"tcp://a", "tcp://b"}
    gc.collect()


def test_the_last_turns_suffice() -> None:
    client: Any = EndingClient(turns=8)
    assert call_workers(client, int, ["tcp://a"], "7", seconds=1.0) == {"tcp://a": 7}


def test_a_call_that_is_no_coroutine() -> None:
    class Plain:
        def sync(self, call: Any, callback_timeout: float) -> Any:
            assert callback_timeout == 1.0
            return call()

    client: Any = Plain()
    assert bounded(client, int, "7", seconds=1.0) == 7
