"""Who may use a worker: one lease at a time, held by one run of one job.

    free --take--> held --begin--> member runs --end--> free
                    |                  |
                 release,           release, cancel, a newer run:
                 lapse: free        the member is told, the lease stays until it has ended

A thread cannot be stopped from outside, so a lease under a running member ends only with the member. That
keeps two gangs from ever waiting for each other's threads. Runs fence: once a run of a job was seen here, no
older run of that job gets a lease or begins.

One book per worker, used from its event loop and from its members' threads.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from boost_core.errors import CollectiveError
from workers.endpoint import Endpoint
from workers.job import shown_run
from workers.messages import RunEnded


class LeaseRefused(CollectiveError):
    """A member may not begin: its run does not hold the worker, or not any more."""


@dataclass(frozen=True)
class Refusal:
    """Why a worker was not given. for_good: asking again is of no use."""

    reason: str
    for_good: bool = False


@dataclass
class Lease:
    """A worker held by one run. `cancelled` is read by the member between rounds, without a lock."""

    job_id: str
    run: int
    lapses_at: float
    endpoint: Endpoint
    began: bool = False
    cancelled: bool = False
    ended: str = ""
    abort: Callable[[str], None] | None = None
    key: str = field(default="", repr=False)

    @property
    def holder(self) -> tuple[str, int]:
        return self.job_id, self.run


class LeaseBook:
    """The one lease of a worker and the newest run seen of every job."""

    def __init__(self, open_endpoint: Callable[[], Endpoint], clock: Callable[[], float] = time.monotonic):
        self._open_endpoint = open_endpoint
        self._clock = clock
        self._lock = threading.RLock()
        self._lease: Lease | None = None
        self._newest_run: dict[str, int] = {}

    @property
    def holder(self) -> tuple[str, int] | None:
        """The (job, run) that has this worker."""
        with self._lock:
            self._drop_if_lapsed()
            return self._lease.holder if self._lease else None

    def take(self, job_id: str, run: int, seconds: float) -> Lease | Refusal:
        """Lease the worker and open its endpoint. Taking twice gives the same lease.

        seconds: the lease lapses if no member begins within them, so that a driver that dies between taking
        its workers and starting its members leaves none behind.
        """
        with self._lock:
            if run < self._newest_run.get(job_id, run):
                newest = self._newest_run[job_id]
                return Refusal(
                    f"run {shown_run(newest)} of job {job_id} was seen there: run {shown_run(run)} is over",
                    for_good=True,
                )
            self._newest_run[job_id] = run
            self._drop_if_lapsed()
            if self._lease and self._lease.job_id == job_id and self._lease.run < run:
                self._end_run(self._lease, f"run {shown_run(run)} of job {job_id} took over")
            if self._lease and self._lease.holder != (job_id, run):
                return Refusal(f"held by job {self._lease.job_id}, run {shown_run(self._lease.run)}")
            if self._lease is None:
                try:
                    endpoint = self._open_endpoint()
                except OSError as error:
                    return Refusal(f"cannot listen for members: {error}")
                self._lease = Lease(job_id, run, self._clock() + seconds, endpoint)
            return self._lease

    def release(self, job_id: str, run: int, reason: str) -> None:
        """Give the worker back. A running member is told to end; its lease goes with it."""
        with self._lock:
            if self._lease and self._lease.holder == (job_id, run):
                self._end_run(self._lease, reason)

    def cancel(self, job_id: str, run: int) -> bool:
        """Ask the member to stop after its round; whether there is such a lease."""
        with self._lock:
            if self._lease is None or self._lease.holder != (job_id, run):
                return False
            self._lease.cancelled = True
            return True

    def task_gone(self, key: str, reason: str) -> None:
        """The member's task was given up by whoever wanted its result."""
        with self._lock:
            if self._lease and self._lease.began and self._lease.key == key:
                self._end_run(self._lease, reason)

    def begin(self, job_id: str, run: int, key: str) -> Lease:
        """The member of a lease begins, once. Errors: LeaseRefused."""
        with self._lock:
            lease = self._lease
            if lease is None or lease.holder != (job_id, run):
                other = f"job {lease.job_id}, run {shown_run(lease.run)} has it" if lease else "nobody has it"
                raise LeaseRefused(f"job {job_id}, run {shown_run(run)} does not hold this worker: {other}")
            if lease.began:
                raise LeaseRefused(f"the member of job {job_id}, run {shown_run(run)} on this worker began once before")
            lease.began = True
            lease.key = key
            lease.abort = lease.endpoint.abort
            return lease

    def on_abort(self, lease: Lease, abort: Callable[[str], None]) -> None:
        """What to call if the run is ended from outside. Errors: RunEnded if it was already."""
        with self._lock:
            if lease.ended:
                raise RunEnded(lease.ended)
            lease.abort = abort

    def end(self, lease: Lease) -> None:
        """The member has ended: the worker is free."""
        with self._lock:
            lease.abort = None
            lease.endpoint.close()
            if self._lease is lease:
                self._lease = None

    def close(self) -> None:
        """The worker goes away."""
        with self._lock:
            if self._lease:
                self._end_run(self._lease, "the worker is closing")

    def _end_run(self, lease: Lease, reason: str) -> None:
        lease.cancelled = True
        if not lease.began:
            self.end(lease)
        elif lease.abort is not None:
            lease.ended = lease.ended or reason
            lease.abort(lease.ended)

    def _drop_if_lapsed(self) -> None:
        lease = self._lease
        if lease and not lease.began and self._clock() >= lease.lapses_at:
            self.end(lease)
