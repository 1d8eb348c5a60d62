"""Members that die at a place. Imported by the worker processes, by name; every failure is of the first attempt only.

What a member did is left in the checkpoints' folder: a line a round that it began.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import get_worker

from benchmarks.namespaces import LINK, address
from boost_core.collective import Collective
from workers import checkpoint_store
from workers.job import Assignment, MemberOutcome, Progress
from workers.member import run_member

Action = Callable[[Any], None]
DYING_ROUND = 4


class Placed:
    """A collective that calls an action at a place: before the n-th call of a method, in a round (0: before them)."""

    def __init__(self, collective: Any, assignment: Assignment, place: tuple[str, int, int], action: Action) -> None:
        self._collective, self._assignment, self._place, self._action = collective, assignment, place, action
        self._round, self._calls = 0, 0

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._collective, name)
        if name == "begin_round":
            return self._begin_round
        if name == self._place[0] and self._round == self._place[2]:
            self._calls += 1
            if self._calls == self._place[1]:
                self._action(self._collective)
        return value

    def _begin_round(self, number: int) -> None:
        self._round, self._calls = number, 0
        note(self._assignment, f"begin {number}")
        if self._place[0] == "begin_round" and number == self._place[2]:
            self._action(self._collective)
        self._collective.begin_round(number)


def note(assignment: Assignment, line: str) -> None:
    """Leave a line that outlives the process."""
    job = assignment.job
    assert job.checkpoints is not None
    with (Path(job.checkpoints.folder) / f"{job.job_id}.notes.{job.attempt}.{assignment.rank}").open("a") as file:
        file.write(line + "\n")


def die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def unplug(_: Any) -> None:
    """No packet comes to this member's network namespace or leaves it."""
    subprocess.run(["ip", "link", "set", LINK, "down"], check=True)


def cut_the_line(collective: Any) -> None:
    """No byte passes between this member and the first one; both live."""
    collective._links[0].shutdown()


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
    place: tuple[str, int, int],
    ranks: tuple[int, ...] = (1,),
    action: Action = die,
    attempts: tuple[int, ...] = (0,),
) -> MemberOutcome:
    job = assignment.job
    assert job.checkpoints is not None
    note(assignment, f"pid {os.getpid()} {get_worker().address}")
    if assignment.rank not in ranks or job.attempt not in attempts:
        place = ("", 0, -1)
    return run_member(assignment, Placed(collective, assignment, place, action), progress)  # type: ignore[arg-type]


def while_loading(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("max", 1, 0))


def between_load_and_training(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("barrier", 1, 0))


def killed_twice_while_compiling(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("barrier", 1, 0), (2,), wait_for_death, (0, 1))


def in_a_reduction(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("reduce_scatter", 2, DYING_ROUND))


def after_the_update(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """The weak learner is in the scores, the round is not finished: the others are a round ahead of what counts."""
    return run(assignment, collective, progress, ("sum", 1, DYING_ROUND))


def two_at_once(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), ranks=(0, 2))


def all_of_them(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), (0, 1, 2), die_after_a_checkpoint)


def frozen(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), action=freeze)


def unplugged(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """The member in namespace 1."""
    alone = get_worker().address.startswith(f"tcp://{address(1)}:")
    ranks = (assignment.rank,) if alone else ()
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), ranks, unplug)


def undisturbed(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("", 0, -1))


def cut_off(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), action=cut_the_line)


def fails_once(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), action=fail)


def fails_always(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return run(assignment, collective, progress, ("begin_round", 1, DYING_ROUND), action=fail, attempts=(0, 1, 2, 3))


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
        return run(assignment, collective, progress, ("", 0, -1))
    finally:
        checkpoint_store.os.fsync = sync
