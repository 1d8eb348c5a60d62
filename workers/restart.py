"""From where a job goes on: what survivors of a broken gang hold, or else its last checkpoint.

The survivors differ by a round at most, and whatever the furthest of them has finished is the model so far for all:
every member would have come to the same.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Client

from workers import plugin
from workers.assignment import Holdings
from workers.checkpoint import from_bytes
from workers.cluster_calls import call_workers, known_workers
from workers.errors import CheckpointDamaged, CheckpointsUnavailable
from workers.job import TrainingJob
from workers.last_checkpoint import last_checkpoint
from workers.shelf import Inventory

SURVEY_SECONDS = 2.0  # a worker that does not say in this time what it holds is counted as lost
FETCH_SECONDS = 30.0  # for the model so far of one worker
CLEAR_SECONDS = 0.5  # the scheduler delivers the call later too


@dataclass(frozen=True)
class Remains:
    """What a new gang can build on. resume: a checkpoint, None = begin anew; held: by worker, the rows it keeps;
    silent: workers that did not answer."""

    resume: bytes | None = None
    n_rounds: int = 0
    held: Mapping[str, Holdings] = field(default_factory=dict)
    silent: tuple[str, ...] = ()

    def holdings(self, workers: Sequence[str]) -> list[Holdings]:
        """By rank; nothing for a worker that is new to the job."""
        return [self.held.get(address, ((), ())) for address in workers]


def stored(job: TrainingJob) -> Remains:
    """What is left when no worker holds anything."""
    resume = last_checkpoint(job)
    return Remains(resume, from_bytes(resume).n_rounds if resume else 0)


def survey(client: Client, job: TrainingJob, doubted: Collection[str] = ()) -> Remains:
    """Ask all workers what they hold of a job, after the gang of this attempt broke; who is doubted is not waited for.

    The last checkpoint counts where nobody of that gang is left: it may be ahead of what an earlier one held.
    Errors: SchedulerLost; as last_checkpoint.
    """
    live = sorted(address for address, worker in known_workers(client, FETCH_SECONDS).items() if worker.ready)
    answers = call_workers(client, plugin.inventory, live, job.job_id, seconds=SURVEY_SECONDS, doubted=doubted)
    silent = tuple(address for address, answer in answers.items() if isinstance(answer, Exception))
    found = {address: answer for address, answer in answers.items() if isinstance(answer, Inventory)}
    best = max(found, key=lambda address: (found[address].n_rounds, found[address].fence), default="")
    resume: Any = best and call_workers(client, plugin.shelved, [best], job.job_id, seconds=FETCH_SECONDS)[best]
    if not isinstance(resume, bytes):
        return replace(stored(job), silent=silent)
    held = Remains(resume, found[best].n_rounds, disjoint(found), silent)
    if found[best].fence < job.fence:
        with suppress(CheckpointDamaged, CheckpointsUnavailable):  # survivors hold a model so far
            kept = stored(job)
            if kept.n_rounds > held.n_rounds:
                return replace(held, resume=kept.resume, n_rounds=kept.n_rounds)
    return held


def disjoint(found: Mapping[str, Inventory]) -> dict[str, Holdings]:
    """Who keeps its rows: those of the newest run first; one whose rows went to another since then keeps none."""
    held: dict[str, Holdings] = {}
    for address, each in sorted(found.items(), key=lambda item: -item[1].fence):
        own = (each.train_ranges, each.valid_ranges)
        if not any(_overlap(own[kind], other[kind]) for other in held.values() for kind in (0, 1)):
            held[address] = own
    return held


def _overlap(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in first for c, d in second)


def clear_shelves(client: Client, job_id: str) -> None:
    """The job is over: no worker holds its rows any longer than it takes to hear of it."""
    live = sorted(known_workers(client, CLEAR_SECONDS))
    call_workers(client, plugin.clear, live, job_id, seconds=CLEAR_SECONDS)
