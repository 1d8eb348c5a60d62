"""What endpoints call: the parts that the composition root put together."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.artifacts import ArtifactStore
from service.cluster_link import ClusterLink
from service.key_ring import KeyRing
from service.registry import ModelRegistry
from service.remote_runner import RemoteRunner
from service.runner import Runner
from service.settings import Settings
from service.sql_store import SqlStore
from service.trainer import Trainer


@dataclass(frozen=True)
class Services:
    """The parts of a running server."""

    settings: Settings
    store: SqlStore
    artifacts: ArtifactStore
    registry: ModelRegistry
    trainer: Trainer
    runner: Runner | RemoteRunner
    link: ClusterLink | None
    keys: KeyRing


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Needs = Annotated[Services, Depends(_services)]
