"""Where a job can train, and training it there: in this process or on a gang of Dask workers."""

from collections.abc import Sequence
from typing import Literal

from service.cluster_link import ClusterLink, fixed_size
from service.errors import RequestRefused
from service.scheduling import Place, Site, usable
from service.store import Offer
from workers.errors import GangUnavailable
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import Progress, TrainingJob, TrainingOutcome
from workers.machine_limits import memory_limit
from workers.memory_need import Need
from workers.worker_states import worker_states

WantedWorkers = Literal["auto"] | int


class Trainer:
    """Trains jobs; `link` is None where there is no cluster. deadline_seconds: for the members of a gang in a round."""

    def __init__(self, link: ClusterLink | None, deadline_seconds: float = 30.0) -> None:
        self._link = link
        self._deadline_seconds = deadline_seconds
        self._memory: dict[str, int] = {}  # of the workers, by address, as they were last asked

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

    def trouble(self) -> str | None:
        """Why no job can start now, or None."""
        return None if self._link is None else self._link.trouble()

    def prepare(self) -> None:
        """Connect to the cluster, if there is one. Raises GangUnavailable."""
        if self._link is None:
            return
        try:
            self._link.client()
        except GangUnavailable:
            self._memory = {}
            raise

    def site(self, own_busy: bool) -> Site:
        """Where jobs could train now; own_busy: a job trains in this process. Raises GangUnavailable, SchedulerLost."""
        own = Place("", memory_limit(), own_busy)
        if self._link is None:
            return Site(None, own)
        states = [state for state in worker_states(self._link.client()) if state.memory_bytes is not None]
        self._memory = {state.address: state.memory_bytes or 0 for state in states}
        return Site(
            tuple(Place(each.address, each.memory_bytes or 0, not each.free, each.host) for each in states), own
        )

    def offer(self) -> Offer:
        """The memory that jobs can have here, as far as it is known."""
        return Offer(tuple(self._memory.values()), memory_limit())

    def fewest(self, need: Need, place: Sequence[str]) -> int:
        """With how many workers a gang of these may go on when it loses some: as many as its rows fit on."""
        least = min((self._memory.get(address, 0) for address in place), default=0)
        return min(need.fewest(usable(least)) or len(place), len(place)) or 1

    def train(
        self, job: TrainingJob, n_workers: int, progress: Progress, only: tuple[str, ...] = (), fewest: int = 1
    ) -> TrainingOutcome:
        """Train on so many workers, 0 = in this process. only: those of these addresses; fewest: how many must be left
        of them to go on. Raises what the workers raise."""
        if n_workers == 0:
            return train_in_process(job, progress)
        if self._link is None:
            raise GangUnavailable(f"{n_workers} workers asked for, but there is no cluster here")
        settings = GangSettings(self._deadline_seconds, only=only, fewest=fewest)
        return train_on_gang(job, self._link.client(), n_workers, progress, settings)
