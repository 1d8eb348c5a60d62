"""Whole processes are killed while a job trains: scheduler, server, runner, or all. Started again, they end it.

The model is the undisturbed one, and no round is trained again that a checkpoint holds.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from boost_core.warm_up import WarmUp, warm_up
from service.migrate import upgrade
from service.requests import parse, prepare
from service.sql_engine import file_engine
from service.sql_store import SqlStore
from tests.faults.processes import QUICK, Member, Site
from tests.service.live_server import ServeProcess, commanding, serving
from tests.service.polling import wait_for_job, wait_until
from tests.service.postgres_server import running_server
from tests.service.tables_of_data import request, write_trees
from tests.workers.object_server import CREDENTIALS, credentials, object_server
from workers.checkpoint_store import CheckpointStore, checkpoints_at
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from workers.model_file import model_sha256

pytestmark = [pytest.mark.alone, pytest.mark.faults]

# As many as take some seconds, so that the death comes in the middle: half a millisecond a round in one process.
ALONE_ROUNDS, GANG_ROUNDS = 3000, 500
FAR_ENOUGH = 100  # rounds after which somebody dies
N_WORKERS = 2


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_trees(root / "trees.parquet", n_rows=6000)
    return root


def rounds_of(workers: int) -> int:
    return GANG_ROUNDS if workers else ALONE_ROUNDS


@pytest.fixture(scope="module", autouse=True)
def undisturbed(data_root: Path) -> dict[int, str]:
    """The hash of the model, by workers: of as many rounds as theirs, trained here. Others find kernels compiled."""
    hashes = {}
    for workers in (0, N_WORKERS):
        plan, config = prepare(parse(request(rounds=rounds_of(workers))), data_root)
        warm_up(config, len(plan.classes), WarmUp(in_gang=workers > 0))
        outcome = train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress())
        hashes[workers] = model_sha256(outcome.model)
    return hashes


def submit(client: httpx.Client, workers: int) -> str:
    body = request(rounds=rounds_of(workers), resources={"workers": workers, "threads": 1})
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def in_the_middle(client: httpx.Client, job_id: str, kept: CheckpointStore) -> None:
    """Some rounds are done, of which there is a checkpoint."""
    wait_until(lambda: client.get(f"/v1/jobs/{job_id}").json()["rounds_done"], lambda done: done >= FAR_ENOUGH)
    wait_until(lambda: kept.rounds(job_id), bool)


def rounds_trained(client: httpx.Client) -> int:
    """As the service counts them, each as often as it was trained."""
    [line] = [each for each in client.get("/metrics").text.splitlines() if each.startswith("edgewise_rounds_total ")]
    return int(float(line.split()[1]))


def rounds_stored(state: Path) -> int:
    """The same of a server that is dead."""
    engine = file_engine(state / "edgewise.db")
    upgrade(engine)
    store = SqlStore(engine)
    try:
        return store.totals().rounds
    finally:
        store.close()


class Before:
    """What there was when all had died: rounds that were told, and rounds of the last checkpoint."""

    def __init__(self, told: int, job_id: str, kept: CheckpointStore) -> None:
        self.told, self.kept = told, kept.rounds(job_id)[0]

    def assert_goes_on(self, client: httpx.Client, job_id: str, undisturbed: dict[int, str]) -> dict[str, Any]:
        """The job ends with the undisturbed model; what no checkpoint holds is trained again, and nothing else."""
        job = wait_for_job(client, job_id, "succeeded")
        rounds = job["rounds"]
        assert FAR_ENOUGH <= self.told < rounds
        assert 0 < self.kept < rounds
        assert job["answer"]["model_sha256"] == undisturbed[job["answer"]["workers"]]
        assert job["rounds_done"] == rounds
        states = [step["state"] for step in job["transitions"]]
        assert states[:6] == ["queued", "starting", "running", "paused", "queued", "starting"]
        assert states[-2:] == ["running", "succeeded"]
        # Whatever came between, nobody trained: workers that have just come may not be had at once.
        assert rounds_trained(client) == self.told + rounds - self.kept
        return job


@pytest.mark.parametrize("place", ["folder", "objects"])
def test_a_killed_server_goes_on_from_the_last_checkpoint(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedded: the server trains itself. The second server has the model in the same object store."""
    state, environment = tmp_path / "state", dict(QUICK)
    credentials(monkeypatch)
    with object_server() as (uri, objects):
        if place == "objects":
            models = uri.replace("/kept?", "/models?")
            environment |= CREDENTIALS | {"EDGEWISE_CHECKPOINT_DIR": uri, "EDGEWISE_MODEL_DIR": models}
        kept = checkpoints_at(environment.get("EDGEWISE_CHECKPOINT_DIR", str(state / "checkpoints")))
        with serving(data_root, state, **environment) as server:
            job_id = submit(server.client, 0)
            in_the_middle(server.client, job_id, kept)
            server.kill()
        before = Before(rounds_stored(state), job_id, kept)
        with serving(data_root, state, **environment) as server:
            job = before.assert_goes_on(server.client, job_id, undisturbed)
            assert job["transitions"][3]["reason"] == "the server that ran it is gone"
            rows = [[1.0, 2.0, None]]
            answer = server.client.post(f"/v1/models/{job['model']['name']}/predict", json={"rows": rows})
            assert answer.status_code == 200, answer.text
        assert (sum("/artifact." in key for key in objects.held) == 1) == (place == "objects")
        assert (state / "models").exists() == (place == "folder")


