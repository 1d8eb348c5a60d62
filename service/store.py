"""The ports of the job store and of the model versions, and the frozen records that cross them.

`sql_store.SqlStore` implements both over any SQLAlchemy database; its twin for tests and trials is the same
code over a SQLite database in memory (`sql_engine.memory_engine`).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from service.job_states import JobState
from service.scheduling import Decision, Waiting
from workers.memory_need import Need

# What waits and the workers that were given away already, to what is to start.
Decide = Callable[[Sequence[Waiting], Collection[str]], Decision]


@dataclass(frozen=True)
class NewJob:
    """What a submission stores. `body` is the request with its defaults; `body_hash` tells requests apart.

    wanted_workers: None = as few as it fits on, 0 = in the server's process; member_bytes, row_bytes: see memory_need.
    """

    name: str
    body: dict[str, Any]
    body_hash: str
    rounds: int
    idempotency_key: str | None = None
    priority: int = 0
    wanted_workers: int | None = None
    member_bytes: int | None = None
    row_bytes: int | None = None


@dataclass(frozen=True)
class Job:
    """A job as stored; see tables.JobRecord for the fields."""

    number: int
    id: str
    name: str
    idempotency_key: str | None
    body_hash: str
    body: dict[str, Any]
    rounds: int
    state: JobState
    reason: str | None
    run: int
    rounds_done: int
    workers: int | None
    lease_owner: str | None
    lease_expires: datetime | None
    submitted_at: datetime
    started_at: datetime | None
    running_at: datetime | None
    finished_at: datetime | None
    answer: dict[str, Any] | None
    model_name: str | None
    model_version: int | None
    lost_runs: int = 0
    most_rounds: int = 0
    priority: int = 0
    wanted_workers: int | None = None
    member_bytes: int | None = None
    row_bytes: int | None = None
    queued_at: datetime | None = None
    place: list[str] | None = None
    phase: str | None = None

    @property
    def need(self) -> Need | None:
        """What it was estimated to need."""
        if self.member_bytes is None or self.row_bytes is None:
            return None
        return Need(self.member_bytes, self.row_bytes)


@dataclass(frozen=True)
class Lease:
    """The right to write for one run of a job. Another run or another owner ends it."""

    job_id: str
    run: int
    owner: str


@dataclass(frozen=True)
class Transition:
    """One change of a job's state."""

    state: JobState
    run: int
    at: datetime
    reason: str | None


@dataclass(frozen=True)
class RoundEntry:
    """One stored round: boost_core.records.RoundRecord's figures and the seconds it took.

    reduction_seconds: how long its member exchanged with others; only added up (see /metrics), not kept by round.
    known: an earlier run has reported it, so it is not added up again.
    """

    round: int
    figures: dict[str, Any]
    seconds: float
    reduction_seconds: float = field(default=0.0, compare=False)
    known: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class NewVersion:
    """A trained model that is ready to be registered."""

    name: str
    sha256: str
    artifact: str
    description: dict[str, Any]


@dataclass(frozen=True)
class Version:
    """A registered model."""

    name: str
    version: int
    sha256: str
    artifact: str
    job_id: str
    created_at: datetime
    description: dict[str, Any]


@dataclass(frozen=True)
class Offer:
    """The memory that a runner has for jobs: of each worker that it can use, and of its own process."""

    worker_bytes: tuple[int, ...]
    own_bytes: int


@dataclass(frozen=True)
class RunnerNews:
    """What a runner said when it was last heard of. trouble: why it takes no job, or None; worker_bytes: memory of the
    workers it can use; own_bytes: of its own process."""

    owner: str
    seen_at: datetime
    trouble: str | None
    workers: int
    worker_bytes: tuple[int, ...] = ()
    own_bytes: int = 0


@dataclass(frozen=True)
class Totals:
    """Jobs by state now; rounds and what they took since the store exists, deleted jobs included."""

    jobs: dict[str, int]
    rounds: int
    round_seconds: float
    reduction_seconds: float
    reduction_bytes: int


