"""Runs the server for `edgewise serve`."""

import functools
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from service.app import check_start, claim_state, create_app
from service.errors import StartRefused
from service.logs import log_config
from service.request_metrics import share_between_processes
from service.settings import Settings

FAILED_TO_START = 2
# A process answers once it has imported everything, which takes long where cores are few and all start at once.
ANSWER_SECONDS = 60
BACKLOG = 2048  # uvicorn's own
# A connection without a request is closed after this. Clients must give theirs up sooner (httpx does after 5 s, which
# is uvicorn's own figure; balancers after 60 s): a request that is sent while the server closes is lost.
IDLE_SECONDS = 75


def serve(settings: Settings, ready: Callable[[str], None]) -> int:
    """Serve until a signal ends it; returns the exit code. `ready` gets the address once it answers.

    Raises StartRefused if the address or the state folder is taken.
    """
    with _listen(settings.host, settings.port) as listener:
        if settings.processes > 1:
            return _serve_by_processes(settings, listener, ready)
        state = claim_state(settings)
        if settings.keys_required:
            check_start(settings, state)
        app = create_app(settings, state)
        config = uvicorn.Config(app, **_options(settings))
        server = _Server(config, lambda: ready(_address(listener)))
        server.run(sockets=[listener])
        return 0 if server.started else FAILED_TO_START


def _serve_by_processes(settings: Settings, listener: socket.socket, ready: Callable[[str], None]) -> int:
    """Serve by several processes that accept from one socket; one that dies is replaced."""
    share_between_processes()
    # Everything that would stop each of them is found here, once.
    check_start(settings, claim_state(settings))
    listener.listen(BACKLOG)
    config = uvicorn.Config(
        functools.partial(create_app, settings),
        factory=True,
        workers=settings.processes,
        timeout_worker_healthcheck=ANSWER_SECONDS,
        **_options(settings),
    )
    ready(_address(listener))
    Multiprocess(config, sockets=[listener]).run()
    return 0


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "log_config": log_config(),
        "timeout_keep_alive": IDLE_SECONDS,
        # Requests in flight get as long as the running job.
        "timeout_graceful_shutdown": max(1, int(settings.stop_seconds)),
    }


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that port 0 has a number before the server starts."""
    family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise StartRefused(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