def test_a_killed_server_takes_its_embedded_workers_along(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str]
) -> None:
    state, cluster = tmp_path / "state", ("--cluster", f"local:{N_WORKERS}")
    kept = checkpoints_at(str(state / "checkpoints"))
    with serving(data_root, state, *cluster, **QUICK) as server:
        job_id = submit(server.client, N_WORKERS)
        in_the_middle(server.client, job_id, kept)
        children = psutil.Process(server.process.pid).children(recursive=True)
        server.kill()
    assert len(children) >= N_WORKERS
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    before = Before(rounds_stored(state), job_id, kept)
    with serving(data_root, state, *cluster, **QUICK) as server:
        before.assert_goes_on(server.client, job_id, undisturbed)
        server.kill()


@pytest.fixture
def kept(tmp_path: Path) -> CheckpointStore:
    return checkpoints_at(str(tmp_path / "state" / "checkpoints"))


def lose_the_scheduler(site: Site, server: ServeProcess, job_id: str) -> None:
    """Kill it; the job waits, and the service says for what."""
    site.scheduler.kill()
    job = wait_until(
        lambda: server.client.get(f"/v1/jobs/{job_id}").json(), lambda job: job["status"] in {"queued", "failed"}
    )
    assert job["status"] == "queued", job
    assert f"the scheduler of {site.address}" in job["transitions"][3]["reason"]
    ready = server.client.get("/readyz")
    assert ready.status_code == 503
    assert not ready.json()["parts"]["cluster"]["ready"]


def assert_ended(workers: list[Member]) -> None:
    """They end with their scheduler, and say that they are to be started again."""
    assert len(workers) == N_WORKERS
    assert [worker.process.wait(60) for worker in workers] == [1] * N_WORKERS


def test_a_job_outlives_its_scheduler(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str], kept: CheckpointStore
) -> None:
    with Site(tmp_path, data_root, N_WORKERS) as site:
        site.start_workers()
        server = site.start_server()
        job_id = submit(server.client, N_WORKERS)
        in_the_middle(server.client, job_id, kept)
        lose_the_scheduler(site, server, job_id)
        before = Before(rounds_trained(server.client), job_id, kept)
        site.scheduler_again()
        ending = site.start_workers()
        before.assert_goes_on(server.client, job_id, undisturbed)
        assert_ended(ending)
        assert server.client.get("/readyz").status_code == 200


