"""Which workers a scheduler has, asked of the scheduler itself."""

from functools import partial
from typing import Any

from distributed import Client


def registered_workers(client: Client) -> dict[str, dict[str, Any]]:
    """What the scheduler knows of its workers, by address.

    Not `client.scheduler_info`: it answers from a field of the client that a timer of Dask's fills now and then
    with no workers at all, also between the question and the answer.
    """
    known: dict[str, dict[str, Any]] = client.sync(partial(client.scheduler.identity, n_workers=-1))["workers"]
    return known
