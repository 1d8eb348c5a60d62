"""Times requests for /metrics: one histogram, added up over the server's processes."""

import os
import tempfile
import time

from prometheus_client import CollectorRegistry, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The library reads this when it is first imported: then every process keeps its figures in files of this folder.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# From a cached answer to a large prediction; submitting reads Parquet footers.
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

LOCAL = CollectorRegistry()
LATENCY = Histogram(
    "edgewise_http_request_seconds",
    "Seconds from a request's headers to the end of its answer.",
    ["method", "route", "status"],
    buckets=BUCKETS,
    registry=LOCAL,
)


def share_between_processes() -> None:
    """Called before server processes start: lets their figures be added up. They inherit the environment."""
    if not os.environ.get(SHARED_FOLDER):
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="edgewise-metrics-")


class RequestMetrics:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500  # what becomes of a request that no layer answers

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # By route, not by path: paths hold ids, and every new one would be kept for ever.
            route = getattr(scope.get("route"), "path", "other")
            LATENCY.labels(scope["method"], route, str(status)).observe(time.perf_counter() - started)
