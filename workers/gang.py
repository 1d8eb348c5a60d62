"""Trains a job on a gang: one member on each of several Dask workers, all or none.

    lease workers -> assignments, roster, secret -> one long task a worker -> follow them -> one outcome

Dask places the members and tells who died; the members talk to each other without it. The driver only
watches: it hands on progress, passes on a cancellation, and turns the first sign of trouble into one error.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from distributed import Client, Future

from workers import plugin
from workers.assignment import assign, reassign
from workers.cluster_calls import bounded, losing_the_scheduler
from workers.gang_leases import GivenUp, Held, Wanted, hold_workers
from workers.gang_member import Ticket, train_member
from workers.gang_watch import PREFIX, Gang, Watch, subscribed
from workers.job import Assignment, MemberOutcome, Progress, TrainingJob, TrainingOutcome, join_outcomes
from workers.mesh import Deadlines
from workers.recovery import Plan, Recovery
from workers.relay import Receiver
from workers.restart import Remains
from workers.roster import Roster, new_secret
from workers.untrained import untrained

CANCEL_SECONDS = 5.0
# Of the deadline: members' waits begin when their own part of a round is done, and what they say of it travels.
WAITING = 0.95
PRIORITY = 100  # before other tasks that wait for a thread: all members wait for the one that waits


@dataclass(frozen=True)
class GangSettings:
    """How long a gang waits, in seconds, and how rows are dealt.

    deadline_seconds: until a member that falls silent within a round is noticed. prepare_seconds: the same before the
    first round, while members read, bin and compile. connect_seconds: until all members have begun and found each
    other. lease_seconds: for busy or missing workers. shuffle_seed: deal row ranges at random; idle: ranks that get no
    rows (neither changes the model). member: what members run, to be imported on the worker. recoveries: how often a
    gang that lost members is formed again; settle_seconds: how long after the break it waits for replacements before it
    goes on with those that are left, `fewest` of them at least. only: the addresses that the first gang is formed of
    (empty: any may be), for which it waits place_seconds.
    """

    deadline_seconds: float = 30.0
    prepare_seconds: float = 600.0
    connect_seconds: float = 30.0
    lease_seconds: float = 60.0
    shuffle_seed: int | None = None
    idle: tuple[int, ...] = ()
    member: str = "workers.member:run_member"
    recoveries: int = 100
    settle_seconds: float = 3.5
    fewest: int = 1
    only: tuple[str, ...] = ()
    place_seconds: float = 5.0


def train_on_gang(
    job: TrainingJob,
    client: Client,
    n_workers: int | None,
    progress: Progress,
    settings: GangSettings | None = None,
) -> TrainingOutcome:
    """Train on n_workers workers of the cluster (None: on all it has). Calls `progress` from this thread.

    A gang that loses members is formed again (recovery.py). A job that is cancelled, also while it still waits for
    workers, gives an outcome that says so.

    Errors: GangUnavailable if the workers were not free in time; TrainingFailed names the worker and what
    happened to it; DataError, BoundBroken and the like of a member are raised as they are. Afterwards
    nothing is left on the cluster, whatever happened; a worker that was frozen is free once it has woken.
    """
    settings, receiver = settings or GangSettings(), Receiver(progress)

    def attempt(job: TrainingJob, plan: Plan) -> list[MemberOutcome]:
        return run_gang(job, client, plan, (progress, receiver), settings)

    began = time.perf_counter()
    try:
        with losing_the_scheduler(client):
            plugin.register(client)
        outcomes = Recovery(client, job, progress, settings.recoveries).run(attempt, n_workers)
    except GivenUp:
        return untrained(job)
    outcome, spent = join_outcomes(outcomes, workers=len(outcomes)), time.perf_counter() - began
    return replace(outcome, waited=max(0.0, spent - outcome.seconds["total"]))


def run_gang(
    job: TrainingJob, client: Client, plan: Plan, told: tuple[Progress, Receiver], settings: GangSettings
) -> list[MemberOutcome]:
    """Run settings.member on one gang; every member's outcome. Errors: as train_on_gang, GangBroken and GivenUp."""
    progress, receiver = told
    with hold_workers(client, _wanted(job, plan, progress, settings)) as held, losing_the_scheduler(client):
        tickets = make_tickets(job, held, settings, plan)
        plan.assignments = {a: t.assignment for a, t in zip(held.addresses, tickets, strict=True)}
        with subscribed(client, tickets[0].topic) as news, submitted(client, held, tickets) as futures:
            gang = Gang(job.job_id, job.fence, held.addresses, futures)
            return Watch(client, gang, progress, news, receiver).until_done()


def _wanted(job: TrainingJob, plan: Plan, progress: Progress, settings: GangSettings) -> Wanted:
    placed = plan.first and bool(settings.only)
    return Wanted(
        job.job_id,
        job.fence,
        plan.n_workers,
        wait_seconds=settings.place_seconds if placed else settings.lease_seconds,
        lapse_seconds=2 * settings.connect_seconds,
        given_up=progress.cancel_requested,
        first=tuple(plan.remains.held),
        avoid=plan.avoid,
        doubted=plan.doubted,
        only=settings.only if placed else (),
        settles_at=None if plan.first else plan.noticed + settings.settle_seconds,
        fewest=settings.fewest,
    )


def make_tickets(job: TrainingJob, held: Held, settings: GangSettings, plan: Plan) -> list[Ticket]:
    """What each member gets, by rank; among it the secret of this run."""
    name = f"{PREFIX}{job.job_id}-{job.fence}-{uuid.uuid4().hex[:8]}"
    roster = Roster(job.job_id, job.fence, held.seats, new_secret())
    return [
        Ticket(
            assignment=replace(assignment, resume=plan.remains.resume),
            roster=roster,
            deadlines=Deadlines(WAITING * settings.deadline_seconds, settings.prepare_seconds),
            connect_seconds=settings.connect_seconds,
            function=settings.member,
            key=f"{name}-{assignment.rank}",
            topic=name,
        )
        for assignment in _assignments(job, held, settings, plan.remains)
    ]


def _assignments(job: TrainingJob, held: Held, settings: GangSettings, remains: Remains) -> list[Assignment]:
    """No member gets more threads than its worker has, whatever the job asks for: others share the machine."""
    threads = [worker.threads for worker in held.workers]
    if remains.held:
        dealt = reassign(job, threads, remains.holdings(held.addresses))
    else:
        dealt = assign(job, threads, settings.shuffle_seed, settings.idle)
    return [replace(each, threads=min(each.threads, limit)) for each, limit in zip(dealt, threads, strict=True)]


@contextmanager
def submitted(client: Client, held: Held, tickets: list[Ticket]) -> Iterator[list[Future[Any]]]:
    """The members' tasks, each bound to its worker; none is left afterwards."""
    futures: list[Future[Any]] = []
    try:
        for address, ticket in zip(held.addresses, tickets, strict=True):
            future = client.submit(
                train_member,
                ticket,
                key=ticket.key,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
                priority=PRIORITY,
            )
            futures.append(future)
        yield futures
    finally:
        left = [future for future in futures if not future.done()]
        with suppress(Exception):  # a scheduler that is gone has dropped them; what broke the gang matters more
            bounded(client, client.cancel, left, seconds=CANCEL_SECONDS)
        for future in futures:
            future.release()