class JobStore(Protocol):
    """Jobs, their transitions and their rounds. Every method is one transaction.

    Methods that take a Lease raise LeaseLost when the job belongs to another run or owner; those that take a
    job id raise JobNotFound.
    """

    def submit(self, new: NewJob) -> tuple[Job, bool]:
        """Queue a job; the existing one and False if the idempotency key is known. Raises KeyReused."""

    def find_key(self, key: str) -> Job | None:
        """The job that an idempotency key names."""

    def get(self, job_id: str) -> Job:
        """One job."""

    def list_jobs(self, state: JobState | None, limit: int, before: int | None) -> list[Job]:
        """Jobs by falling number, below `before`."""

    def transitions(self, job_id: str) -> list[Transition]:
        """Every change of the job's state, oldest first."""

    def place(self, owner: str, lease_seconds: float, decide: Decide) -> list[Job]:
        """Give jobs to a runner as `decide` says: they are starting, with a new run number and no rounds.

        One runner decides at a time. Jobs that are refused fail; those that wait have the reason.
        """

    def take(self, owner: str, lease_seconds: float) -> Job | None:
        """The first job in line alone, to be trained in the runner's own process: for tests and trials."""

    def extend(self, lease: Lease, lease_seconds: float) -> JobState:
        """Prolong a lease; the answer says whether the job is being cancelled."""

    def change(self, lease: Lease, new: JobState, reason: str | None = None) -> Job:
        """Move a leased job on. Raises WrongState if the table of transitions does not allow it."""

    def enter_phase(self, lease: Lease, phase: str) -> None:
        """Note what a run does before its first round: it reads, or compiles. Raises LeaseLost."""

    def append_rounds(self, lease: Lease, rounds: Sequence[RoundEntry]) -> JobState | None:
        """Add finished rounds; the answer says whether the job is being cancelled. None: there were no rounds."""

    def rounds(self, job_id: str, after: int, limit: int, every: int = 1) -> tuple[int, list[RoundEntry]]:
        """The current run, and its rounds with a number above `after` that `every` divides, in order."""

    def latest_rounds(self, jobs: Sequence[Job]) -> dict[str, RoundEntry]:
        """The last round told of each job's run, by the job's id; jobs without one are not in it."""

    def complete(self, lease: Lease, answer: dict[str, Any], version: NewVersion) -> Version:
        """Register the model and let the job succeed, both or neither. Raises WrongState while cancelling."""

    def request_cancel(self, job_id: str) -> Job:
        """Ask for the end of a job. Raises WrongState if it ended otherwise."""

    def release(self, owner: str | None, reason: str, *, counts: bool = True) -> list[Job]:
        """Take the jobs of a dead owner (None: of every expired lease) back into the queue.

        counts: a job whose runs are lost MOST_LOST_RUNS times without a further round fails instead.
        """

    def give_back(self, lease: Lease, reason: str, *, counts: bool = True) -> Job:
        """Take one leased job back into the queue; counts: as release."""

    def resume(self, job_id: str, rounds: int | None) -> Job:
        """Queue a job that ended once more, with so many rounds in all (None: as before). Raises WrongState."""

    def note(self, lease: Lease, text: str) -> None:
        """Add a sentence to the history of a leased job; its state stays."""

    def delete(self, job_id: str) -> None:
        """Forget a job that is over. Its model stays. Raises WrongState while it is not over."""

    def see_runner(self, owner: str, trouble: str | None, offer: Offer) -> None:
        """Write down that a runner lives, why it takes no job (None: it does), and what it can offer."""

    def runners(self, within_seconds: float) -> list[RunnerNews]:
        """The runners heard of within so many seconds, the latest first."""

    def totals(self) -> Totals:
        """Figures over all jobs and runners."""

    def check(self) -> None:
        """Raises if the store cannot be read and written."""


class VersionStore(Protocol):
    """Names and versions of registered models."""

    def list_models(self) -> list[Version]:
        """The newest version of every model, by name."""

    def versions(self, name: str) -> list[Version]:
        """Every version of a model, newest first. Raises ModelNotFound."""

    def version(self, name: str, number: int | None) -> Version:
        """One version, None = the newest. Raises ModelNotFound."""
