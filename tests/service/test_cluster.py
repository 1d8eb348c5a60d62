"""Training on Dask workers through the service and the command line gives the model of one process."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.service.live_server import commanding, serving
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import request
from tests.service.test_cli import one_object, run, write_job

pytestmark = [pytest.mark.parity, pytest.mark.slow]


def test_a_server_with_a_cluster(data_root: Path, tmp_path: Path) -> None:
    with serving(data_root, tmp_path / "state", "--cluster", "local:2") as server:
        client = server.client
        wait_until(lambda: client.get("/readyz"), lambda answer: answer.status_code == 200)
        hashes = []
        for wanted, got in [(0, 0), (1, 1), (2, 2), ("auto", 1)]:
            body = request(resources={"workers": wanted})
            job = client.post("/v1/jobs", json=body).json()
            job = wait_for_job(client, job["id"], "succeeded")
            assert (job["answer"]["workers"], job["resources"]["workers"]) == (got, got)
            assert sum(job["answer"]["rows_per_member"]) == 90
            hashes.append(job["answer"]["model_sha256"])
        assert len(set(hashes)) == 1
        refused = client.post("/v1/jobs", json=request(resources={"workers": 3}))
        assert refused.status_code == 422
        assert "the cluster has 2" in refused.json()["errors"][0]["message"]
        endless = client.post("/v1/jobs", json=request(rounds=1_000_000, resources={"workers": 2})).json()["id"]
        wait_until(lambda: client.get(f"/v1/jobs/{endless}").json()["rounds_done"], bool)
        client.post(f"/v1/jobs/{endless}/cancel").raise_for_status()
        wait_for_job(client, endless, "cancelled")
        # The workers are free again.
        job = client.post("/v1/jobs", json=request(resources={"workers": 2})).json()
        wait_for_job(client, job["id"], "succeeded")
        assert server.stop() == 0


def test_the_command_line_with_workers(data_root: Path, tmp_path: Path) -> None:
    answers = []
    for flags in (["--workers", "0"], ["--workers", "2"], []):
        # The flag wins over the body; without it the body counts.
        job = write_job(tmp_path, resources={"workers": 1})
        done = run("train", job, "--out", tmp_path / "m", "--data-root", data_root, "--json", *flags)
        answers.append(one_object(done))
    assert [answer["workers"] for answer in answers] == [0, 2, 1]
    assert len({answer["model_sha256"] for answer in answers}) == 1


def test_an_interrupt_from_a_terminal_reaches_the_command_alone(data_root: Path, tmp_path: Path) -> None:
    # A terminal interrupts the whole process group: the Dask workers too.
    job = write_job(tmp_path, rounds=1_000_000)
    log = tmp_path / "log"
    flags = ["--out", str(tmp_path / "m"), "--data-root", str(data_root), "--workers", "2", "--json"]
    with commanding(log, "train", str(job), *flags) as process:
        wait_until(log.read_text, lambda text: "training ..." in text)
        os.killpg(process.pid, signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130, log.read_text()
    assert "interrupted after" in json.loads(stdout)["error"]["detail"]


def test_an_interrupted_server_gives_its_gang_job_back(data_root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(data_root, state, "--cluster", "local:2") as server:
        body = request(rounds=1_000_000, resources={"workers": 2})
        job = server.client.post("/v1/jobs", json=body).json()["id"]
        wait_until(lambda: server.client.get(f"/v1/jobs/{job}").json()["rounds_done"], bool)
        os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait(60) == 0
    with serving(data_root, state, "--cluster", "local:2") as server:
        steps = server.client.get(f"/v1/jobs/{job}").json()["transitions"]
        assert [step["state"] for step in steps][:5] == ["queued", "starting", "running", "paused", "queued"]
        assert steps[3]["reason"] == "the server was stopped"
        server.client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
        wait_for_job(server.client, job, "cancelled")
