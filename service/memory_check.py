"""Refuses a job that no worker has the memory for, before it is queued or begun."""

from collections.abc import Sequence

from service.errors import MemoryShort
from service.scheduling import Place, Shortage, Site, Waiting, misfit
from service.store import RunnerNews
from workers.memory_need import Need


def refuse_too_large(workers: int | None, need: Need, site: Site) -> None:
    """workers: asked for, None = as few as it fits on, 0 = in the own process. Raises MemoryShort."""
    found = misfit(Waiting("", 0, 0, 0.0, workers, need), site)
    if isinstance(found, Shortage):
        raise MemoryShort(str(found), found.needed_bytes, found.largest_bytes, found.would_do)


def site_of(news: Sequence[RunnerNews], has_cluster: bool) -> Site | None:
    """The best that any runner could offer; None while nobody has told of any memory."""
    told = [each for each in news if each.own_bytes and (each.worker_bytes or not has_cluster)]
    if not told:
        return None
    best = max(told, key=lambda each: (sum(each.worker_bytes), each.own_bytes))
    workers = tuple(Place(str(number), memory) for number, memory in enumerate(best.worker_bytes))
    return Site(workers if has_cluster else None, Place("", best.own_bytes))
