"""Getting workers for a gang: all that are needed, or none; and giving them back."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from distributed import Client

from workers import plugin
from workers.cluster_calls import WorkerNews, call_workers, describe, known_workers
from workers.errors import GangUnavailable
from workers.job import shown_run
from workers.lease import Refusal
from workers.roster import Seat

SURVEY_SECONDS = 2.0  # a worker that does not say in this time who holds it is left out
CALL_SECONDS = 10.0
GIVE_BACK_SECONDS = 0.5  # the scheduler delivers the call later too, so only the usual answer is waited for
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts; doubled each time
SETTLING_PAUSE = 0.25  # the longest while a gang that broke waits for replacements


class GivenUp(Exception):
    """The job was cancelled while it waited for workers. Not a failure, so not of the tree of errors."""


@dataclass(frozen=True)
class Wanted:
    """Which run wants how many workers (None: all there are), and for how long it waits for them.

    lapse_seconds: how long a lease lives without a member. given_up: asked while waiting. first: addresses that are
    taken before others; avoid: that are not taken at all; only: no others are taken (empty: any may be);
    doubted: did not answer lately; settles_at: time.monotonic() after which fewer will do, but not fewer than `fewest`
    (None: they never do).
    """

    job_id: str
    run: int
    n_workers: int | None
    wait_seconds: float
    lapse_seconds: float
    given_up: Callable[[], bool]
    first: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    settles_at: float | None = None
    fewest: int = 1

    def accepts(self, worker: WorkerNews) -> bool:
        """Whether a worker may be one of the gang's."""
        chosen = not self.only or worker.address in self.only
        return worker.ready and chosen and worker.address not in self.avoid


@dataclass(frozen=True)
class Held:
    """A gang's workers by rank, and where their members will listen."""

    workers: tuple[WorkerNews, ...]
    seats: tuple[Seat, ...]

    @property
    def addresses(self) -> list[str]:
        return [worker.address for worker in self.workers]


def in_order(live: Mapping[str, WorkerNews]) -> list[WorkerNews]:
    """Sorted by address, hosts taking turns, so that a small gang spreads over machines."""
    hosts: dict[str, list[WorkerNews]] = {}
    for _, worker in sorted(live.items()):
        hosts.setdefault(worker.host, []).append(worker)
    return [worker for turn in zip_longest(*hosts.values()) for worker in turn if worker is not None]


@contextmanager
def hold_workers(client: Client, wanted: Wanted) -> Iterator[Held]:
    """The leases of a gang's workers. An error ends all members; else each has ended its lease by itself.

    Errors: GangUnavailable says how many were there and who has the others; GivenUp; SchedulerLost.
    """
    held = wait_for_workers(client, wanted)
    try:
        yield held
    except BaseException as error:
        give_back(client, wanted, held.addresses, f"the gang was ended: {error!r}")
        raise


def wait_for_workers(client: Client, wanted: Wanted) -> Held:
    """Try until the leases are there or the time is over."""
    until = time.monotonic() + wanted.wait_seconds
    settles_at = math.inf if wanted.settles_at is None else wanted.settles_at
    pause, longest = FIRST_PAUSE, LONGEST_PAUSE if wanted.settles_at is None else SETTLING_PAUSE
    while True:
        settled = time.monotonic() >= settles_at
        held = try_once(client, wanted, settled)
        if isinstance(held, Held):
            return held
        if wanted.given_up():
            raise GivenUp(held)
        now = time.monotonic()
        if now >= until:
            raise GangUnavailable(f"{held}; waited {wanted.wait_seconds:g} s")
        time.sleep(max(0.0, min(pause, until - now, math.inf if settled else settles_at - now)))
        pause = min(2 * pause, longest)


def try_once(client: Client, wanted: Wanted, settled: bool = False) -> Held | str:
    """One attempt: all leases, or none and why. settled: as many as are free will do."""
    known = known_workers(client, CALL_SECONDS)
    live = {address: worker for address, worker in known.items() if wanted.accepts(worker)}
    needed = wanted.n_workers or max(1, len(live))
    holders = call_workers(client, plugin.holder, sorted(live), seconds=SURVEY_SECONDS, doubted=wanted.doubted)
    free = {address: live[address] for address, holder in holders.items() if holder is None}
    busy = {address: describe_holder(holder) for address, holder in holders.items() if holder is not None}
    if settled:
        needed = min(needed, max(wanted.fewest, len(free)))
    if len(free) >= needed:
        candidates = sorted(in_order(free), key=lambda worker: worker.address not in wanted.first)
        taken = take_some(client, wanted, candidates, needed, busy)
        if len(taken) == needed:
            workers = tuple(live[address] for address in taken)
            return Held(workers, tuple(taken.values()))
        give_back(client, wanted, list(taken), "not all workers of the gang could be had")
    reasons = "".join(f"; {address}: {reason}" for address, reason in busy.items())
    return (
        f"job {wanted.job_id} needs {needed} workers; {describe(client)} has {len(live)}, "
        f"{len(live) - len(busy)} of them free{reasons}"
    )


def take_some(
    client: Client, wanted: Wanted, candidates: list[WorkerNews], needed: int, refused: dict[str, str]
) -> dict[str, Seat]:
    """Lease candidates one after another until there are enough, or until there cannot be enough any more.

    Adds to `refused` who was not to be had, and why. Errors: GangUnavailable if it is of no use to ask again.
    Stopping early matters: of two drivers after the same workers, the one that comes second to the first
    worker both need takes none that the other waits for.
    """
    taken: dict[str, Seat] = {}
    for tried, candidate in enumerate(candidates):
        if len(taken) == needed or len(taken) + len(candidates) - tried < needed:
            break
        address = candidate.address
        arguments = (wanted.job_id, wanted.run, wanted.lapse_seconds)
        answer = call_workers(client, plugin.take_seat, [address], *arguments, seconds=CALL_SECONDS)[address]
        if isinstance(answer, Seat):
            taken[address] = answer
            continue
        refused[address] = answer.reason if isinstance(answer, Refusal) else f"does not answer ({answer!r})"
        if isinstance(answer, Refusal) and answer.for_good:
            give_back(client, wanted, list(taken), answer.reason)
            raise GangUnavailable(f"{address}: {answer.reason}")
    return taken


def give_back(client: Client, wanted: Wanted, addresses: list[str], reason: str) -> None:
    """End the run on these workers. One that does not answer gives itself back when its member ends."""
    arguments = (wanted.job_id, wanted.run, reason)
    call_workers(client, plugin.release, addresses, *arguments, seconds=GIVE_BACK_SECONDS)


def describe_holder(holder: object) -> str:
    """Why a worker is not free."""
    if isinstance(holder, tuple):
        return f"held by job {holder[0]}, run {shown_run(holder[1])}"
    return f"does not answer ({holder!r})"
