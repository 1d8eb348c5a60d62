"""What a training run is told and what it gives back: frozen messages that cross processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from boost_core.config import TrainingConfig
from boost_core.margin_report import MarginReport
from boost_core.model import Model
from boost_core.records import RoundRecord, StopReason
from boost_core.shard import RowRange
from workers.data_plan import DataPlan
from workers.stages import NO_TIME, Stages

ATTEMPTS = 1000  # gangs that one run of a job may form, one after another


@dataclass(frozen=True)
class CheckpointSettings:
    """Where checkpoints go, and how often: seconds between two.

    folder: a path on the machine of the member of rank 0, or a URI of an object store, which every member opens with
    the credentials of its own environment (object_store.py).

    name: under which they are kept; empty = the job's id.
    """

    folder: str
    seconds: float = 30.0
    name: str = ""


@dataclass(frozen=True)
class TrainingJob:
    """One run of a job. threads: per member, at most those of its worker; None = all of them (in one process:
    the cores).

    attempt: how often this run's gang was formed again. checkpoints: None = none are written. resume: go on from the
    job's last checkpoint, if there is one. warm_start: the model to go on from, else. profile: tell where the
    time of every round went.
    """

    job_id: str
    run: int
    plan: DataPlan
    config: TrainingConfig
    threads: int | None = None
    attempt: int = 0
    checkpoints: CheckpointSettings | None = None
    resume: bool = False
    warm_start: Model | None = None
    profile: bool = False

    @property
    def checkpoint_name(self) -> str:
        """Under which its checkpoints are kept."""
        return (self.checkpoints.name if self.checkpoints else "") or self.job_id

    @property
    def fence(self) -> int:
        """Number of this gang among all of the job: what belongs to a lower one is refused."""
        return self.run * ATTEMPTS + self.attempt


def shown_run(fence: int) -> str:
    """What to call a gang's run in messages: the run of the job, and how often it was formed again if it was."""
    run, attempt = divmod(fence, ATTEMPTS)
    return f"{run}.{attempt}" if attempt else str(run)


@dataclass(frozen=True)
class Assignment:
    """One member's part of a job: its global row ranges (stop excluded) and its place in the gang.

    resume: the checkpoint to go on from (checkpoint.py); None = from the beginning.
    """

    job: TrainingJob
    rank: int
    size: int
    threads: int
    train_ranges: tuple[RowRange, ...]
    valid_ranges: tuple[RowRange, ...]
    resume: bytes | None = None


class RoundProgress(NamedTuple):
    """A finished round and the time it took (training only), in seconds.

    reduction_seconds: what of it the reporting member spent in exchanges with others; 0 for a round that it was given.
    known: from the checkpoint of an earlier run, which has reported it. stages: seconds by stage and outside of kernels
    (Stages.by_name), where the job asks for them.
    """

    record: RoundRecord
    seconds: float
    reduction_seconds: float = 0.0
    known: bool = False
    stages: Mapping[str, float] | None = None


class Progress(Protocol):
    """Who follows a run."""

    def phase(self, name: str) -> None:
        """The run enters "read", "compile" or "train"."""

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        """Rounds are finished, in order, each reported once."""

    def cancel_requested(self) -> bool:
        """Asked often and from the training loop: must be quick."""


@runtime_checkable
class Warned(Protocol):
    """A Progress that is told of what went wrong without ending the run."""

    def warn(self, text: str) -> None:
        """A sentence for the job's owner."""


class NoProgress:
    """Nobody follows."""

    def phase(self, name: str) -> None:
        """Nothing to note."""

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        """Nothing to note."""

    def cancel_requested(self) -> bool:
        return False


@dataclass(frozen=True)
class MemberOutcome:
    """What one member gives back; only the member of rank 0 carries the model. seconds: by phase (stages.py), in all,
    and of a round (median)."""

    rank: int
    model: Model | None
    stop_reason: StopReason
    rounds: tuple[RoundProgress, ...]
    seconds: dict[str, float]
    peak_memory_bytes: int
    n_rows: int
    margins: MarginReport | None = None
    stages: Stages = NO_TIME


@dataclass(frozen=True)
class TrainingOutcome:
    """A finished run. workers: 0 = in this process. seconds, peak_memory_bytes: the greatest over the members. stages:
    those of the member of rank 0. waited: seconds until the members began, and for their reports."""

    model: Model
    stop_reason: StopReason
    rounds: tuple[RoundProgress, ...]
    seconds: dict[str, float]
    peak_memory_bytes: int
    workers: int
    rows_per_member: tuple[int, ...]
    margins: MarginReport | None = None
    stages: Stages = NO_TIME
    waited: float = 0.0


def join_outcomes(members: Sequence[MemberOutcome], workers: int) -> TrainingOutcome:
    """One outcome of all members' (any order)."""
    first = next(member for member in members if member.rank == 0)
    assert first.model is not None
    return TrainingOutcome(
        model=first.model,
        stop_reason=first.stop_reason,
        rounds=first.rounds,
        seconds={name: max(member.seconds[name] for member in members) for name in first.seconds},
        peak_memory_bytes=max(member.peak_memory_bytes for member in members),
        workers=workers,
        rows_per_member=tuple(member.n_rows for member in sorted(members, key=lambda member: member.rank)),
        margins=first.margins,
        stages=first.stages,
    )
