"""Keeps a job's lease alive while the job runs, and hears of its cancellation."""

import logging
import threading
from types import TracebackType
from typing import Self

from service.errors import LeaseLost, NotFound
from service.job_states import JobState
from service.store import JobStore, Lease

BEATS_PER_LEASE = 3  # two heartbeats may fail before the lease is lost

log = logging.getLogger(__name__)


class LeaseKeeper:
    """A thread that prolongs a lease. `cancelled` and `lost` tell what it learned from the store."""

    def __init__(self, store: JobStore, lease: Lease, lease_seconds: float, beat_seconds: float | None = None) -> None:
        """beat_seconds: between two looks at the store, if that is to be more often than the lease needs."""
        self.lease = lease
        self.cancelled = threading.Event()
        self.lost = threading.Event()
        self._store = store
        self.seconds = lease_seconds
        self._beat_seconds = min(lease_seconds / BEATS_PER_LEASE, beat_seconds or lease_seconds)
        self._ended = False
        self._nudge = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease-{lease.job_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._nudge.set()
        self._thread.join()

    def nudge(self) -> None:
        """Look at the store now: something about the job has changed."""
        self._nudge.set()

    def _keep(self) -> None:
        while not self.lost.is_set():
            self._nudge.wait(self._beat_seconds)
            self._nudge.clear()
            if self._ended:
                return
            self._beat()

    def _beat(self) -> None:
        try:
            if self._store.extend(self.lease, self.seconds) is JobState.CANCELLING:
                self.cancelled.set()
        except (LeaseLost, NotFound) as error:
            log.info("%s", error)  # also when the job has just ended; whoever loses results says so
            self.lost.set()
        except Exception:
            # The store may be back at the next beat; if not, the lease expires and a new run fences this one.
            log.exception("the lease of job %s could not be prolonged", self.lease.job_id)
