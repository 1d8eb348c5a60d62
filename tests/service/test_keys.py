"""API keys: what they are, what each call needs, and that a server beyond loopback serves nobody without one."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from service.app import build_services, claim_state
from service.cli_init import make_secrets
from service.errors import KeyNotFound, KeyUnknown, ScopeMissing, StartRefused
from service.key_ring import TRUST_SECONDS, KeyRing
from service.keys import Scope, key_of, new_text, parse_text, scope_needed
from service.migrate import upgrade
from service.settings import Settings
from service.sql_engine import memory_engine, postgres_engine
from service.sql_keys import SqlKeys
from tests.service.live_server import in_thread
from tests.service.polling import wait_until
from tests.service.test_api_bad_input import checked_problem

NOW = datetime(2031, 5, 1, tzinfo=UTC)
MakeSettings = Callable[..., Settings]


@pytest.fixture(params=["memory", "postgres"])
def keys(request: pytest.FixtureRequest) -> Iterator[SqlKeys]:
    engine = memory_engine()
    if request.param == "postgres":
        engine = postgres_engine(request.getfixturevalue("postgres").database())
    upgrade(engine)
    yield SqlKeys(engine)
    engine.dispose()


def test_a_key_reads_back_and_is_revoked_for_ever(keys: SqlKeys) -> None:
    text = new_text()
    key = key_of(text, "ci", [Scope.READ, Scope.TRAIN], NOW)
    assert not keys.has_keys()
    assert keys.add_key(key)
    assert (keys.find_key_by_id(key.id), keys.list_keys(), keys.has_keys()) == (key, [key], True)
    assert parse_text(text)[1] not in repr(keys.list_keys())
    revoked = keys.revoke_key(key.id)
    assert revoked.revoked_at is not None
    assert keys.revoke_key(key.id) == revoked
    assert not keys.has_keys()
    # As at the next start of a server whose admin key was revoked.
    assert not keys.add_key(key)
    assert not keys.has_keys()
    for unknown in ("0" * 12, "a\0"):
        with pytest.raises(KeyNotFound):
            keys.revoke_key(unknown)


def test_the_ring_lets_keys_do_what_they_may(keys: SqlKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("service.key_ring.time.monotonic", lambda: now)
    text, ring = new_text(), KeyRing(keys)
    keys.add_key(key_of(text, "ci", [Scope.PREDICT], NOW))
    assert ring.check(text, Scope.PREDICT).name == "ci"
    with pytest.raises(ScopeMissing, match=r"ci.*predict.*needs train"):
        ring.check(text, Scope.TRAIN)
    for wrong in (text[:-1] + ("A" if text[-1] != "A" else "B"), new_text(), text + "x", "", "ew_"):
        with pytest.raises(KeyUnknown):
            ring.check(wrong, Scope.PREDICT)
    keys.revoke_key(parse_text(text)[0])
    now += TRUST_SECONDS + 1
    with pytest.raises(KeyUnknown, match="revoked"):
        ring.check(text, Scope.PREDICT)


@pytest.mark.parametrize(
    ("call", "needed"),
    [
        ("GET /healthz", None),
        ("GET /docs", None),
        ("POST /healthz", Scope.TRAIN),
        ("GET /", None),
        ("HEAD /jobs/1", None),
        ("GET /models", None),
        ("GET /models/a/versions/1", None),
        ("GET /assets/main.js", None),
        ("POST /", Scope.TRAIN),
        ("DELETE /jobs/1", Scope.TRAIN),
        ("GET /jobs", Scope.READ),
        ("GET //jobs/1", Scope.READ),
        ("GET /v1/models/a", Scope.READ),
        ("GET /metrics", Scope.READ),
        ("GET /v1/jobs", Scope.READ),
        ("POST /v1/jobs", Scope.TRAIN),
        ("DELETE /v1/jobs/predict", Scope.TRAIN),
        ("POST /v1/models/a/predict", Scope.PREDICT),
        ("POST /v1/models/a/versions/1/predict", Scope.PREDICT),
        ("DELETE /v1/models/a", Scope.ADMIN),
        ("PUT /v1/datasets/predict", Scope.TRAIN),
        ("POST /anything/predict", Scope.TRAIN),
    ],
)
def test_what_a_call_needs(call: str, needed: Scope | None) -> None:
    method, path = call.split()
    assert scope_needed(method, path) == needed


def test_without_keys_no_server_starts_where_others_reach_it(make_settings: MakeSettings) -> None:
    settings = make_settings(host="0.0.0.0")
    state = claim_state(settings)
    try:
        with pytest.raises(StartRefused, match="edgewise keys create"):
            build_services(settings, state)
    finally:
        state.close()


def test_calls_need_their_key(make_settings: MakeSettings, tmp_path: Path) -> None:
    make_secrets(tmp_path)
    settings = make_settings(require_keys=True, admin_key_file=tmp_path / "admin-key")
    with in_thread(settings) as (client, app):
        wait_until(lambda: client.get("/readyz").status_code, lambda status: status == 200)
        reader = new_text()
        keys: KeyRing = app.state.services.keys
        keys._store.add_key(key_of(reader, "reader", [Scope.READ], NOW))
        problem = checked_problem(client.get("/v1/jobs"))
        assert problem["status"] == 401
        assert client.get("/v1/jobs").headers["www-authenticate"].startswith("Bearer")
        as_reader, as_admin = bearer(reader), bearer((tmp_path / "admin-key").read_text().strip())
        assert client.get("/v1/jobs", headers=as_reader).status_code == 200
        assert checked_problem(client.post("/v1/jobs", json={}, headers=as_reader))["status"] == 403
        assert client.post("/v1/jobs", json={}, headers=as_admin).status_code == 422
        for headers in (bearer(new_text()), {"Authorization": "Basic abc"}, {"Authorization": "Bearer"}):
            assert client.get("/v1/jobs", headers=headers).status_code == 401
        assert "edgewise_jobs" in client.get("/metrics", headers=as_reader).text
        every_path_is_kept(client, app)


def every_path_is_kept(client: httpx.Client, app: FastAPI) -> None:
    """Whatever the server offers, now or later, says 401 first."""
    for path, operations in app.openapi()["paths"].items():
        for method in operations:
            status = client.request(method, path).status_code
            assert (status == 401) == (path not in {"/healthz", "/readyz"}), (method, path)


def test_a_wrong_key_is_told_also_where_none_is_needed(client: httpx.Client) -> None:
    assert client.get("/v1/jobs", headers=bearer(new_text())).status_code == 401


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_secrets_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert make_secrets(folder) == ["tls", "database/password", "admin-key"]
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    private = {path for path in files if path.name != "password"}
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make_secrets(folder) == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
