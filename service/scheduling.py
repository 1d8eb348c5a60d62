"""Which waiting jobs start now, and on which workers. Pure: what is there goes in, decisions come out.

    jobs by priority, raised by how long they have waited, then by their order of submission
    each takes the fewest workers that its rows fit on (or the number that was asked for), the smallest of those that do
    the first that must wait keeps, after PATIENCE_SECONDS, every free worker that would serve it

Nothing starts in parts and nothing that runs is waited for by anything that runs, so no two jobs can wait for each
other. A job that waits rises above all that come later, then no free worker is given to others: it starts as soon as
enough of the jobs that run have ended. How long these take is not known, so nothing is reserved for a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.memory_need import Need

RISE_SECONDS = 300.0  # of waiting that raise a job by one step of priority
PATIENCE_SECONDS = 30.0  # smaller jobs may pass one that waits for several workers, so long
USABLE = 0.9  # of a worker's memory: the rest is for what an estimate does not see


@dataclass(frozen=True)
class Waiting:
    """A queued job. number: order of submission; waited: seconds; workers: asked for, None = as few as it fits on, 0 =
    in the runner's own process; stuck: seconds for which no workers that it could have were there, busy or not."""

    job_id: str
    number: int
    priority: int
    waited: float
    workers: int | None
    need: Need
    stuck: float = 0.0


@dataclass(frozen=True)
class Place:
    """A worker. busy: a job has it, or it does not answer."""

    address: str
    memory_bytes: int
    busy: bool = False
    host: str = ""


@dataclass(frozen=True)
class Site:
    """Where jobs can train: the workers of a cluster (None: there is none) and the runner's own process."""

    workers: tuple[Place, ...] | None
    own: Place


@dataclass(frozen=True)
class Start:
    """A job starts on these workers; none: in the runner's own process."""

    job_id: str
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Stuck:
    """A job cannot start on the workers as they are, even if all were free."""

    job_id: str
    reason: str


@dataclass(frozen=True)
class Decision:
    """What is to be done. waits: why other jobs wait, by job; refused: those that have been stuck for too long."""

    starts: tuple[Start, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    refused: tuple[Stuck, ...] = ()
    waits: tuple[Stuck, ...] = ()


def in_line(waiting: Sequence[Waiting]) -> list[Waiting]:
    """The jobs in the order in which they are served."""
    return sorted(waiting, key=lambda job: (-job.priority - int(job.waited // RISE_SECONDS), job.number))


def usable(memory_bytes: int) -> int:
    """Bytes of a worker that a job may need."""
    return int(memory_bytes * USABLE)


def fitting(job: Waiting, workers: Sequence[Place]) -> tuple[int, list[Place]]:
    """How many workers the job takes, and which of all could be among them: as many at least, else it does not fit."""
    counts = range(1, len(workers) + 1) if job.workers is None else [job.workers]
    count, large = job.workers or 1, list[Place]()
    for count in counts:
        large = [place for place in workers if usable(place.memory_bytes) >= job.need.on(count)]
        if len(large) >= count:
            break
    return count, large


def decide(waiting: Sequence[Waiting], site: Site, most_stuck: float) -> Decision:
    """What starts now. most_stuck: seconds after which a job that cannot start anywhere is refused."""
    round_ = _Round(site)
    for job in in_line(waiting):
        round_.serve(job, most_stuck)
    return Decision(tuple(round_.starts), tuple(round_.stuck), tuple(round_.refused), tuple(round_.waits))


class _Round:
    """One pass over the jobs in line."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._free = {place.address: place for place in site.workers or () if not place.busy}
        self._own_is_free = not site.own.busy
        self._kept_for: str | None = None
        self.starts: list[Start] = []
        self.stuck: list[Stuck] = []
        self.refused: list[Stuck] = []
        self.waits: list[Stuck] = []

    def serve(self, job: Waiting, most_stuck: float) -> None:
        """Start the job, or say why not."""
        if (reason := misfit(job, self._site)) is not None:
            self.stuck.append(Stuck(job.job_id, str(reason)))
            if job.stuck >= most_stuck:
                self.refused.append(Stuck(job.job_id, f"{reason}; waited {most_stuck:g} s for that to change"))
        elif job.workers == 0 or self._site.workers is None:
            self._serve_here(job)
        else:
            self._serve_there(job, self._site.workers)

    def _serve_here(self, job: Waiting) -> None:
        if self._own_is_free:
            self._own_is_free = False
            self.starts.append(Start(job.job_id, ()))

    def _serve_there(self, job: Waiting, workers: Sequence[Place]) -> None:
        count, large = fitting(job, workers)
        free = [place for place in large if place.address in self._free]
        if len(free) >= count:
            chosen = self._best(free, count)
            for address in chosen:
                del self._free[address]
            self.starts.append(Start(job.job_id, chosen))
            return
        kept = f"; free ones are kept for job {self._kept_for}" if self._kept_for else ""
        self.waits.append(
            Stuck(job.job_id, f"waits for {count} free worker(s) of the {len(large)} that serve it{kept}")
        )
        if self._kept_for is None and job.waited >= PATIENCE_SECONDS:
            self._kept_for = job.job_id
            for place in free:
                del self._free[place.address]

    def _best(self, free: list[Place], count: int) -> tuple[str, ...]:
        """The smallest, so that large jobs find the large ones; of equal ones, those on hosts with most free ones."""
        chosen: list[Place] = []
        left = list(free)
        while len(chosen) < count:
            hosts = [place.host for place in left]
            best = min(left, key=lambda place: (place.memory_bytes, -hosts.count(place.host), place.address))
            left.remove(best)
            chosen.append(best)
        return tuple(place.address for place in chosen)


@dataclass(frozen=True)
class Shortage:
    """A job's memory is nowhere to be had. needed_bytes: on each of `count` workers, 0 = in the runner's own process;
    largest_bytes: of the largest worker; would_do: how many of that size would do, None = no number."""

    needed_bytes: int
    count: int
    largest_bytes: int
    would_do: int | None

    def __str__(self) -> str:
        where = f"each of {self.count} worker(s)" if self.count else "the server's own process"
        do = "no number of workers of that size would do"
        if self.would_do is not None:
            do = f"{self.would_do} worker(s) of that size would do"
        usable_bytes = in_gb(usable(self.largest_bytes))
        return (
            f"needs {in_gb(self.needed_bytes)} on {where}; the largest has {in_gb(self.largest_bytes)}, "
            f"of which jobs may use {usable_bytes}; {do}"
        )


def misfit(job: Waiting, site: Site) -> str | Shortage | None:
    """Why the job could not start even if every worker were free; None: it could."""
    if job.workers == 0 or (job.workers is None and site.workers is None):
        fits = job.need.on(1) <= usable(site.own.memory_bytes)
        return None if fits else _shortage(job.need, 0, [site.own])
    workers = site.workers
    if workers is None:
        return f"{job.workers} workers asked for, but there is no cluster here"
    asked = job.workers or 1
    if len(workers) < asked:
        return f"needs {asked} worker(s); the cluster has {len(workers)}"
    count, large = fitting(job, workers)
    return None if len(large) >= count else _shortage(job.need, job.workers or len(workers), workers)


def _shortage(need: Need, count: int, places: Sequence[Place]) -> Shortage:
    largest = max(place.memory_bytes for place in places)
    return Shortage(need.on(max(count, 1)), count, largest, need.fewest(usable(largest)))


def in_gb(n_bytes: int) -> str:
    """Bytes for people."""
    return f"{n_bytes / 1e9:.2f} GB"
