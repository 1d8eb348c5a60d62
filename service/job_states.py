"""The states of a job, and the one table of what may follow what.

queued -> starting -> running -> succeeded | failed       (each of them, and cancelled, -> queued when resumed)
             |           |
             +-----------+--> cancelling -> cancelled      (cancelled at once while nobody works on it)
             +-----------+--> paused -> queued             (its runner or its cluster is gone)
"""

import enum
from collections.abc import Mapping

from service.errors import WrongState

# A job that kills its server is not tried for ever. High, since servers also die of what is no job's fault.
MOST_LOST_RUNS = 10


class JobState(enum.StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    CANCELLING = "cancelling"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def sentence(self) -> str:
        """What the state means, for people."""
        return SENTENCES[self]

    @property
    def is_final(self) -> bool:
        """Whether the job is over."""
        return self in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}

    @property
    def is_leased(self) -> bool:
        """Whether a runner works on the job, under a lease."""
        return self in {JobState.STARTING, JobState.RUNNING, JobState.CANCELLING}


SENTENCES: Mapping[JobState, str] = {
    JobState.QUEUED: "The job waits for a runner.",
    JobState.STARTING: "A runner reads the data and gathers the workers.",
    JobState.RUNNING: "Rounds are being trained.",
    JobState.CANCELLING: "The job was asked to stop; its workers are not free yet.",
    JobState.PAUSED: "The runner or the cluster of the job is gone; it will be queued again.",
    JobState.SUCCEEDED: "The model is trained and registered.",
    JobState.FAILED: "Training ended without a model, for the reason given.",
    JobState.CANCELLED: "The job was stopped on request; its workers are free.",
}

ALLOWED: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.STARTING, JobState.CANCELLED}),
    JobState.STARTING: frozenset({JobState.RUNNING, JobState.CANCELLING, JobState.PAUSED, JobState.FAILED}),
    JobState.RUNNING: frozenset({JobState.SUCCEEDED, JobState.CANCELLING, JobState.PAUSED, JobState.FAILED}),
    JobState.CANCELLING: frozenset({JobState.CANCELLED}),
    JobState.PAUSED: frozenset({JobState.QUEUED, JobState.CANCELLED, JobState.FAILED}),
    JobState.SUCCEEDED: frozenset({JobState.QUEUED}),
    JobState.FAILED: frozenset({JobState.QUEUED}),
    JobState.CANCELLED: frozenset({JobState.QUEUED}),
}


def check_transition(old: JobState, new: JobState) -> None:
    """Raises WrongState unless a job may go from one state to the other."""
    if new not in ALLOWED[old]:
        raise WrongState(f"a job that is {old} cannot become {new}")


def after_cancel(state: JobState) -> JobState:
    """The state that a request to cancel leads to; the same state if it was asked before.

    Raises WrongState for a job that ended otherwise.
    """
    if state in {JobState.CANCELLING, JobState.CANCELLED}:
        return state
    if state.is_final:
        raise WrongState(f"the job has {state} already; only a job that is not over can be cancelled")
    return JobState.CANCELLING if state.is_leased else JobState.CANCELLED


def after_loss(state: JobState, lost_runs: int = 0) -> tuple[JobState, ...]:
    """The states that a leased job passes when its runner is gone; lost_runs: how often that came without progress."""
    if state is JobState.CANCELLING:
        return (JobState.CANCELLED,)
    return (JobState.PAUSED, JobState.FAILED if lost_runs >= MOST_LOST_RUNS else JobState.QUEUED)


def after_resume(state: JobState) -> JobState:
    """The state that a request to resume leads to; the same one if the job will be run anyway.

    Raises WrongState while a runner works on it.
    """
    if state.is_leased:
        raise WrongState(f"the job is {state}; only a job that is over can be resumed")
    return JobState.QUEUED
