"""What a scheduler of jobs wants to know of a cluster's workers: who has each, and how much memory it has."""

from dataclasses import dataclass

from distributed import Client

from workers import plugin
from workers.cluster_calls import WorkerNews, call_workers, known_workers
from workers.plugin import Occupancy

SURVEY_SECONDS = 2.0  # a worker that does not say in this time how it is counts as busy
CALL_SECONDS = 10.0


@dataclass(frozen=True)
class WorkerState:
    """A worker. memory_bytes: None if it does not answer; job_id: who has it, None = nobody or not known."""

    address: str
    host: str
    memory_bytes: int | None
    job_id: str | None

    @property
    def free(self) -> bool:
        """Whether a job could have it now."""
        return self.memory_bytes is not None and self.job_id is None


def worker_states(client: Client) -> list[WorkerState]:
    """All workers that take tasks, by address. Errors: SchedulerLost."""
    known = {address: news for address, news in known_workers(client, CALL_SECONDS).items() if news.ready}
    answers = call_workers(client, plugin.occupancy, sorted(known), seconds=SURVEY_SECONDS)
    hosts = [news.host for news in known.values()]
    return [_state(known[address], answer, hosts.count(known[address].host)) for address, answer in answers.items()]


def _state(news: WorkerNews, answer: object, on_host: int) -> WorkerState:
    if not isinstance(answer, Occupancy):
        return WorkerState(news.address, news.host, None, None)
    memory = shared_memory(answer.limit_bytes, answer.machine_bytes, on_host)
    return WorkerState(news.address, news.host, memory, answer.holder[0] if answer.holder else None)


def shared_memory(limit_bytes: int | None, machine_bytes: int, on_host: int) -> int:
    """Bytes of one of the workers of a host: its own limit, or its share of what the host has if that is less."""
    share = machine_bytes // max(on_host, 1)
    return min(limit_bytes, share) if limit_bytes else share
