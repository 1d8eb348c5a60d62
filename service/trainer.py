"""Decides where a job trains and trains it there: in this process or on a gang of Dask workers."""

from typing import Literal

from service.cluster_link import ClusterLink, fixed_size
from service.errors import RequestRefused
from workers.data_plan import DataPlan
from workers.errors import GangUnavailable, TrainingFailed
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import Progress, TrainingJob, TrainingOutcome

WantedWorkers = Literal["auto"] | int
# Bins (one byte a cell) that one worker trains about as fast as several: below this, a reduction costs more
# than the rows it saves.
SMALL_JOB_BYTES = 64 << 20


class Trainer:
    """Trains jobs; `link` is None where there is no cluster. deadline_seconds: for the members of a gang in a round."""

    def __init__(self, link: ClusterLink | None, deadline_seconds: float = 30.0) -> None:
        self._link = link
        self._deadline_seconds = deadline_seconds

    def check(self, wanted: WantedWorkers) -> None:
        """Raises RequestRefused for workers that can never be had here."""
        if wanted in ("auto", 0):
            return
        place = ("resources", "workers")
        if self._link is None:
            problem = f'{wanted} workers asked for, but there is no cluster here; use 0 or "auto"'
            raise RequestRefused([(place, problem)])
        size = fixed_size(self._link.target)
        if size is not None and int(wanted) > size:
            raise RequestRefused([(place, f"{wanted} workers asked for, but the cluster has {size}")])

    def n_workers(self) -> int:
        """Workers that can take work now; 0 where there is no cluster, or none that answers."""
        try:
            return 0 if self._link is None else self._link.n_workers()
        except TrainingFailed:
            return 0

    def trouble(self) -> str | None:
        """Why no job can start now, or None."""
        return None if self._link is None else self._link.trouble()

    def prepare(self) -> None:
        """Connect to the cluster, if there is one. Raises GangUnavailable."""
        if self._link is not None:
            self._link.client()

    def choose(self, wanted: WantedWorkers, plan: DataPlan) -> int:
        """The number of workers to train on; 0 = in this process."""
        if wanted != "auto":
            return wanted
        if self._link is None:
            return 0
        rows = plan.train.n_rows + (plan.valid.n_rows if plan.valid else 0)
        return 1 if rows * len(plan.features) <= SMALL_JOB_BYTES else max(1, self._link.n_workers())

    def train(self, job: TrainingJob, n_workers: int, progress: Progress) -> TrainingOutcome:
        """Train on the chosen workers. Raises what the workers raise."""
        if n_workers == 0:
            return train_in_process(job, progress)
        if self._link is None:
            raise GangUnavailable(f"{n_workers} workers asked for, but there is no cluster here")
        return train_on_gang(job, self._link.client(), n_workers, progress, GangSettings(self._deadline_seconds))
