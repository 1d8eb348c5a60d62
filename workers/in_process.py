"""Trains a job in the calling process, with threads."""

from dataclasses import replace

from boost_core.collective import Alone
from workers.assignment import assign
from workers.job import Progress, TrainingJob, TrainingOutcome, join_outcomes
from workers.last_checkpoint import last_checkpoint
from workers.member import available_cores, run_member


def train_in_process(job: TrainingJob, progress: Progress) -> TrainingOutcome:
    """Train with job.threads threads, by default as many as there are cores.

    Errors: DataError, CheckpointRefused, CheckpointDamaged, CheckpointsUnavailable, ConfigError, BoundBroken.
    """
    [assignment] = assign(job, [available_cores()])
    assignment = replace(assignment, resume=last_checkpoint(job))
    return join_outcomes([run_member(assignment, Alone(), progress)], workers=0)