def test_a_job_whose_workers_do_not_come_back_says_so(data_root: Path, tmp_path: Path, kept: CheckpointStore) -> None:
    """A scheduler alone is no cluster: the wait has an end. The job can go on from its checkpoint even so."""
    with Site(tmp_path, data_root, N_WORKERS, EDGEWISE_WORKER_WAIT_SECONDS="1") as site:
        site.start_workers()
        server = site.start_server()
        job_id = submit(server.client, N_WORKERS)
        in_the_middle(server.client, job_id, kept)
        lose_the_scheduler(site, server, job_id)
        site.scheduler_again()
        job = wait_for_job(server.client, job_id, "failed")
        assert job["reason"] == f"needs {N_WORKERS} worker(s); the cluster has 0; waited 1 s for that to change"
        assert kept.rounds(job_id)
        assert server.client.post(f"/v1/jobs/{job_id}/resume").status_code == 202
        assert_ended(site.workers)


def test_all_are_killed_at_once_and_started_again(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str], kept: CheckpointStore
) -> None:
    """Also elsewhere: neither the scheduler nor the workers have the addresses of before."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    state = tmp_path / "state"
    with Site(tmp_path / "first", data_root, N_WORKERS, state=state) as site:
        site.start_workers()
        server = site.start_server()
        job_id = submit(server.client, N_WORKERS)
        in_the_middle(server.client, job_id, kept)
        os.killpg(server.process.pid, signal.SIGKILL)
        for member in (site.scheduler, *site.workers):
            os.killpg(member.process.pid, signal.SIGKILL)
    before = Before(rounds_stored(state), job_id, kept)
    with Site(tmp_path / "second", data_root, N_WORKERS, state=state) as site:
        site.start_workers()
        server = site.start_server()
        job = before.assert_goes_on(server.client, job_id, undisturbed)
        assert job["transitions"][3]["reason"] == "the server that ran it is gone"


@pytest.fixture
def apart() -> Iterator[dict[str, str]]:
    """Settings of servers and runners that share a store, in which a runner is missed after 3 s."""
    with running_server() as postgres:
        yield {
            "EDGEWISE_DATABASE_URL": postgres.database().render_as_string(),
            "EDGEWISE_EMBEDDED_RUNNER": "false",
            "EDGEWISE_LEASE_SECONDS": "3",
        }


def test_a_job_outlives_its_runner(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str], kept: CheckpointStore, apart: dict[str, str]
) -> None:
    """The next runner has its workers, and goes on from the checkpoint; the server answers all the time."""
    with Site(tmp_path, data_root, N_WORKERS, **apart) as site:
        site.start_workers()
        runner = site.start_runner()
        server = site.start_server()
        job_id = submit(server.client, N_WORKERS)
        in_the_middle(server.client, job_id, kept)
        runner.kill()
        before = Before(rounds_trained(server.client), job_id, kept)
        site.start_runner()
        job = before.assert_goes_on(server.client, job_id, undisturbed)
        assert job["transitions"][3]["reason"] == "the lease of its runner expired"


def test_a_command_whose_scheduler_dies_says_so_and_is_resumed(
    data_root: Path, tmp_path: Path, undisturbed: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("EDGEWISE_STATE_DIR", str(tmp_path / "state"))
    job = tmp_path / "job.json"
    job.write_text(json.dumps(request(rounds=GANG_ROUNDS)))
    out, log = tmp_path / "m", tmp_path / "log"
    flags = [str(job), "--out", str(out), "--data-root", str(data_root), "--json"]
    with Site(tmp_path, data_root, N_WORKERS) as site:
        site.start_workers()
        wait_until(lambda: [worker.address() for worker in site.workers], bool)
        there = ["--cluster", site.address, "--workers", str(N_WORKERS)]
        with commanding(log, "train", *flags, *there) as process:
            wait_until(lambda: list((tmp_path / "state" / "checkpoints").glob("*.checkpoint")), bool)
            site.scheduler.kill()
            stdout, _ = process.communicate(timeout=60)
        assert process.returncode == 4, log.read_text()
        assert f"the scheduler of {site.address}" in json.loads(stdout)["error"]["detail"]
        assert not out.exists()
    command = [sys.executable, "-m", "service.cli", "train", *flags, "--workers", "0", "--resume"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model_sha256"] == undisturbed[N_WORKERS]
