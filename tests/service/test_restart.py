"""A server that is killed, restarted or stopped loses no accepted job."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.live_server import serving
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import request

pytestmark = pytest.mark.faults


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_killed_server_loses_no_job(data_root: Path, state: Path) -> None:
    with serving(data_root, state) as server:
        finished = server.client.post("/v1/jobs", json=request(name="first", rounds=2)).json()
        finished = wait_for_job(server.client, finished["id"], "succeeded")
        running = server.client.post("/v1/jobs", json=request(name="long", rounds=5_000)).json()["id"]
        cancelled = server.client.post("/v1/jobs", json=request(name="no", rounds=2)).json()["id"]
        server.client.post(f"/v1/jobs/{cancelled}/cancel").raise_for_status()
        queued = [
            server.client.post("/v1/jobs", json=request(name=f"q{number}", rounds=3)).json() for number in range(4)
        ]
        wait_until(
            lambda: server.client.get(f"/v1/jobs/{running}").json()["rounds_done"], lambda done: 0 < done < 5_000
        )
        server.kill()
    with serving(data_root, state) as server:
        assert server.client.get(f"/v1/jobs/{finished['id']}").json() == finished
        for job in queued:
            done = wait_for_job(server.client, job["id"], "succeeded")
            assert done["timings"]["submitted_at"] == job["timings"]["submitted_at"]
            assert done["run"] == 1
        again = wait_for_job(server.client, running, "succeeded")
        assert (again["run"], again["rounds_done"]) == (2, 5_000)
        steps = [step["state"] for step in again["transitions"]]
        assert steps == [
            "queued", "starting", "running", "paused", "queued", "starting", "running", "succeeded"
        ]  # fmt: skip
        assert server.client.get(f"/v1/jobs/{cancelled}").json()["status"] == "cancelled"
        rounds = server.client.get(f"/v1/jobs/{running}/rounds", params={"limit": 10_000}).json()
        assert [entry["round"] for entry in rounds["rounds"]] == list(range(1, 5_001))
        assert len(server.client.get("/v1/models").json()["models"]) == 6


def test_a_server_that_is_killed_again_and_again(data_root: Path, state: Path) -> None:
    ids: list[str] = []
    for number in range(3):
        with serving(data_root, state) as server:
            for extra in range(3):
                body = request(name=f"m{number}{extra}", rounds=4)
                key = {"Idempotency-Key": f"{number}-{extra}"}
                ids.append(server.client.post("/v1/jobs", json=body, headers=key).json()["id"])
            server.kill()
    with serving(data_root, state) as server:
        for job_id in ids:
            wait_for_job(server.client, job_id, "succeeded")
        key = {"Idempotency-Key": "0-0"}
        again = server.client.post("/v1/jobs", json=request(name="m00", rounds=4), headers=key).json()
        assert again["id"] == ids[0]
        assert len(server.client.get("/v1/jobs").json()["jobs"]) == 9


def test_a_stopped_server_gives_its_running_job_back(data_root: Path, state: Path) -> None:
    with serving(data_root, state) as server:
        job = server.client.post("/v1/jobs", json=request(rounds=1_000_000)).json()["id"]
        wait_until(lambda: server.client.get(f"/v1/jobs/{job}").json()["rounds_done"], bool)
        assert server.stop() == 0
    with serving(data_root, state) as server:
        steps = server.client.get(f"/v1/jobs/{job}").json()["transitions"]
        paused = next(step for step in steps if step["state"] == "paused")
        assert paused["reason"] == "the server was stopped"
        server.client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
        wait_for_job(server.client, job, "cancelled")


def test_a_state_folder_serves_one_server(data_root: Path, state: Path) -> None:
    command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--state-dir", str(state)]
    with serving(data_root, state) as server:
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 2
        assert f"{state} is in use by another server" in second.stderr
        assert server.client.get("/healthz").status_code == 200
