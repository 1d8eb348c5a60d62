"""What the API says of a job."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from service.job_states import JobState
from service.store import Job, RoundEntry, Transition


class ModelReference(BaseModel):
    """Where a job's model is: /v1/models/{name}/versions/{version}."""

    name: str
    version: int


class Resources(BaseModel):
    """What was asked for and what the current run got."""

    requested_workers: str | int
    threads: int | None
    workers: int | None = Field(
        description="Workers of the current run, 0 = the server's process; null: not yet known."
    )


class Memory(BaseModel):
    """What the job is estimated to need."""

    needed_bytes: int = Field(description="On each worker of the current run, or if it were one.")
    worker_bytes: int = Field(description="Of these, what a worker needs whatever its rows are.")
    row_bytes: int = Field(description="Of all rows together, which the workers share.")


class Timings(BaseModel):
    """When things happened (UTC)."""

    submitted_at: datetime
    started_at: datetime | None = Field(description="The current run was taken by a runner.")
    running_at: datetime | None = Field(description="Its first round began.")
    finished_at: datetime | None


class TransitionAnswer(BaseModel):
    """One change of state."""

    state: JobState
    run: int
    at: datetime
    reason: str | None


class ConditionsAnswer(BaseModel):
    """The largest gamma at which a round's weak learner meets each weak-learning condition (docs/theory.md); null where
    none is defined."""

    uniform: float | None = Field(description="Guessing the true label with gamma more than every other.")
    worst: float | None = Field(description="The worst guess that favours the true label by gamma.")
    mr: float | None = Field(description="AdaBoost.MR's baseline.")
    mh: float | None = Field(description="AdaBoost.MH's baseline, which asks too much.")
    samme: float | None = Field(description="SAMME's, which asks too little.")
    m1: float | None = Field(description="AdaBoost.M1's: accuracy above one half.")


class RoundAnswer(BaseModel):
    """The figures of one round. Null where the figure does not exist or no JSON number can say it."""

    round: int
    edge: float | None
    alpha: float | None
    loss: float | None
    ln_loss: float | None
    bound: float | None
    ln_bound: float | None
    error_bound: float | None
    train_error: float | None
    strict_train_error: float | None
    valid_error: float | None
    n_leaves: int
    bytes_reduced: int
    seconds: float
    conditions: ConditionsAnswer | None = Field(default=None, description="Where the job asks for them.")
    stages: dict[str, float] | None = Field(
        default=None,
        description="Seconds by stage, and outside_kernels of all; where the job asks for a profile.",
    )

    @classmethod
    def of(cls, entry: RoundEntry) -> Self:
        """The answer about a stored round."""
        return cls.model_validate({"round": entry.round, **entry.figures, "seconds": entry.seconds})


class JobAnswer(BaseModel):
    """A job."""

    id: str
    name: str
    status: JobState
    algorithm: str = Field(description="Its name.")
    message: str = Field(description="What the status means.")
    phase: str | None = Field(description="While the job starts: read, or compile where kernels are compiled.")
    reason: str | None = Field(description="Why the status was reached, where that is not plain.")
    progress: float = Field(description="0 to 1.")
    eta: float | None = Field(description="Seconds left, while rounds are trained.")
    run: int = Field(description="Attempts so far.")
    rounds: int = Field(description="Rounds asked for.")
    rounds_done: int = Field(description="Rounds trained in the current run.")
    latest: RoundAnswer | None = Field(description="The last round told of the current run.")
    model: ModelReference | None
    priority: int = Field(description="As asked for.")
    resources: Resources
    memory: Memory | None = Field(description="The estimate; null where there was none when the job was submitted.")
    timings: Timings
    answer: dict[str, Any] | None = Field(description="The figures of the finished training.")

    @classmethod
    def of(cls, job: Job, now: datetime, latest: RoundEntry | None = None) -> Self:
        """The answer about a stored job, and the last round told of its run."""
        asked = job.body["resources"]
        return cls(
            id=job.id,
            name=job.name,
            status=job.state,
            algorithm=job.body["algorithm"]["name"],
            message=job.state.sentence,
            phase=job.phase if job.state is JobState.STARTING else None,
            reason=job.reason,
            progress=_progress(job),
            eta=_seconds_left(job, now),
            run=job.run,
            rounds=job.rounds,
            rounds_done=job.rounds_done,
            latest=None if latest is None else RoundAnswer.of(latest),
            model=_model(job),
            resources=Resources(requested_workers=asked["workers"], threads=asked["threads"], workers=job.workers),
            priority=job.priority,
            memory=_memory(job),
            timings=Timings(
                submitted_at=job.submitted_at,
                started_at=job.started_at,
                running_at=job.running_at,
                finished_at=job.finished_at,
            ),
            answer=job.answer,
        )


class JobDetailAnswer(JobAnswer):
    """A job with its request and its history."""

    request: dict[str, Any] = Field(default={}, description="The request with its defaults.")
    transitions: list[TransitionAnswer] = []

    def with_history(self, job: Job, transitions: list[Transition]) -> Self:
        """This answer, with what only the call for one job shows."""
        history = [TransitionAnswer(state=t.state, run=t.run, at=t.at, reason=t.reason) for t in transitions]
        return self.model_copy(update={"request": job.body, "transitions": history})


class JobListAnswer(BaseModel):
    """One page of jobs, the newest first."""

    jobs: list[JobAnswer]
    next_page_token: str | None = Field(description="For the next page; null at the end.")


class RoundsAnswer(BaseModel):
    """Rounds of a job's current run, in order."""

    run: int
    rounds: list[RoundAnswer]
    next_after: int = Field(description="The `after` of the next call.")


def _progress(job: Job) -> float:
    if job.state is JobState.SUCCEEDED:
        return 1.0
    return min(1.0, job.rounds_done / job.rounds)


def _seconds_left(job: Job, now: datetime) -> float | None:
    if job.state is not JobState.RUNNING or job.running_at is None or not job.rounds_done:
        return None
    elapsed = max(0.0, (now - job.running_at).total_seconds())
    return elapsed / job.rounds_done * (job.rounds - job.rounds_done)


def _memory(job: Job) -> Memory | None:
    need = job.need
    if need is None:
        return None
    on_each = need.on(max(job.workers or 1, 1))
    return Memory(needed_bytes=on_each, worker_bytes=need.member_bytes, row_bytes=need.row_bytes)


def _model(job: Job) -> ModelReference | None:
    if job.model_name is None or job.model_version is None:
        return None
    return ModelReference(name=job.model_name, version=job.model_version)
