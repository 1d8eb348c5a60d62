"""Runs the server for `edgewise serve`."""

import socket
from collections.abc import Callable

import uvicorn

from service.app import claim_state, create_app
from service.errors import StartRefused
from service.settings import Settings

FAILED_TO_START = 2
QUIET = ("alembic", "distributed")  # libraries whose news are not the server's


def serve(settings: Settings, ready: Callable[[str], None]) -> int:
    """Serve until a signal ends it; returns the exit code. `ready` gets the address once it answers.

    Raises StartRefused if the address or the state folder is taken.
    """
    with _listen(settings.host, settings.port) as listener:
        app = create_app(settings, claim_state(settings))
        # Requests in flight get as long as the running job.
        config = uvicorn.Config(
            app, log_config=_log_config(), timeout_graceful_shutdown=max(1, int(settings.stop_seconds))
        )
        server = _Server(config, lambda: ready(_address(listener)))
        server.run(sockets=[listener])
        return 0 if server.started else FAILED_TO_START


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


def _log_config() -> dict[str, object]:
    """Everything to standard error, in one format."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {name: {"level": "WARNING"} for name in QUIET},
    }
