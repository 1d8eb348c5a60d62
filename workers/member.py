"""What every member of a gang does: read its rows, bin them, compile, train."""

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from boost_core.binning import Binning, fingerprint
from boost_core.collective import Collective
from boost_core.model import Model
from boost_core.records import Phase, RoundRecord
from boost_core.row_weights import class_mass, copies_of, total_mass
from boost_core.shard import RowRange, Shard
from boost_core.team import Team
from boost_core.training import TrainingData, TrainingResult, train
from boost_core.warm_up import warm_up
from workers.binner import Binner
from workers.data_plan import DataPlan
from workers.job import Assignment, MemberOutcome, Progress, RoundProgress
from workers.reading import RangeReader
from workers.weight_column import positive

PHASES = ("read", "bin", "compile", "train", "validate")


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_memory_bytes() -> int:
    """Greatest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024  # kilobytes except on macOS


@dataclass
class Clock:
    """Seconds spent in each phase; exactly one phase runs at a time."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    phase: str = "read"
    _since: float = field(default_factory=time.perf_counter)

    def enter(self, phase: str) -> None:
        """Charge the time since the last call to the phase that ends now."""
        now = time.perf_counter()
        self.seconds[self.phase] += now - self._since
        self.phase, self._since = phase, now


class TrainingObserver:
    """Times the rounds and passes them on. Only rank 0 reports: all members have the same records."""

    def __init__(self, clock: Clock, progress: Progress, reports: bool) -> None:
        self._clock, self._progress, self._reports = clock, progress, reports
        self._train_before = 0.0
        self.rounds: list[RoundProgress] = []

    def enter(self, phase: Phase) -> None:
        self._clock.enter(phase.value)

    def round_done(self, record: RoundRecord) -> None:
        self._clock.enter(self._clock.phase)
        spent = self._clock.seconds["train"]
        self.rounds.append(RoundProgress(record, spent - self._train_before))
        self._train_before = spent
        if self._reports:
            self._progress.rounds_done([self.rounds[-1]])

    def stop_requested(self) -> bool:
        return self._progress.cancel_requested()


def run_member(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """Do one member's part of a job.

    Errors: DataError (the data changed since they were planned), ConfigError, BoundBroken, CollectiveError.
    """
    clock, started = Clock(), time.perf_counter()
    with Team(assignment.threads) as team:
        progress.phase("read")
        data, parts = _load(assignment, collective, team, clock.enter)
        clock.enter("compile")
        progress.phase("compile")
        config = assignment.job.config
        plan = assignment.job.plan
        warm_up(config, len(plan.classes), in_gang=collective.size > 1, weighted=plan.weight is not None)
        collective.barrier()
        progress.phase("train")
        observer = TrainingObserver(clock, progress, assignment.rank == 0)
        result = train(data, config, collective, observer, team)
    clock.enter("train")
    seconds = {**clock.seconds, "total": time.perf_counter() - started}
    seconds["per_round"] = median(each.seconds for each in observer.rounds) if observer.rounds else 0.0
    return MemberOutcome(
        rank=assignment.rank,
        model=_model(assignment, data, result, parts) if assignment.rank == 0 else None,
        stop_reason=result.stop_reason,
        rounds=tuple(observer.rounds) if assignment.rank == 0 else (),
        seconds=seconds,
        peak_memory_bytes=peak_memory_bytes(),
        n_rows=data.train.n_rows,
    )


def _load(
    assignment: Assignment, collective: Collective, team: Team, clock: Callable[[str], None]
) -> tuple[TrainingData, int]:
    """Read and bin this member's rows; also the data fingerprint over all members."""
    plan = assignment.job.plan
    with RangeReader(plan.train, assignment.train_ranges) as train_rows:
        train = _rows(plan, train_rows, assignment.train_ranges, collective)
        if plan.valid is None:
            valid = None
            binned = Binner(assignment, collective, team, clock).run(train_rows, None, train.row_numbers())
        else:
            with RangeReader(plan.valid, assignment.valid_ranges) as valid_rows:
                valid = _rows(plan, valid_rows, assignment.valid_ranges, collective)
                binned = Binner(assignment, collective, team, clock).run(train_rows, valid_rows, train.row_numbers())
                valid = replace(valid, bins=binned.valid)
    return _agree(plan, collective, replace(train, bins=binned.train), valid, binned.binning)


def _rows(plan: DataPlan, reader: RangeReader, ranges: tuple[RowRange, ...], collective: Collective) -> Shard:
    """This member's rows, still without bins. Rows of weight 0 are left out from here on."""
    copies, numbers = None, None
    if plan.weight is not None:
        weights = reader.floats([plan.weight])[0]
        kept = positive(weights)
        copies = copies_of(weights[kept], collective)
        if not kept.all():
            numbers = Shard(np.empty((0, 0), np.uint8), np.empty(0, np.int32), ranges).row_numbers()[kept]
            reader.keep(kept)
    labels = reader.class_indices(plan.label, plan.classes)
    return Shard(np.empty((0, 0), np.uint8), labels, ranges, copies, numbers)


def _agree(
    plan: DataPlan, collective: Collective, train: Shard, valid: Shard | None, binning: Binning
) -> tuple[TrainingData, int]:
    counts = class_mass(train.labels, train.copies, len(plan.classes))
    n_valid = total_mass(valid.n_rows, valid.copies) if valid else 0
    own = fingerprint(train.bins, train.labels, train.row_numbers(), train.copies)
    parts = np.array([n_valid, 0], np.int64)
    parts[1:] = np.array([own], np.uint64).view(np.int64)
    agreed = collective.sum(np.concatenate([counts, parts]))
    data = TrainingData(train, valid, binning, agreed[:-2], int(agreed[-2]))
    return data, int(agreed[-1:].view(np.uint64)[0])


def _model(assignment: Assignment, data: TrainingData, result: TrainingResult, data_fingerprint: int) -> Model:
    plan = assignment.job.plan
    return Model(
        config=assignment.job.config,
        features=plan.features,
        label=plan.label,
        classes=plan.classes,
        thresholds=data.binning.thresholds,
        threshold_start=data.binning.threshold_start,
        forest=result.forest,
        figures=result.figures(),
        fingerprint=data_fingerprint,
        n_rows=plan.n_train,
    )
