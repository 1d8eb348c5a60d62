"""/metrics: valid text, figures from the store, latencies of every process."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from service.migrate import upgrade
from service.sql_engine import memory_engine
from service.sql_store import SqlStore
from service.store import RoundEntry
from tests.service.polling import wait_for_job
from tests.service.tables_of_data import request
from tests.service.test_store import FIGURES, entries, running, version


def figures(text: str) -> dict[str, float]:
    """Sample values by name and labels."""
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_job_shows_in_the_figures(shared_client: httpx.Client) -> None:
    job = shared_client.post("/v1/jobs", json=request(rounds=7)).json()
    wait_for_job(shared_client, job["id"], "succeeded")
    answer = shared_client.get("/metrics")
    found = figures(answer.text)
    assert answer.headers["content-type"].startswith("text/plain")
    assert found["edgewise_jobs[('state', 'succeeded')]"] == 1
    assert found["edgewise_jobs[('state', 'queued')]"] == 0
    assert found["edgewise_rounds_total[]"] == 7
    assert found["edgewise_round_seconds_total[]"] > 0
    assert found["edgewise_runners[]"] == 1
    route = "[('method', 'GET'), ('route', '/v1/jobs/{job_id}'), ('status', '200')]"
    assert found[f"edgewise_http_request_seconds_count{route}"] >= 1
    assert job["id"] not in answer.text


def test_totals_outlive_jobs_and_count_a_repeated_batch_once() -> None:
    engine = memory_engine()
    upgrade(engine)
    store = SqlStore(engine)
    job, lease = running(store)
    store.append_rounds(lease, entries(1, 3))
    store.append_rounds(lease, entries(1, 3))
    store.append_rounds(lease, [RoundEntry(4, dict(FIGURES), 0.5, reduction_seconds=0.25)])
    store.append_rounds(lease, [RoundEntry(5, dict(FIGURES), 0.5, known=True)])
    store.complete(lease, {}, version())
    store.delete(job.id)
    totals = store.totals()
    assert (totals.rounds, totals.reduction_seconds, totals.reduction_bytes) == (4, 0.25, 4 * 2**40)
    assert totals.jobs == {}
    store.close()
