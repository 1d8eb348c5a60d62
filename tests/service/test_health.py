"""Readiness names every part, and says 503 while one of them cannot work."""

from collections.abc import Callable

import httpx
import pytest

from service.settings import Settings
from tests.service.live_server import in_thread
from tests.service.polling import wait_until


def ready(client: httpx.Client) -> httpx.Response:
    return client.get("/readyz")


def test_a_fresh_server_becomes_ready(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    answer = wait_until(lambda: ready(client), lambda answer: answer.status_code == 200)
    parts = answer.json()["parts"]
    assert set(parts) == {"store", "artifacts", "cluster", "runner"}
    assert all(part == {"ready": True, "detail": "ok"} for part in parts.values())


@pytest.mark.parametrize("part", ["store", "artifacts"])
def test_a_part_that_fails_is_named(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    with in_thread(make_settings()) as (client, app):
        wait_until(lambda: ready(client), lambda answer: answer.status_code == 200)

        def fail() -> None:
            raise OSError("no space on /secret/path")

        monkeypatch.setattr(getattr(app.state.services, part), "check", fail)
        answer = ready(client)
        assert answer.status_code == 503
        assert answer.json()["ready"] is False
        failing = {name for name, health in answer.json()["parts"].items() if not health["ready"]}
        assert failing == {part}
        assert "secret" not in answer.text


def test_a_cluster_that_is_not_there_is_named(make_settings: Callable[..., Settings], unused_tcp_address: str) -> None:
    with in_thread(make_settings(cluster=unused_tcp_address)) as (client, _app):
        answer = ready(client)
        assert answer.status_code == 503
        assert answer.json()["parts"]["cluster"]["ready"] is False
        assert client.get("/healthz").status_code == 200


def test_a_stopped_runner_is_named(make_settings: Callable[..., Settings]) -> None:
    with in_thread(make_settings()) as (client, app):
        app.state.services.runner.stop(10)
        assert ready(client).json()["parts"]["runner"] == {"ready": False, "detail": "stopped"}
