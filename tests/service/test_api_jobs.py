"""Jobs over HTTP: from submission to a registered model, idempotency, pages, cancellation."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from service import cli_show
from service.settings import Settings
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job
from tests.service.tables_of_data import CLASSES, FEATURES, request, write


def submit(client: httpx.Client, body: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = client.post("/v1/jobs", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    return job


def test_a_job_becomes_a_model(client: httpx.Client) -> None:
    data = {"train": "trees.parquet", "valid": "trees.test.parquet", "label": "kind"}
    job = submit(client, request(data=data))
    assert job["status"] in {"queued", "starting", "running", "succeeded"}
    job = wait_for_job(client, job["id"])
    assert job["status"] == "succeeded", job
    assert (job["progress"], job["eta"], job["reason"], job["run"]) == (1.0, None, None, 1)
    assert job["model"] == {"name": "trees", "version": 1}
    assert job["resources"] == {"requested_workers": 0, "threads": 1, "workers": 0}
    assert [step["state"] for step in job["transitions"]] == ["queued", "starting", "running", "succeeded"]
    times = [job["timings"][name] for name in ("submitted_at", "started_at", "running_at", "finished_at")]
    assert times == sorted(times)
    assert all(time.endswith(("Z", "+00:00")) for time in times)
    check_answer(job["answer"])


def check_answer(answer: dict[str, Any]) -> None:
    assert set(answer) >= {
        "model_sha256", "workers", "stop_reason", "rounds", "rounds_run", "best_round", "train_error", "valid_error",
        "strict_train_error", "edge_last", "loss", "bound", "bound_holds", "seconds", "peak_memory_bytes", "classes",
        "rows",
    }  # fmt: skip
    phases = {"read", "bin", "compile", "train", "validate", "total", "per_round"}
    assert set(answer["seconds"]) >= phases
    assert (answer["rounds"], answer["classes"], answer["rows"], answer["workers"]) == (5, 3, 90, 0)
    assert answer["bound_holds"] is True
    stages = {row["stage"]: row for row in answer["profile"]["stages"]}
    assert sum(row["share"] for row in stages.values()) == pytest.approx(1)
    assert stages["compile"]["per_round"] is None
    assert stages["growing"]["per_round"] == pytest.approx(stages["growing"]["seconds"] / answer["rounds_run"])
    assert answer["profile"]["rounds"]["seconds"] == pytest.approx(answer["seconds"]["train"])
    margins = answer["margins"]
    assert margins["least"] <= margins["mean"] <= 1
    assert margins["shares"] == sorted(margins["shares"])
    assert (len(margins["grid"]), margins["shares"][-1]) == (len(margins["shares"]), 1)
    assert 0 <= answer["train_error"] <= 1
    assert 0 <= answer["valid_error"] <= 1


def test_a_profile_tells_the_stages_of_every_round(client: httpx.Client) -> None:
    job = wait_for_job(client, submit(client, request(profile=True))["id"])
    rounds = client.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]
    assert len(rounds) == 5
    for entry in rounds:
        stages = {name: seconds for name, seconds in entry["stages"].items() if name != "outside_kernels"}
        assert sum(stages.values()) == pytest.approx(entry["seconds"], rel=0.01, abs=1e-4)
    job = wait_for_job(client, submit(client, request())["id"])
    assert {entry["stages"] for entry in client.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]} == {None}


def test_an_algorithm_of_several_trees_a_round_and_without_a_bound_on_the_error(client: httpx.Client) -> None:
    algorithm = {"name": "all_pairs", "weak_learner": {"kind": "stump"}}
    job = wait_for_job(client, submit(client, request(algorithm=algorithm))["id"])
    assert (job["status"], job["answer"]["rounds"], job["answer"]["rounds_run"]) == ("succeeded", 5, 5)
    rounds = client.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]
    assert [entry["error_bound"] for entry in rounds] == [None] * 5
    assert all(0 < entry["loss"] <= entry["bound"] + 1e-6 for entry in rounds)
    body = {"rows": [[0.3, 1.2, None]], "output": ["labels", "scores"]}
    found = client.post("/v1/models/trees/predict", json=body).json()
    assert (len(found["scores"][0]), found["labels"][0] in CLASSES) == (3, True)
    metadata = client.get("/v1/models/trees/versions/1").json()["metadata"]
    assert (metadata["label"], metadata["n_columns"], metadata["decoding"]) == ("kind", 3, "loss")


def test_rounds_can_be_followed(client: httpx.Client) -> None:
    job = wait_for_job(client, submit(client, request())["id"])
    first = client.get(f"/v1/jobs/{job['id']}/rounds", params={"limit": 2}).json()
    assert [entry["round"] for entry in first["rounds"]] == [1, 2]
    rest = client.get(f"/v1/jobs/{job['id']}/rounds", params={"after": first["next_after"]}).json()
    assert [entry["round"] for entry in rest["rounds"]] == [3, 4, 5]
    assert rest["rounds"][-1]["edge"] == job["answer"]["edge_last"]
    assert all(entry["valid_error"] is None for entry in rest["rounds"])
    end = client.get(f"/v1/jobs/{job['id']}/rounds", params={"after": 5}).json()
    assert (end["rounds"], end["next_after"]) == ([], 5)
    some = client.get(f"/v1/jobs/{job['id']}/rounds", params={"every": 2}).json()
    assert ([entry["round"] for entry in some["rounds"]], some["next_after"]) == ([2, 4], 4)
    assert client.get(f"/v1/jobs/{job['id']}/rounds", params={"every": 2**63 - 1}).json()["rounds"] == []
    for wrong in (0, 2**63):
        answer = client.get(f"/v1/jobs/{job['id']}/rounds", params={"every": wrong})
        assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (422, ["query", "every"])


def test_the_last_round_is_told_with_the_job(client: httpx.Client) -> None:
    waiting = submit(client, request())
    assert waiting["latest"] is None or waiting["rounds_done"]
    job = wait_for_job(client, waiting["id"])
    rounds = client.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]
    [listed] = client.get("/v1/jobs").json()["jobs"]
    assert job["latest"] == listed["latest"] == rounds[-1]
    assert listed["algorithm"] == "adaboost_mh"


def test_the_model_is_registered(client: httpx.Client) -> None:
    jobs = [wait_for_job(client, submit(client, request())["id"]) for _ in range(2)]
    assert [job["model"]["version"] for job in jobs] == [1, 2]
    # The same job gives the same model.
    assert jobs[0]["answer"]["model_sha256"] == jobs[1]["answer"]["model_sha256"]
    listed = client.get("/v1/models").json()["models"]
    assert [(model["name"], model["version"]) for model in listed] == [("trees", 2)]
    model = client.get("/v1/models/trees").json()
    assert [item["version"] for item in model["versions"]] == [2, 1]
    version = client.get("/v1/models/trees/versions/1").json()
    assert version["sha256"] == jobs[0]["answer"]["model_sha256"]
    assert version["job_id"] == jobs[0]["id"]
    assert version["metadata"]["classes"] == list(CLASSES)
    assert [feature["name"] for feature in version["metadata"]["features"]] == list(FEATURES)


def test_rounds_tell_which_weak_learning_conditions_are_met(
    client: httpx.Client, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    algorithm = {"name": "adaboost_mm", "weak_learner": {"kind": "tree"}}
    job = wait_for_job(client, submit(client, request(algorithm=algorithm, conditions=True))["id"], "succeeded")
    rounds = client.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]
    measured = [entry["conditions"] for entry in rounds]
    assert len(measured) == 5
    for entry, conditions in zip(rounds, measured, strict=True):
        assert set(conditions) == {"uniform", "worst", "mr", "mh", "samme", "m1"}
        assert conditions["mr"] == pytest.approx(entry["edge"])
        assert conditions["worst"] >= conditions["uniform"] - 1e-9
    least = job["answer"]["conditions_least"]
    assert least == {name: min(each[name] for each in measured) for name in measured[0]}
    path = next(tmp_path.rglob(f"{job['id']}.*.model"))
    cli_show.run(path, as_json=True)
    assert [entry["conditions"] for entry in json.loads(capfd.readouterr().out)["rounds"]] == measured
    cli_show.run(path, as_json=False)
    assert capfd.readouterr().out.count("conditions: uniform") == 5
    # nobody asked
    plain = wait_for_job(client, submit(client, request(algorithm=algorithm))["id"], "succeeded")
    rounds = client.get(f"/v1/jobs/{plain['id']}/rounds").json()["rounds"]
    assert [entry["conditions"] for entry in rounds] == [None] * 5
    assert plain["answer"]["conditions_least"] is None
    refused = client.post("/v1/jobs", json=request(conditions=True))
    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["conditions"])


def test_the_same_request_twice_is_one_job(client: httpx.Client) -> None:
    body = request()
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda _: submit(client, body, key="once"), range(4)))
    assert len({job["id"] for job in jobs}) == 1
    # Spelled-out defaults are the same request.
    again = submit(client, request(seed=0, max_bins=255), key="once")
    assert again["id"] == jobs[0]["id"]
    other = client.post("/v1/jobs", json=request(rounds=6), headers={"Idempotency-Key": "once"})
    assert other.status_code == 409
    assert jobs[0]["id"] in other.json()["detail"]
    assert len(client.get("/v1/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize("key", ["", "with space", "ü", "x" * 201])
def test_a_bad_key_is_refused(shared_client: httpx.Client, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode())]
    answer = shared_client.post("/v1/jobs", json=request(), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"] == ["header", "idempotency-key"]


def test_pages_cover_every_job_once(client: httpx.Client) -> None:
    ids = [submit(client, request(name=f"m{number}"))["id"] for number in range(5)]
    seen: list[str] = []
    token: str | None = None
    while True:
        params = {"limit": "2"} | ({} if token is None else {"page_token": token})
        page = client.get("/v1/jobs", params=params).json()
        seen += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert seen == ids[::-1]
    for job_id in ids:
        wait_for_job(client, job_id)
    assert len(client.get("/v1/jobs", params={"status": "succeeded"}).json()["jobs"]) == 5
    assert client.get("/v1/jobs", params={"status": "failed"}).json()["jobs"] == []


@pytest.mark.parametrize(
    ("params", "loc"),
    [
        ({"status": "lost"}, ["query", "status"]),
        ({"limit": "0"}, ["query", "limit"]),
        ({"page_token": "!"}, ["query", "page_token"]),
        ({"page_token": "abcd"}, ["query", "page_token"]),
    ],
)
def test_bad_pages_are_refused(shared_client: httpx.Client, params: dict[str, str], loc: list[str]) -> None:
    answer = shared_client.get("/v1/jobs", params=params)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"] == loc


def test_cancel_while_running(client: httpx.Client) -> None:
    running = submit(client, request(name="long", rounds=1_000_000))
    waiting = submit(client, request(name="waiting"))
    wait_for_job(client, running["id"], "running")
    progress = client.get(f"/v1/jobs/{running['id']}").json()
    assert progress["progress"] < 1
    assert client.post(f"/v1/jobs/{waiting['id']}/cancel").json()["status"] == "cancelled"
    assert client.delete(f"/v1/jobs/{running['id']}").status_code == 409
    answer = client.post(f"/v1/jobs/{running['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")
    job = wait_for_job(client, running["id"], "cancelled")
    assert job["model"] is None
    assert [step["state"] for step in job["transitions"]][-2:] == ["cancelling", "cancelled"]
    # Asked again it is still cancelled, and the runner is free for the next job.
    assert client.post(f"/v1/jobs/{running['id']}/cancel").json()["status"] == "cancelled"
    wait_for_job(client, submit(client, request())["id"], "succeeded")


def test_delete_forgets_the_job_and_keeps_the_model(client: httpx.Client) -> None:
    job = wait_for_job(client, submit(client, request())["id"], "succeeded")
    assert client.post(f"/v1/jobs/{job['id']}/cancel").status_code == 409
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert client.get(f"/v1/jobs/{job['id']}").status_code == 404
    assert client.get("/v1/models/trees").status_code == 200


def test_many_jobs_at_once_all_finish_and_one_error_stays_alone(client: httpx.Client) -> None:
    jobs = [submit(client, request(name=f"m{number}", rounds=2)) for number in range(20)]
    assert client.post("/v1/jobs", json=request(rounds=0)).status_code == 422
    for job in jobs:
        wait_for_job(client, job["id"], "succeeded")
    assert len(client.get("/v1/models").json()["models"]) == 20


def test_a_loss_of_zero_still_gives_valid_json(make_settings: Callable[..., Settings], tmp_path: Path) -> None:
    write(tmp_path / "easy.parquet", {"x": pa.array([1.0, 2.0, 3.0, 4.0]), "kind": pa.array([0, 0, 1, 1])})
    body = request(data={"train": "easy.parquet", "label": "kind"}, algorithm={"name": "adaboost"})

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    with in_thread(make_settings(data_root=tmp_path)) as (client, _app):
        job = wait_for_job(client, submit(client, body)["id"], "succeeded")
        assert job["answer"]["stop_reason"] == "edge_one"
        assert job["progress"] == 1.0
        for path in ("", "/rounds"):
            json.loads(client.get(f"/v1/jobs/{job['id']}{path}").text, parse_constant=refuse)
        answer = client.post("/v1/models/trees/predict", json={"rows": [[0], [9], [None]]}).json()
        # Integer labels come back as they were.
        assert answer["labels"][:2] == [0, 1]


def test_algorithms_are_described(shared_client: httpx.Client) -> None:
    algorithms = shared_client.get("/v1/algorithms").json()["algorithms"]
    by_name = {algorithm["name"]: algorithm for algorithm in algorithms}
    assert "adaboost_mh" in by_name
    assert by_name["adaboost_mh"]["parameters"]["type"] == "object"
    assert by_name["adaboost_mh"]["source"]
