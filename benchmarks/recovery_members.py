"""Members that die in the middle of a training and leave the times of it in a folder: run by name on workers.

All times are of the machine's monotonic clock, which every process of it shares. Each line is of one member: the
attempt, its rank, what happened ("enter": it holds its lease and its connections; "fault"; "begin": its first round of
the attempt is next), and when.
"""

import time
from pathlib import Path
from typing import Any

from benchmarks.placed_faults import NOWHERE, Action, Place, PlacedFault, cut_the_line, die, freeze
from boost_core.collective import Collective
from workers.job import Assignment, MemberOutcome, Progress
from workers.member import run_member

FAULT_ROUND = 41
BETWEEN_ROUNDS = Place("begin_round", 1, FAULT_ROUND)
IN_A_REDUCTION = Place("reduce_scatter", 1, FAULT_ROUND)


class Times:
    """Leaves the times of one member's attempt."""

    def __init__(self, assignment: Assignment) -> None:
        job = assignment.job
        assert job.checkpoints is not None
        self._path = Path(job.checkpoints.folder) / f"{job.job_id}.times"
        self._who = f"{job.attempt} {assignment.rank}"
        self._begun = False

    def note(self, what: str) -> None:
        """A line that outlives the process."""
        with self._path.open("a") as file:
            file.write(f"{self._who} {what} {time.monotonic()}\n")

    def begin(self, _: int) -> None:
        """The first round counts."""
        if not self._begun:
            self._begun = True
            self.note("begin")


def run(
    place: Place, ranks: tuple[int, ...], act: Action, task: tuple[Assignment, Collective, Progress]
) -> MemberOutcome:
    """Train; in the first attempt the members of these ranks act."""
    assignment, collective, progress = task
    times = Times(assignment)
    times.note("enter")

    def timed(acting: Any) -> None:
        times.note("fault")
        act(acting)

    chosen = place if assignment.job.attempt == 0 and assignment.rank in ranks else NOWHERE
    return run_member(assignment, PlacedFault(collective, chosen, timed, times.begin), progress)


def between_rounds(*task: Any) -> MemberOutcome:
    return run(BETWEEN_ROUNDS, (1,), die, task)


def in_a_reduction(*task: Any) -> MemberOutcome:
    return run(IN_A_REDUCTION, (1,), die, task)


def two_at_once(*task: Any) -> MemberOutcome:
    return run(BETWEEN_ROUNDS, (0, 2), die, task)


def all_at_once(*task: Any) -> MemberOutcome:
    return run(BETWEEN_ROUNDS, (0, 1, 2), die, task)


def frozen(*task: Any) -> MemberOutcome:
    return run(BETWEEN_ROUNDS, (1,), freeze, task)


def cut_off(*task: Any) -> MemberOutcome:
    return run(BETWEEN_ROUNDS, (1,), cut_the_line, task)
