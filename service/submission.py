"""Accepts training requests: everything that can be found wrong is found before the job is queued."""

import hashlib
import json
from dataclasses import dataclass, replace

from service.memory_check import refuse_too_large, site_of
from service.registry import ModelRegistry
from service.requests import TrainingRequest, prepare
from service.settings import Settings
from service.store import Job, JobStore, NewJob
from service.trainer import Trainer
from service.warm_start import check_start, find_start
from workers.memory_need import Need, estimate, facts_of


@dataclass(frozen=True)
class SubmissionContext:
    """What accepting a request needs."""

    store: JobStore
    registry: ModelRegistry
    trainer: Trainer
    settings: Settings

    def check_memory(self, workers: int | None, need: Need) -> None:
        """Raises MemoryShort if no runner has workers that are large enough."""
        news = self.store.runners(self.settings.lease_seconds)
        if (site := site_of(news, bool(self.settings.cluster))) is not None:
            refuse_too_large(workers, need, site)


def submit(request: TrainingRequest, key: str | None, context: SubmissionContext) -> tuple[Job, bool]:
    """Queue a job; True if it is new, False if its idempotency key brought back a job submitted before.

    Raises KeyReused, RequestRefused, MemoryShort, ConfigError, DataError. Opens the data: not for the event loop.
    """
    body = request.model_dump(mode="json")
    hashed = body_hash(body)
    asked, need = request.resources.workers, None
    wanted = None if asked == "auto" else asked
    if key is None or context.store.find_key(key) is None:
        # A repeated request is answered even if its data have gone since.
        context.trainer.check(request.resources.workers)
        plan, config = prepare(request, context.settings.data_root)
        need = estimate(facts_of(plan, config))
        context.check_memory(wanted, need)
        if start := find_start(request, context.registry):
            check_start(start.model, plan, config)
            # the newest version may be another one when the job runs
            body["warm_start"]["version"] = start.version.version
    new = NewJob(request.name, body, hashed, request.rounds, key, request.priority, wanted)
    if need is not None:
        new = replace(new, member_bytes=need.member_bytes, row_bytes=need.row_bytes)
    return context.store.submit(new)


def body_hash(body: dict[str, object]) -> str:
    """Tells requests apart, whatever the order of their keys and the defaults they spell out."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
