"""The service's connection to its Dask cluster: made when it is needed, made again when it broke."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from workers.cluster import connect
from workers.cluster_calls import known_workers
from workers.errors import GangUnavailable, TrainingFailed

ANSWER_SECONDS = 5.0  # the scheduler's time to answer a question about itself


class ClusterLink:
    """One cluster, embedded (local:N) or external (tcp://..., tls://...). Safe to use from several threads.

    tls_dir: the certificates of a tls:// cluster.
    """

    def __init__(self, target: str, tls_dir: Path | None = None) -> None:
        self.target = target
        self._tls_dir = tls_dir
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._client: Any = None
        self._trouble = "not connected yet"

    def client(self) -> Any:
        """A connected distributed.Client; connects if there is none. Raises GangUnavailable."""
        with self._lock:
            if self._client is not None and self._client.status == "running":
                return self._client
            self._drop("the connection is lost")
            try:
                with _interrupts_blocked():
                    self._client = self._stack.enter_context(connect(self.target, tls_dir=self._tls_dir))
            except (GangUnavailable, OSError) as error:
                self._trouble = str(error)
                raise GangUnavailable(f"cluster {self.target}: {error}") from error
            return self._client

    def n_workers(self) -> int:
        """Workers that can take work now; 0 without a connection. Raises TrainingFailed if none answers."""
        client = self._client
        if client is None or client.status != "running":
            return 0
        return sum(worker.ready for worker in known_workers(client, ANSWER_SECONDS).values())

    def trouble(self) -> str | None:
        """Why no job can train there now, or None."""
        client = self._client
        if client is None or client.status != "running":
            return self._trouble
        try:
            return None if self.n_workers() else "no worker is connected"
        except TrainingFailed as error:
            return str(error)

    def close(self) -> None:
        """Disconnect; an embedded cluster ends."""
        with self._lock:
            self._drop("closed")

    def _drop(self, trouble: str) -> None:
        if self._client is not None:
            self._trouble = trouble
        self._client = None
        with contextlib.suppress(OSError, TimeoutError):
            self._stack.close()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Threads and processes that are started in the block never see an interrupt from the terminal.

    A terminal interrupts every process of the command at once. Workers that died of it would fail the job, which
    their owner, interrupted too, is about to stop in good order. Signal masks are inherited by whatever a thread
    starts.
    """
    # Started later, by the first process, the tracker would unblock the interrupt again (Python 3.11).
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fixed_size(target: str) -> int | None:
    """The number of workers that a setting promises; None where only the cluster knows."""
    kind, _, rest = target.partition(":")
    return int(rest) if kind == "local" else None
