"""What a job needs is estimated, shown, refused with figures, and decides how many workers it gets."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import trainer
from service.errors import MemoryShort
from service.memory_check import refuse_too_large, site_of
from service.requests import parse, prepare
from service.scheduling import USABLE
from service.settings import Settings
from service.store import RunnerNews
from service.trainer import Trainer
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import request
from tests.service.test_store import START
from workers.memory_need import Need, estimate, facts_of
from workers.worker_states import WorkerState, worker_states

GB = 10**9


def test_a_job_that_fits_nowhere_is_refused_with_figures(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "memory_limit", lambda: 300_000_000)
    with in_thread(make_settings()) as (client, app):
        wait_until(lambda: app.state.services.store.runners(60), bool)
        answer = client.post("/v1/jobs", json=request())
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (422, "urn:edgewise:problem:memory-short")
    assert problem["errors"][0]["loc"] == ["resources", "workers"]
    assert "the largest has 0.30 GB" in problem["errors"][0]["message"]
    assert problem["memory"]["needed_bytes"] > 300_000_000 == problem["memory"]["largest_worker_bytes"]
    assert problem["memory"]["workers_needed"] is None


def test_a_job_shows_what_it_needs_and_its_priority(client: Any) -> None:
    job = client.post("/v1/jobs", json=request(priority=7)).json()
    memory = job["memory"]
    assert job["priority"] == 7
    assert memory["needed_bytes"] == memory["worker_bytes"] + memory["row_bytes"]
    answer = wait_for_job(client, job["id"], "succeeded")["answer"]
    assert answer["estimated_memory_bytes"] == memory["needed_bytes"]
    assert "memory" not in client.post("/v1/jobs", json=request(priority=101)).json()


def test_runners_tell_how_many_workers_would_do() -> None:
    def news(*worker_bytes: int, own: int = GB) -> RunnerNews:
        return RunnerNews("r", START, None, len(worker_bytes), worker_bytes, own)

    site = site_of([news(4 * GB, 2 * GB), news(GB)], has_cluster=True)
    assert site is not None
    refuse_too_large(None, Need(GB, 5 * GB // 2), site)  # 2.25 GB on each would not fit, but all of it on the large one
    with pytest.raises(MemoryShort) as caught:
        refuse_too_large(1, Need(GB, 6 * GB), site)
    assert (caught.value.needed_bytes, caught.value.largest_bytes, caught.value.workers_needed) == (7 * GB, 4 * GB, 3)
    assert site_of([news()], has_cluster=True) is None  # no worker yet: it may come
    assert site_of([], has_cluster=False) is None


@pytest.mark.parity
@pytest.mark.slow
def test_more_rows_than_the_memory_of_a_worker_train_on_several(
    make_settings: Callable[..., Settings], data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, config = prepare(parse(request()), data_root)
    need = estimate(facts_of(plan, config))
    memory = int(need.on(2) / USABLE) + 2

    def small(client: Any) -> list[WorkerState]:
        return [replace(state, memory_bytes=memory) for state in worker_states(client)]

    monkeypatch.setattr(trainer, "worker_states", small)
    with in_thread(make_settings(cluster="local:3")) as (client, app):
        wait_until(lambda: client.get("/readyz").status_code, lambda status: status == 200)
        wait_until(lambda: app.state.services.store.runners(60), lambda found: bool(found and found[0].worker_bytes))
        one = client.post("/v1/jobs", json=request(resources={"workers": 1})).json()
        assert one["memory"]["workers_needed"] == 2
        hashes = set()
        for workers in ("auto", 0):
            job = client.post("/v1/jobs", json=request(resources={"workers": workers})).json()
            answer = wait_for_job(client, job["id"], "succeeded")["answer"]
            assert answer["workers"] == (2 if workers == "auto" else 0)
            hashes.add(answer["model_sha256"])
        assert len(hashes) == 1


def test_a_gang_goes_on_with_no_fewer_than_its_rows_fit_on() -> None:
    found = Trainer(None)
    found._memory = {"a": 4 * GB, "b": 4 * GB, "c": 8 * GB}
    assert found.fewest(Need(GB, 6 * GB), ("a", "b", "c")) == 3  # 2.6 GB of rows on each at most
    assert found.fewest(Need(GB, 5 * GB), ("a", "b", "c")) == 2
    assert found.fewest(Need(GB, GB), ("a", "b")) == 1
    assert found.fewest(Need(GB, GB), ()) == 1
