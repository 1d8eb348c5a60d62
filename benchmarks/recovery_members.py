"""Members that die in the middle of a training and leave the times of it in a folder: run by name on workers.

All times are of the machine's monotonic clock, which every process of it shares. Each line is of one member: the
attempt, its rank, what happened ("enter": it holds its lease and its connections; "fault"; "begin": its first round of
the attempt is next), and when.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boost_core.collective import Collective
from workers.job import Assignment, MemberOutcome, Progress
from workers.member import run_member

FAULT_ROUND = 41
Act = Callable[[Any], None]


def note(assignment: Assignment, what: str) -> None:
    """A line that outlives the process."""
    job = assignment.job
    assert job.checkpoints is not None
    line = f"{job.attempt} {assignment.rank} {what} {time.monotonic()}\n"
    with (Path(job.checkpoints.folder) / f"{job.job_id}.times").open("a") as file:
        file.write(line)


class Faulty:
    """A collective that acts before a call of a method in the round of the fault."""

    def __init__(self, collective: Any, assignment: Assignment, method: str, act: Act | None) -> None:
        self._collective, self._assignment = collective, assignment
        self._method, self._act, self._round = method, act, 0

    def __getattr__(self, name: str) -> Any:
        if name == self._method and self._round == FAULT_ROUND:
            self._fail()
        return self._begin_round if name == "begin_round" else getattr(self._collective, name)

    def _begin_round(self, number: int) -> None:
        if not self._round:
            note(self._assignment, "begin")
        self._round = number
        if self._method == "begin_round" and number == FAULT_ROUND:
            self._fail()
        self._collective.begin_round(number)

    def _fail(self) -> None:
        if self._act is not None:
            act, self._act = self._act, None
            note(self._assignment, "fault")
            act(self._collective)


def run(method: str, ranks: tuple[int, ...], act: Act, task: tuple[Assignment, Collective, Progress]) -> MemberOutcome:
    """Train; in the first attempt the members of these ranks act."""
    assignment, collective, progress = task
    note(assignment, "enter")
    chosen = act if assignment.job.attempt == 0 and assignment.rank in ranks else None
    return run_member(assignment, Faulty(collective, assignment, method, chosen), progress)


def kill(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def cut(collective: Any) -> None:
    """No byte passes between this member and the first one; both live."""
    collective._links[0].shutdown()


def between_rounds(*task: Any) -> MemberOutcome:
    return run("begin_round", (1,), kill, task)


def in_a_reduction(*task: Any) -> MemberOutcome:
    return run("reduce_scatter", (1,), kill, task)


def two_at_once(*task: Any) -> MemberOutcome:
    return run("begin_round", (0, 2), kill, task)


def all_at_once(*task: Any) -> MemberOutcome:
    return run("begin_round", (0, 1, 2), kill, task)


def frozen(*task: Any) -> MemberOutcome:
    return run("begin_round", (1,), freeze, task)


def cut_off(*task: Any) -> MemberOutcome:
    return run("begin_round", (1,), cut, task)
