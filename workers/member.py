"""What every member of a gang does: read its rows, bin them, compile, train."""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from boost_core.binning import fingerprint
from boost_core.collective import Collective
from boost_core.model import Model
from boost_core.records import Phase, RoundRecord
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import TrainingData, TrainingResult, train
from boost_core.warm_up import warm_up
from workers.binner import Binned, Binner
from workers.job import Assignment, MemberOutcome, Progress, RoundProgress
from workers.machine_limits import cpu_limit
from workers.reading import RangeReader

PHASES = ("read", "bin", "compile", "train", "validate")


def available_cores() -> int:
    """Cores this process may use."""
    return cpu_limit()


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
        warm_up(config, len(assignment.job.plan.classes), in_gang=collective.size > 1)
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
    empty = Shard(np.empty((0, 0), np.uint8), np.empty(0, np.int32), assignment.train_ranges)
    row_numbers = empty.row_numbers()
    with RangeReader(plan.train, assignment.train_ranges) as train_rows:
        labels = train_rows.class_indices(plan.label, plan.classes)
        if plan.valid is None:
            valid_labels = np.empty(0, np.int32)
            binned = Binner(assignment, collective, team, clock).run(train_rows, None, row_numbers)
        else:
            with RangeReader(plan.valid, assignment.valid_ranges) as valid_rows:
                valid_labels = valid_rows.class_indices(plan.label, plan.classes)
                binned = Binner(assignment, collective, team, clock).run(train_rows, valid_rows, row_numbers)
    return _agree(assignment, collective, binned, labels, valid_labels)


def _agree(
    assignment: Assignment,
    collective: Collective,
    binned: Binned,
    labels: "np.ndarray",
    valid_labels: "np.ndarray",
) -> tuple[TrainingData, int]:
    plan = assignment.job.plan
    train = Shard(binned.train, labels, assignment.train_ranges)
    valid = Shard(binned.valid, valid_labels, assignment.valid_ranges) if plan.valid else None
    counts = np.bincount(labels, minlength=len(plan.classes)).astype(np.int64)
    own = np.array([fingerprint(train.bins, train.labels, train.row_numbers())], np.uint64).view(np.int64)
    agreed = collective.sum(np.concatenate([counts, own]))
    n_valid = plan.valid.n_rows if plan.valid else 0
    return TrainingData(train, valid, binned.binning, agreed[:-1], n_valid), int(agreed[-1:].view(np.uint64)[0])


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
        n_rows=plan.train.n_rows,
    )
