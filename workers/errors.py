"""Errors of reading data and of training on it.

WorkersError
├── DataError             the data are refused; each problem has its place in the request
│   ├── PathRefused       a path leaves the data root or has a scheme that is not allowed
│   └── DataNotFound      no such file
├── ModelFileError        a file is not a model, is damaged, or has another format version
├── CheckpointDamaged     a file is not a checkpoint, or not whole
├── CheckpointRefused     a checkpoint of other data, another configuration or another format
└── TrainingFailed        the run ended without a model, for the reason given
    ├── GangUnavailable   not enough workers in time
    ├── GangBroken        members died or fell silent; the others can go on
    ├── CheckpointsUnavailable   where checkpoints are kept does not answer now
    └── SchedulerLost     (cluster_calls.py) the cluster's scheduler no longer answers
"""

from collections.abc import Sequence
from dataclasses import dataclass

Location = tuple[str | int, ...]


class WorkersError(Exception):
    """Base of every error this package raises on purpose."""


class DataError(WorkersError):
    """The data do not fit the request. `loc` is the place in the request body that names them."""

    def __init__(self, loc: Sequence[str | int], message: str) -> None:
        self.loc: Location = tuple(loc)
        self.message = message
        super().__init__(message)

    def __reduce__(self) -> tuple[type["DataError"], tuple[Location, str]]:
        """Survives the way from a worker: exceptions are pickled by their arguments."""
        return type(self), (self.loc, self.message)


class PathRefused(DataError):
    """A path outside the data root, or a scheme that is not allowed."""


class DataNotFound(DataError):
    """A path under the data root that does not exist."""


class ModelFileError(WorkersError):
    """A model file that cannot be read."""


class CheckpointDamaged(WorkersError):
    """A checkpoint that cannot be read."""


class CheckpointRefused(WorkersError):
    """A checkpoint that does not belong to what is to be trained."""


class TrainingFailed(WorkersError):
    """The run ended without a model."""


class GangUnavailable(TrainingFailed):
    """The workers a job needs were not free or not there in time."""


class CheckpointsUnavailable(TrainingFailed):
    """Where checkpoints are kept cannot be read now, so nobody knows from where the job goes on."""


@dataclass(frozen=True)
class Loss:
    """What a gang lost, by addresses of workers. workers: whose members died, failed, or had said nothing to the end.

    silent: that did not answer even when they were told to end. suspects: of whom others complain, which need not be
    lost. noticed: the first sign of trouble, on the driver's time.monotonic(). on_rows: whether the lost workers' rows
    may be what they died of; while kernels are compiled they are not.
    """

    workers: tuple[str, ...]
    noticed: float
    silent: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    on_rows: bool = True


class GangBroken(TrainingFailed):
    """Members died, fell silent, or failed in a way that may not come again.

    loss: who is lost, and since when.
    """

    def __init__(self, message: str, loss: Loss) -> None:
        super().__init__(message)
        self.loss = loss

    def __reduce__(self) -> tuple[type["GangBroken"], tuple[str, Loss]]:
        return type(self), (str(self), self.loss)
