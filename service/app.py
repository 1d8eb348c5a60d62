"""The composition root: every part of the server is made and joined here, and nowhere else."""

import functools
import os
import socket
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from starlette.concurrency import run_in_threadpool

from service.api import algorithms, health, jobs, metrics, models, predict
from service.api.openapi import describe_api
from service.api.rendering import PROBLEM_RESPONSES, SafeJson, install_error_handlers
from service.api.services import Services
from service.artifacts import artifacts_at
from service.body_limit import BodyLimit
from service.cluster_link import ClusterLink
from service.errors import StartRefused
from service.job_run import JobRun
from service.key_check import KeyCheck
from service.key_ring import KeyRing
from service.migrate import upgrade
from service.pages import routes
from service.registry import ModelRegistry
from service.remote_runner import RemoteRunner
from service.request_metrics import RequestMetrics
from service.runner import Runner, RunnerSettings
from service.settings import Settings
from service.sql_engine import file_engine, postgres_engine
from service.sql_keys import SqlKeys
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
        services = await run_in_threadpool(build_services, settings, state)
        app.state.services = services
        services.runner.start()
        try:
            yield
        finally:
            await run_in_threadpool(shut_down, services, state)

    app = FastAPI(
        title="Edgewise",
        description=DESCRIPTION,
        version="1",
        lifespan=lifespan,
        default_response_class=SafeJson,
        responses=PROBLEM_RESPONSES,
    )
    for part in (jobs, algorithms, models, predict, health, metrics):
        app.include_router(part.router)
    app.include_router(routes.router)
    app.mount(routes.ASSETS, routes.Assets())
    install_error_handlers(app)
    # The last one added is the first to see a request: it is timed, then its key is checked, then its body read.
    app.add_middleware(BodyLimit, large=settings.body_limit_bytes)
    app.add_middleware(KeyCheck, required=settings.keys_required)
    app.add_middleware(RequestMetrics)
    app.openapi = functools.partial(describe_api, app)  # type: ignore[method-assign]
    return app


def claim_state(settings: Settings) -> StateDirectory:
    """Take the state folder for a server of this process. Raises StartRefused."""
    # A process number may return after a restart; the random part never does.
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    take = StateDirectory.share if settings.database_url else StateDirectory.claim
    return take(settings.state_dir, owner)


def open_database(settings: Settings, state: StateDirectory) -> Engine:
    """The store's database in its newest shape. Raises StartRefused if it does not answer."""
    url = settings.database()
    engine = file_engine(state.database) if url is None else postgres_engine(url)
    try:
        upgrade(engine)
    except OperationalError as error:
        # The text names host and user, for whoever starts servers; no password is ever in it.
        raise StartRefused(f"the job store's database cannot be used: {str(error.orig).strip()}") from error
    return engine


def build_services(settings: Settings, state: StateDirectory) -> Services:
    """Every part of a server or a runner, not yet started. Raises StartRefused."""
    engine = open_database(settings, state)
    store = SqlStore(engine)
    artifacts = artifacts_at(settings.models)
    link = ClusterLink(settings.cluster, settings.tls_dir) if settings.cluster else None
    trainer = Trainer(link, settings.deadline_seconds)
    checkpoints = CheckpointSettings(settings.checkpoints, settings.checkpoint_seconds)
    runner: Runner | RemoteRunner = RemoteRunner(store, settings.lease_seconds)
    if settings.embedded_runner:

        def make_run(stopping: threading.Event) -> JobRun:
            return JobRun(store, artifacts, trainer, settings.data_root, stopping, checkpoints)

        runner = Runner(store, trainer, make_run, _runner_settings(settings, state))
    registry = ModelRegistry(store, artifacts, settings.model_cache)
    keys = KeyRing(SqlKeys(engine))
    keys.prepare(settings)
    return Services(settings, store, artifacts, registry, trainer, runner, link, keys)


def check_start(settings: Settings, state: StateDirectory) -> None:
    """Raises StartRefused if a server with these settings cannot start."""
    engine = open_database(settings, state)
    try:
        KeyRing(SqlKeys(engine)).prepare(settings)
    finally:
        engine.dispose()


def _runner_settings(settings: Settings, state: StateDirectory) -> RunnerSettings:
    return RunnerSettings(
        state.owner,
        state.previous_owner,
        settings.lease_seconds,
        settings.poll_seconds,
        settings.worker_wait_seconds,
    )


def shut_down(services: Services, state: StateDirectory) -> None:
    """Stop the parts in good order; a running job goes back to the queue."""
    services.runner.stop(services.settings.stop_seconds)
    if services.link is not None:
        services.link.close()
    services.store.close()
    state.close()
