"""The embedded runner: a thread of the server that places queued jobs on workers, and a thread for each that runs.

What starts is decided by scheduling.py; this is the shell around it that looks, asks and acts.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from service.errors import LeaseLost, StoreUnavailable
from service.job_run import JobRun
from service.job_states import JobState
from service.lease_keeper import BEATS_PER_LEASE, LeaseKeeper
from service.scheduling import Decision, Site, Waiting, decide
from service.store import Job, JobStore, Lease, Offer
from service.stuck_jobs import StuckJobs
from service.trainer import Trainer
from workers.errors import WorkersError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunnerSettings:
    """`owner` names the runner in leases, `previous_owner` the dead one that it replaces. worker_wait_seconds: after
    which a job fails for which there are no workers, busy or not."""

    owner: str
    previous_owner: str | None
    lease_seconds: float
    poll_seconds: float
    worker_wait_seconds: float = 600.0


class Runner:
    """Runs jobs until it is stopped."""

    def __init__(
        self,
        store: JobStore,
        trainer: Trainer,
        make_run: Callable[[threading.Event], JobRun],
        settings: RunnerSettings,
    ) -> None:
        self._store = store
        self._trainer = trainer
        self._settings = settings
        self._previous_owner = settings.previous_owner
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._run = make_run(self._stopping)
        self._jobs: dict[str, tuple[Job, threading.Thread]] = {}
        self._keepers: dict[str, LeaseKeeper] = {}
        self._stuck = StuckJobs(time.monotonic)
        self._trouble: str | None = "not started yet"
        self._told: tuple[str | None, Offer] | None = None
        self._told_at = 0.0
        # A thread that hangs in a broken run must not keep the process alive: the job's lease expires then.
        self._thread = threading.Thread(target=self._work, name="runner", daemon=True)

    def start(self) -> None:
        """Begin to take jobs; those of the runner before are queued again first."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Ask the running jobs to stop and go back to the queue, and wait for that."""
        until = time.monotonic() + seconds
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        for job, thread in list(self._jobs.values()):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                log.error("job %s did not stop within %s s; it is queued again at the next start", job.id, seconds)

    def wake(self) -> None:
        """Look at the store now: a job was submitted or cancelled."""
        self._wake.set()
        for keeper in list(self._keepers.values()):
            keeper.nudge()

    def trouble(self) -> str | None:
        """Why no job is taken, or None."""
        if not self._thread.is_alive() and self._thread.ident is not None:
            return "stopped"
        return self._trouble

    def cluster_trouble(self) -> str | None:
        """Why no job can train on the cluster now, or None."""
        return self._trainer.trouble()

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._attempt()
            self._tell()
            self._wake.wait(self._settings.poll_seconds)

    def _attempt(self) -> None:
        """Start what can start now."""
        try:
            self._recover()
            self._trainer.prepare()
            site = self._trainer.site(own_busy=any(not job.place for job in self._running()))
            self._trouble = None
            if not self._store.list_jobs(JobState.QUEUED, 1, None):
                return
            for job in self._store.place(
                self._settings.owner, self._settings.lease_seconds, lambda *found: self._decide(site, *found)
            ):
                self._begin(job)
        except WorkersError as error:
            # Queued jobs wait until the cluster is back; /readyz says so.
            self._trouble = str(error)
        except StoreUnavailable as error:
            log.warning("%s", error)
            self._trouble = str(error)
        except Exception as error:
            log.exception("the runner cannot take jobs")
            self._trouble = f"cannot take jobs ({type(error).__name__}); the server's log has the details"

    def _decide(self, site: Site, waiting: Sequence[Waiting], placed: Collection[str]) -> Decision:
        """What starts, given what other runners have placed already."""
        if site.workers is not None:
            taken = tuple(replace(each, busy=each.busy or each.address in placed) for each in site.workers)
            site = replace(site, workers=taken)
        ready = [
            replace(job, stuck=self._stuck.seconds(job.job_id)) for job in waiting if not self._stuck.pauses(job.job_id)
        ]
        decision = decide(ready, site, self._settings.worker_wait_seconds)
        self._stuck.found_stuck([job.job_id for job in decision.stuck], [job.job_id for job in waiting])
        return decision

    def _running(self) -> list[Job]:
        return [job for job, _thread in list(self._jobs.values())]

    def _begin(self, job: Job) -> None:
        """Run a job in a thread of its own. One that hangs must not keep the process alive: its lease expires then."""
        thread = threading.Thread(target=self._execute, args=[job], name=f"job-{job.id}", daemon=True)
        self._jobs[job.id] = job, thread
        thread.start()

    def _tell(self) -> None:
        """Let servers that have no runner of their own know of this one; a third of a lease apart is enough."""
        now, told = time.monotonic(), (self._trouble, self._trainer.offer())
        if told == self._told and now - self._told_at < self._settings.lease_seconds / BEATS_PER_LEASE:
            return
        with contextlib.suppress(StoreUnavailable):  # it shows in the trouble already
            self._store.see_runner(self._settings.owner, *told)
            self._told, self._told_at = told, now

    def _recover(self) -> None:
        """Queue the jobs that nobody works on any more: of the runner before, and of silent ones."""
        if self._previous_owner is not None:
            self._store.release(self._previous_owner, "the server that ran it is gone")
            self._previous_owner = None
        self._store.release(None, "the lease of its runner expired")

    def _execute(self, job: Job) -> None:
        lease = Lease(job.id, job.run, self._settings.owner)
        last_try = self._stuck.seconds(job.id) >= self._settings.worker_wait_seconds
        seconds, beat = self._settings.lease_seconds, self._settings.poll_seconds
        try:
            with LeaseKeeper(self._store, lease, seconds, beat) as keeper:
                self._keepers[job.id] = keeper
                if self._run.execute(job, keeper, last_try=last_try):
                    self._stuck.forget(job.id)
                else:
                    self._stuck.not_to_be_had(job.id)
        except LeaseLost as error:
            log.warning("%s; its results are dropped", error)
        except Exception:
            # The store itself failed: the lease expires and the job is queued again.
            log.exception("run %s of job %s could not be brought to an end", job.run, job.id)
        finally:
            self._keepers.pop(job.id, None)
            self._jobs.pop(job.id, None)
            self._wake.set()
