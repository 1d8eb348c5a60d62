"""What a training run is told and what it gives back: frozen messages that cross processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from boost_core.config import TrainingConfig
from boost_core.model import Model
from boost_core.records import RoundRecord, StopReason
from boost_core.shard import RowRange
from workers.data_plan import DataPlan


@dataclass(frozen=True)
class TrainingJob:
    """One run of a job. threads: per member; None = the cores of its machine divided by the members on it.

    warm_start: the model to go on from.
    """

    job_id: str
    run: int
    plan: DataPlan
    config: TrainingConfig
    threads: int | None = None
    warm_start: Model | None = None


@dataclass(frozen=True)
class Assignment:
    """One member's part of a job: its global row ranges (stop excluded) and its place in the gang."""

    job: TrainingJob
    rank: int
    size: int
    threads: int
    train_ranges: tuple[RowRange, ...]
    valid_ranges: tuple[RowRange, ...]


@dataclass(frozen=True)
class RoundProgress:
    """A finished round and the time it took (training only), in seconds."""

    record: RoundRecord
    seconds: float


class Progress(Protocol):
    """Who follows a run."""

    def phase(self, name: str) -> None:
        """The run enters "read", "compile" or "train"."""

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        """Rounds are finished, in order, each reported once."""

    def cancel_requested(self) -> bool:
        """Asked often and from the training loop: must be quick."""


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
    """What one member gives back; only the member of rank 0 carries the model. seconds: by phase (see member.py)."""

    rank: int
    model: Model | None
    stop_reason: StopReason
    rounds: tuple[RoundProgress, ...]
    seconds: dict[str, float]
    peak_memory_bytes: int
    n_rows: int


@dataclass(frozen=True)
class TrainingOutcome:
    """A finished run. workers: 0 = in this process. seconds, peak_memory_bytes: the greatest over the members."""

    model: Model
    stop_reason: StopReason
    rounds: tuple[RoundProgress, ...]
    seconds: dict[str, float]
    peak_memory_bytes: int
    workers: int
    rows_per_member: tuple[int, ...]


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
    )
