"""The embedded runner: a thread of the server that takes queued jobs, one at a time."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from service.errors import LeaseLost, StoreUnavailable
from service.job_run import JobRun
from service.lease_keeper import BEATS_PER_LEASE, LeaseKeeper
from service.store import Job, JobStore, Lease
from service.trainer import Trainer
from workers.errors import WorkersError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunnerSettings:
    """`owner` names the runner in leases, `previous_owner` the dead one that it replaces."""

    owner: str
    previous_owner: str | None
    lease_seconds: float
    poll_seconds: float


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
        self._keeper: LeaseKeeper | None = None
        self._trouble: str | None = "not started yet"
        self._told: str | None = self._trouble
        self._told_at = 0.0
        # A thread that hangs in a broken run must not keep the process alive: the job's lease expires then.
        self._thread = threading.Thread(target=self._work, name="runner", daemon=True)

    def start(self) -> None:
        """Begin to take jobs; those of the runner before are queued again first."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Ask the running job to stop and go back to the queue, and wait for that."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                log.error("the running job did not stop within %s s; it is queued again at the next start", seconds)

    def wake(self) -> None:
        """Look at the store now: a job was submitted or cancelled."""
        self._wake.set()
        if keeper := self._keeper:
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
            busy = self._attempt()
            self._tell()
            if not busy:
                self._wake.wait(self._settings.poll_seconds)

    def _attempt(self) -> bool:
        """Run one job, if there is one and it can be run now."""
        try:
            self._recover()
            self._trainer.prepare()
            self._trouble = None
            job = self._store.take(self._settings.owner, self._settings.lease_seconds)
        except WorkersError as error:
            # Queued jobs wait until the cluster is back; /readyz says so.
            self._trouble = str(error)
            return False
        except StoreUnavailable as error:
            log.warning("%s", error)
            self._trouble = str(error)
            return False
        except Exception as error:
            log.exception("the runner cannot take jobs")
            self._trouble = f"cannot take jobs ({type(error).__name__}); the server's log has the details"
            return False
        if job is not None:
            self._execute(job)
        return job is not None

    def _tell(self) -> None:
        """Let servers that have no runner of their own know of this one; a third of a lease apart is enough."""
        now = time.monotonic()
        if self._trouble == self._told and now - self._told_at < self._settings.lease_seconds / BEATS_PER_LEASE:
            return
        with contextlib.suppress(StoreUnavailable):  # it shows in the trouble already
            self._store.see_runner(self._settings.owner, self._trouble, self._trainer.n_workers())
            self._told, self._told_at = self._trouble, now

    def _recover(self) -> None:
        """Queue the jobs that nobody works on any more: of the runner before, and of silent ones."""
        if self._previous_owner is not None:
            self._store.release(self._previous_owner, "the server that ran it is gone")
            self._previous_owner = None
        self._store.release(None, "the lease of its runner expired")

    def _execute(self, job: Job) -> None:
        lease = Lease(job.id, job.run, self._settings.owner)
        try:
            with LeaseKeeper(self._store, lease, self._settings.lease_seconds) as self._keeper:
                self._run.execute(job, self._keeper)
        except LeaseLost as error:
            log.warning("%s; its results are dropped", error)
        except Exception:
            # The store itself failed: the lease expires and the job is queued again.
            log.exception("run %s of job %s could not be brought to an end", job.run, job.id)
        finally:
            self._keeper = None
