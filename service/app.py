"""The composition root: every part of the server is made and joined here, and nowhere else."""

import functools
import os
import socket
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from service.api import algorithms, health, jobs, models, predict
from service.api.openapi import describe_api
from service.api.rendering import PROBLEM_RESPONSES, SafeJson, install_error_handlers
from service.api.services import Services
from service.artifacts import LocalArtifacts
from service.body_limit import BodyLimit
from service.cluster_link import ClusterLink
from service.job_run import JobRun
from service.migrate import upgrade
from service.registry import ModelRegistry
from service.runner import Runner, RunnerSettings
from service.settings import Settings
from service.sql_engine import file_engine
from service.sql_store import SqlStore
from service.state_dir import StateDirectory
from service.trainer import Trainer
from workers.job import CheckpointSettings

DESCRIPTION = "Trains multiclass boosting models on Parquet data and serves them."


def create_app(settings: Settings, claimed: StateDirectory | None = None) -> FastAPI:
    """The server as an ASGI application.

    It takes the state folder when it starts, unless one was claimed for it, and gives it up when it ends.
    Starting raises StartRefused if the folder cannot be used.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state = claimed if claimed is not None else await run_in_threadpool(claim_state, settings)
        services = await run_in_threadpool(_build, settings, state)
        app.state.services = services
        services.runner.start()
        try:
            yield
        finally:
            await run_in_threadpool(_shut_down, services, state)

    app = FastAPI(
        title="Edgewise",
        description=DESCRIPTION,
        version="1",
        lifespan=lifespan,
        default_response_class=SafeJson,
        responses=PROBLEM_RESPONSES,
    )
    for part in (jobs, algorithms, models, predict, health):
        app.include_router(part.router)
    install_error_handlers(app)
    app.add_middleware(BodyLimit, large=settings.body_limit_bytes)
    app.openapi = functools.partial(describe_api, app)  # type: ignore[method-assign]
    return app


def claim_state(settings: Settings) -> StateDirectory:
    """Take the state folder for a server of this process. Raises StartRefused."""
    # A process number may return after a restart; the random part never does.
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    return StateDirectory.claim(settings.state_dir, owner)


def _build(settings: Settings, state: StateDirectory) -> Services:
    engine = file_engine(state.database)
    upgrade(engine)
    store = SqlStore(engine)
    artifacts = LocalArtifacts(state.artifacts)
    link = ClusterLink(settings.cluster) if settings.cluster else None
    trainer = Trainer(link, settings.deadline_seconds)
    checkpoints = CheckpointSettings(str(settings.checkpoints), settings.checkpoint_seconds)

    def make_run(stopping: threading.Event) -> JobRun:
        return JobRun(store, artifacts, trainer, settings.data_root, stopping, checkpoints)

    runner = Runner(store, trainer, make_run, _runner_settings(settings, state))
    registry = ModelRegistry(store, artifacts, settings.model_cache)
    return Services(settings, store, artifacts, registry, trainer, runner, link)


def _runner_settings(settings: Settings, state: StateDirectory) -> RunnerSettings:
    return RunnerSettings(state.owner, state.previous_owner, settings.lease_seconds, settings.poll_seconds)


def _shut_down(services: Services, state: StateDirectory) -> None:
    services.runner.stop(services.settings.stop_seconds)
    if services.link is not None:
        services.link.close()
    services.store.close()
    state.close()
