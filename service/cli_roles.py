"""`edgewise runner`, `edgewise scheduler` and `edgewise worker`."""

import sys
from collections.abc import Mapping

import typer

from service.cli_output import reporting
from service.errors import StartRefused
from service.settings import Settings, is_loopback, load_settings


def run_runner(flags: Mapping[str, object]) -> None:
    """Take jobs from the store until a signal ends it."""
    with reporting(as_json=False):
        from service.running import run

        run(load_settings(**flags), lambda: say("runner", "takes jobs"))


def run_scheduler(flags: Mapping[str, object]) -> None:
    """Run the cluster's scheduler until a signal ends it."""
    with reporting(as_json=False):
        settings = cluster_settings(flags)
        from workers.cluster_roles import MemberPlace, run_scheduler

        place = MemberPlace(settings.member_host, settings.tls_dir, settings.worker_dir, settings.ready_file)
        run_scheduler(place, settings.scheduler_port, lambda address: say("scheduler", f"listens on {address}"))


def run_worker(flags: Mapping[str, object]) -> None:
    """Run one worker until a signal ends it, or its scheduler is gone."""
    with reporting(as_json=False):
        settings = cluster_settings(flags)
        if settings.cluster.partition(":")[0] not in {"tcp", "tls"}:
            raise StartRefused(f"cluster {settings.cluster!r}: a worker needs its scheduler's tcp:// or tls:// address")
        from workers.cluster_roles import MemberPlace, run_worker

        place = MemberPlace(settings.member_host, settings.tls_dir, settings.worker_dir, settings.ready_file)
        worker = run_worker(
            place, settings.cluster, settings.worker_threads, lambda address: say("worker", f"listens on {address}")
        )
        if worker:
            raise typer.Exit(worker)


def cluster_settings(flags: Mapping[str, object]) -> Settings:
    """The settings of a member. Raises StartRefused where strangers could make it run their code."""
    settings = load_settings(**flags)
    if settings.tls_dir is None and not is_loopback(settings.member_host):
        raise StartRefused(
            f"member_host {settings.member_host!r} can be reached by others, and whoever reaches a member of a Dask "
            "cluster can run code there: set tls_dir (`edgewise init` makes certificates), or listen on 127.0.0.1"
        )
    return settings


def say(role: str, news: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"edgewise: {role} {news}\n")
    sys.stderr.flush()
