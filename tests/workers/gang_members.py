"""What members run in tests of the gang. Imported by the worker processes, by name.

Each function is one way a member can behave; the member of the highest rank is the one that misbehaves.
"""

import os
import signal
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from unittest import mock

import numpy as np

from boost_core import jit
from boost_core.binning import make_binning
from boost_core.collective import Collective
from boost_core.decoding import plain_decoding
from boost_core.errors import BoundBroken
from boost_core.forest import make_forest
from boost_core.model import Model, RoundFigures
from boost_core.records import RoundRecord, StopReason
from workers import kernel_maker
from workers.errors import DataError
from workers.job import Assignment, MemberOutcome, Progress, RoundProgress
from workers.member import run_member

ROUNDS = 40


def record(number: int) -> RoundRecord:
    return RoundRecord(number, 0.5, 0.1, 1.0, 0.0, 1.0, 0.0, 1.0, 0.25, 0.25, None, 4, 80)


def empty_model(assignment: Assignment) -> Model:
    binning = make_binning([], [])
    forest = make_forest([], [], plain_decoding(2), binning)
    figures = RoundFigures(*(np.empty(0) for _ in fields(RoundFigures)))
    config, plan = assignment.job.config, assignment.job.plan
    starts = binning.threshold_start
    return Model(config, (), plan.label, plan.classes, binning.thresholds, starts, forest, figures, 0, 1)


def outcome(assignment: Assignment, rounds: list[RoundProgress], reason: StopReason) -> MemberOutcome:
    first = assignment.rank == 0
    return MemberOutcome(
        rank=assignment.rank,
        model=empty_model(assignment) if first else None,
        stop_reason=reason,
        rounds=tuple(rounds) if first else (),
        seconds={"total": float(assignment.rank)},
        peak_memory_bytes=1000 + assignment.rank,
        n_rows=sum(stop - start for start, stop in assignment.train_ranges),
    )


def train(assignment: Assignment, collective: Collective, progress: Progress, rounds: int) -> MemberOutcome:
    """Rounds of one sum each; all members stop together once one was asked to."""
    progress.phase("read")
    collective.barrier()
    progress.phase("train")
    done: list[RoundProgress] = []
    for number in range(1, rounds + 1):
        collective.begin_round(number)
        wants_to_stop = int(progress.cancel_requested())
        total, stops = collective.sum(np.array([assignment.rank, wants_to_stop], np.int64))
        assert total == sum(range(assignment.size))
        if stops:
            return outcome(assignment, done, StopReason.CANCELLED)
        done.append(RoundProgress(record(number), 0.001))
        if assignment.rank == 0:
            progress.rounds_done(done[-1:])
    return outcome(assignment, done, StopReason.ROUNDS)


def is_last(assignment: Assignment) -> bool:
    return assignment.rank == assignment.size - 1


def happy(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    return train(assignment, collective, progress, ROUNDS)


def endless(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """Until it is cancelled or something breaks. A round takes a millisecond."""
    progress.phase("read")
    collective.barrier()
    progress.phase("train")
    for number in range(1, 10**9):
        collective.begin_round(number)
        time.sleep(0.001)
        if collective.sum(np.array([int(progress.cancel_requested())], np.int64))[0]:
            break
        if assignment.rank == 0:
            progress.rounds_done([RoundProgress(record(number), 0.001)])
    return outcome(assignment, [], StopReason.CANCELLED)


def computes(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """Never speaks to the others again: only the driver can tell it that one of them died."""
    progress.phase("read")
    collective.barrier()
    progress.phase("train")
    while not progress.cancel_requested():
        time.sleep(0.001)
    return outcome(assignment, [], StopReason.CANCELLED)


def dies_in_round_3(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        train(assignment, collective, progress, 3)
        os.kill(os.getpid(), signal.SIGKILL)
    return train(assignment, collective, progress, ROUNDS)


def errs(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        raise ValueError("seven is no colour")
    return train(assignment, collective, progress, ROUNDS)


def refuses_data(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        raise DataError(("data", "train"), "the file changed since it was planned")
    return train(assignment, collective, progress, ROUNDS)


def breaks_a_bound(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        raise BoundBroken("round 7: loss 0.5 above its bound 0.4")
    return train(assignment, collective, progress, ROUNDS)


class HoldsALock(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("the reel is jammed")
        self.lock = __import__("threading").Lock()


def errs_oddly(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        raise HoldsALock
    return train(assignment, collective, progress, ROUNDS)


def exits(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    if is_last(assignment):
        raise SystemExit(3)
    return train(assignment, collective, progress, ROUNDS)


def compiles_apart(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """A real member that counts as one with many rows, of which nobody knows that its kernels are made."""
    with tempfile.TemporaryDirectory() as name, mock.patch.object(kernel_maker, "LEAST_CELLS", 0):
        with mock.patch.object(jit, "CACHE", Path(name)):
            done = run_member(assignment, collective, progress)
        # of everything; that of weak learners alone is there in any case
        assert len(list(Path(name).glob("made-*"))) == 2, "the child did not come to its end"
    return done
