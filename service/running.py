"""Runs a runner for `edgewise runner`: the process that takes jobs from a shared store."""

import logging.config
import signal
import threading
from collections.abc import Callable

from service.app import build_services, claim_state, shut_down
from service.errors import StartRefused
from service.logs import log_config
from service.settings import Settings

BEAT_SECONDS = 5.0


def run(settings: Settings, ready: Callable[[], None]) -> None:
    """Run jobs until a signal ends it; the running job goes back to the queue then. Raises StartRefused."""
    if not settings.database_url:
        raise StartRefused(
            "a runner of its own needs a job store that it shares with servers: set database_url to a PostgreSQL "
            "database; without one `edgewise serve` runs jobs itself"
        )
    logging.config.dictConfig(log_config())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    state = claim_state(settings)
    # Calls are the servers' business: a runner needs no keys.
    own = settings.model_copy(
        update={"embedded_runner": True, "processes": 1, "host": "127.0.0.1", "require_keys": False}
    )
    services = build_services(own, state)
    services.runner.start()
    ready()
    while not stop.wait(BEAT_SECONDS):
        if settings.ready_file and services.runner.trouble() is None:
            settings.ready_file.touch()
    shut_down(services, state)
