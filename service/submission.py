"""Accepts training requests: everything that can be found wrong is found before the job is queued."""

import hashlib
import json
from dataclasses import dataclass

from service.registry import ModelRegistry
from service.requests import TrainingRequest, prepare
from service.settings import Settings
from service.store import Job, JobStore, NewJob
from service.trainer import Trainer
from service.warm_start import check_start, find_start


@dataclass(frozen=True)
class SubmissionContext:
    """What accepting a request needs."""

    store: JobStore
    registry: ModelRegistry
    trainer: Trainer
    settings: Settings


def submit(request: TrainingRequest, key: str | None, context: SubmissionContext) -> tuple[Job, bool]:
    """Queue a job; True if it is new, False if its idempotency key brought back a job submitted before.

    Raises KeyReused, RequestRefused, ConfigError or DataError. Opens the data files: not for the event loop.
    """
    body = request.model_dump(mode="json")
    hashed = body_hash(body)
    if key is None or context.store.find_key(key) is None:
        # A repeated request is answered even if its data have gone since.
        context.trainer.check(request.resources.workers)
        plan, config = prepare(request, context.settings.data_root)
        if start := find_start(request, context.registry):
            check_start(start.model, plan, config)
            # the newest version may be another one when the job runs
            body["warm_start"]["version"] = start.version.version
    return context.store.submit(NewJob(request.name, body, hashed, request.rounds, key))


def body_hash(body: dict[str, object]) -> str:
    """Tells requests apart, whatever the order of their keys and the defaults they spell out."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
