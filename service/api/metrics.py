"""Figures for Prometheus: jobs, rounds and reductions from the store, latencies from every server process."""

import os
from collections.abc import Iterator

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from service.api.services import Needs
from service.job_states import JobState
from service.request_metrics import LOCAL, SHARED_FOLDER
from service.store import RunnerNews, Totals

router = APIRouter(tags=["operations"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(services: Needs) -> Response:
    """Figures in Prometheus' text format. They are of the whole service, whichever process answers."""
    totals, runners = services.store.totals(), services.store.runners(services.settings.lease_seconds)
    registry = CollectorRegistry()
    registry.register(StoreFigures(totals, runners))
    if os.environ.get(SHARED_FOLDER):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        text = generate_latest(registry)
    else:
        text = generate_latest(registry) + generate_latest(LOCAL)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class StoreFigures(Collector):
    """What the store knows, as metrics."""

    def __init__(self, totals: Totals, runners: list[RunnerNews]) -> None:
        self._totals = totals
        self._runners = runners

    def collect(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("edgewise_jobs", "Jobs in the store now.", labels=["state"])
        for state in JobState:
            jobs.add_metric([state.value], self._totals.jobs.get(state.value, 0))
        yield jobs
        for name, text, value in (
            ("edgewise_rounds", "Rounds trained, also of deleted jobs.", self._totals.rounds),
            ("edgewise_round_seconds", "Seconds spent in these rounds.", self._totals.round_seconds),
            ("edgewise_reduction_seconds", "Seconds of them spent in reductions.", self._totals.reduction_seconds),
            ("edgewise_reduction_bytes", "Bytes that members sent in reductions.", self._totals.reduction_bytes),
        ):
            yield CounterMetricFamily(name, text, value=value)
        yield GaugeMetricFamily("edgewise_runners", "Runners that were heard of lately.", value=len(self._runners))
        workers = max((runner.workers for runner in self._runners), default=0)
        yield GaugeMetricFamily("edgewise_workers", "Cluster workers that can take work.", value=workers)
