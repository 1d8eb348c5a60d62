"""The checkpoint that a job goes on from. Without Dask: a process that trains alone never needs it."""

from workers.checkpoint import check_same, to_bytes
from workers.checkpoint_store import checkpoints_at, newest
from workers.job import TrainingJob


def last_checkpoint(job: TrainingJob) -> bytes | None:
    """The job's last checkpoint, if it is to be resumed and there is one.

    Errors: CheckpointRefused names what differs between it and the job; CheckpointDamaged; CheckpointsUnavailable.
    """
    if not job.resume or job.checkpoints is None:
        return None
    checkpoint = newest(checkpoints_at(job.checkpoints.folder), job.checkpoint_name)
    if checkpoint is None:
        return None
    check_same(checkpoint, job.config, job.plan)
    return to_bytes(checkpoint)
