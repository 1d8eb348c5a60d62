"""The runner as a server sees it that has none of its own: by what runners write into the store."""

from service.errors import StoreUnavailable
from service.store import JobStore, RunnerNews


class RemoteRunner:
    """Stands where an embedded Runner stands. `seconds`: a runner that was not heard of for so long is gone."""

    def __init__(self, store: JobStore, seconds: float) -> None:
        self._store = store
        self._seconds = seconds

    def start(self) -> None:
        """Runners start by themselves."""

    def stop(self, seconds: float) -> None:
        """Runners go on without this server."""

    def wake(self) -> None:
        """Runners look at the store by themselves, every poll_seconds."""

    def trouble(self) -> str | None:
        """Why no job is taken, or None."""
        found = self._runners()
        if isinstance(found, str):
            return found
        if not found:
            return f"no runner was heard of within {self._seconds:g} s; is `edgewise runner` running?"
        return None

    def cluster_trouble(self) -> str | None:
        """Why no job can train on the cluster now, or None: one runner that can work is enough."""
        found = self._runners()
        if isinstance(found, str):
            return found
        if not found:
            return "unknown: no runner tells"
        troubles = [runner.trouble for runner in found]
        return None if None in troubles else troubles[0]

    def _runners(self) -> list[RunnerNews] | str:
        try:
            return self._store.runners(self._seconds)
        except StoreUnavailable as error:
            return str(error)
