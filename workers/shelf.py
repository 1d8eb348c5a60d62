"""What a worker keeps of a job between two runs of a gang: the bins, labels and scores of its row ranges.

A gang that loses a member ends as a whole, and forms again at once; its survivors then find here what they had.
One job's rows at a time: the member of another job finds the shelf empty, so that memory is never held for two.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from boost_core.start import ModelSoFar, Start
from boost_core.training_data import TrainingData
from workers.checkpoint import Checkpoint, to_bytes


@dataclass
class Kept:
    """One member's rows of a job. fence: of the run that used them last; base: what that run began with.

    so_far: the model with all rounds that this member has finished; start: where the loop leaves its scores.
    """

    fence: int
    data: TrainingData
    base: Checkpoint
    start: Start = field(default_factory=Start)
    so_far: Callable[[], ModelSoFar] | None = None

    def freeze(self) -> None:
        """The loop has ended: keep the model, and nothing else of it."""
        if self.so_far is not None:
            model = self.so_far()
            self.so_far = lambda: model

    @property
    def n_rounds(self) -> int:
        """Rounds that are finished."""
        return self.so_far().n_rounds if self.so_far else self.base.n_rounds


@dataclass(frozen=True)
class Inventory:
    """What a worker says of its shelf. rows: the training and the validation ranges that it holds."""

    fence: int
    n_rounds: int
    train_ranges: tuple[tuple[int, int], ...]
    valid_ranges: tuple[tuple[int, int], ...]


class Shelf:
    """Used from members' threads, one after another, and read from the worker's event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job = ""
        self._kept: Kept | None = None

    def put(self, job_id: str, kept: Kept) -> None:
        """Keep a job's rows in place of what was there."""
        with self._lock:
            self._job, self._kept = job_id, kept

    def get(self, job_id: str) -> Kept | None:
        """What there is of a job; what there is of another one is dropped."""
        with self._lock:
            if self._job != job_id:
                self._kept = None
            return self._kept

    def inventory(self, job_id: str) -> Inventory | None:
        """What there is of a job, without a change."""
        with self._lock:
            kept = self._kept if self._job == job_id else None
        if kept is None:
            return None
        valid = kept.data.valid
        return Inventory(kept.fence, kept.n_rounds, kept.data.train.row_ranges, valid.row_ranges if valid else ())

    def checkpoint(self, job_id: str) -> bytes | None:
        """All rounds that this member has finished, with what the data came to: see checkpoint.py."""
        with self._lock:
            kept = self._kept if self._job == job_id else None
        return to_bytes(brought_up(kept)) if kept else None

    def clear_all(self) -> None:
        """Hold nothing."""
        with self._lock:
            self._kept = None

    def clear(self, job_id: str) -> None:
        """The job is over."""
        with self._lock:
            if self._job == job_id:
                self._kept = None


def brought_up(kept: Kept) -> Checkpoint:
    """The checkpoint that a member began with, and what has come since. Rounds' seconds are not known here."""
    base, model = kept.base, kept.so_far() if kept.so_far else kept.base.model
    seconds = base.round_seconds[: model.n_rounds]
    return replace(base, model=model, round_seconds=seconds + (0.0,) * (model.n_rounds - len(seconds)))


_IN_USE: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@contextmanager
def in_use(shelf: Shelf) -> Iterator[None]:
    """The shelf of the worker on which the block's member runs: workers of one process have one each."""
    token = _IN_USE.set(shelf)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def own_shelf() -> Shelf:
    """The shelf of this worker; an empty one that nobody sees where there is no worker."""
    return _IN_USE.get() or Shelf()
