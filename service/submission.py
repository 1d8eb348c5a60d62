"""Accepts training requests: everything that can be found wrong is found before the job is queued."""

import hashlib
import json

from service.requests import TrainingRequest, prepare
from service.settings import Settings
from service.store import Job, JobStore, NewJob
from service.trainer import Trainer


def submit(
    request: TrainingRequest, key: str | None, store: JobStore, trainer: Trainer, settings: Settings
) -> tuple[Job, bool]:
    """Queue a job; True if it is new, False if its idempotency key brought back a job submitted before.

    Raises KeyReused, RequestRefused, ConfigError or DataError. Opens the data files: not for the event loop.
    """
    body = request.model_dump(mode="json")
    new = NewJob(request.name, body, body_hash(body), request.rounds, key)
    if key is None or store.find_key(key) is None:
        # A repeated request is answered even if its data have gone since.
        trainer.check(request.resources.workers)
        prepare(request, settings.data_root)
    return store.submit(new)


def body_hash(body: dict[str, object]) -> str:
    """Tells requests apart, whatever the order of their keys and the defaults they spell out."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
