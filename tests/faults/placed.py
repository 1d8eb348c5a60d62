"""Members that die at a place. Imported by the worker processes, by name; every failure is of the first attempt only.

What a member did is left in the checkpoints' folder: a line a round that it began.
"""

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from distributed import get_worker

from benchmarks.namespaces import LINK, address
from benchmarks.placed_faults import NOWHERE, Action, Place, PlacedFault, cut_the_line, die, freeze
from boost_core.collective import Collective
from workers import checkpoint_store
from workers.job import Assignment, MemberOutcome, Progress
from workers.member import run_member

DYING_ROUND = 4
BETWEEN_ROUNDS = Place("begin_round", 1, DYING_ROUND)


def note(assignment: Assignment, line: str) -> None:
    """Leave a line that outlives the process."""
    job = assignment.job
    assert job.checkpoints is not None
    with (Path(job.checkpoints.folder) / f"{job.job_id}.notes.{job.attempt}.{assignment.rank}").open("a") as file:
        file.write(line + "\n")


def unplug(_: Any) -> None:
    """No packet comes to this member's network namespace or leaves it."""
    subprocess.run(["ip", "link", "set", LINK, "down"], check=True)


def wait_for_death(_: Any) -> None:
    """Whoever watches kills this process."""
    threading.Event().wait()


def fail(_: Any) -> None:
    raise OSError("the disk of this machine is gone")


def die_after_a_checkpoint(_: Any) -> None:
    """With at least one checkpoint on the disk: the one that is being written is finished first."""
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join()
    die(None)


def run(
    assignment: Assignment,
    collective: Collective,
    progress: Progress,
    place: Place,
    ranks: tuple[int, ...] = (1,),
    action: Action = die,
    attempts: tuple[int, ...] = (0,),
) -> MemberOutcome:
    job = assignment.job
    assert job.checkpoints is not None
    note(assignment, f"pid {os.getpid()} {get_worker().address}")
    if assignment.rank not in ranks or job.attempt not in attempts:
        place = NOWHERE
    placed: Any = PlacedFault(collective, place, action, lambda number: note(assignment, f"begin {number}"))
    return run_member(assignment, placed, progress)


def while_loading(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, Place("max", 1, 0))


def between_load_and_training(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, Place("barrier", 1, 0))


def killed_twice_while_compiling(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, Place("barrier", 1, 0), (2,), wait_for_death, (0, 1))


def in_a_reduction(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, Place("reduce_scatter", 2, DYING_ROUND))


def after_the_update(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """The weak learner is in the scores, the round is not finished: the others are a round ahead of what counts."""
    return run(assignment, collective, progress, Place("sum", 1, DYING_ROUND))


def two_at_once(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, ranks=(0, 2))


def all_of_them(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, (0, 1, 2), die_after_a_checkpoint)


def frozen(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, action=freeze)


def unplugged(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """The member in namespace 1."""
    alone = get_worker().address.startswith(f"tcp://{address(1)}:")
    ranks = (assignment.rank,) if alone else ()
    return run(assignment, collective, progress, BETWEEN_ROUNDS, ranks, unplug)


def undisturbed(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, NOWHERE)


def cut_off(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, action=cut_the_line)


def fails_once(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, action=fail)


def fails_always(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, BETWEEN_ROUNDS, action=fail, attempts=(0, 1, 2, 3))


def writing_a_checkpoint(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """The first member dies with half a checkpoint on the disk, after one that is whole."""
    job = assignment.job
    sync, written = checkpoint_store.os.fsync, [0]

    def dying_sync(handle: int) -> None:
        written[0] += 1
        if written[0] > 2 and assignment.rank == 0 and job.attempt == 0:  # a file and its folder went well
            die(None)
        sync(handle)

    checkpoint_store.os.fsync = dying_sync
    try:
        return run(assignment, collective, progress, NOWHERE)
    finally:
        checkpoint_store.os.fsync = sync
