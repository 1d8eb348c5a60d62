"""The long tier: whatever dies in the middle of a job, it ends with the model of an undisturbed one."""

import contextlib
import json
import os
import re
import signal
import textwrap
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.docker.cluster import JOB, KILL_CHILDREN, ROOT, Cluster, finished, sha256_of, trained_here, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.docker_all, pytest.mark.timeout(1800)]
ROUNDS = 400
FAR_ENOUGH = 30


@pytest.fixture(scope="module")
def here(docker_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The hash of the same job's model from one process of this machine."""
    return trained_here(docker_data, tmp_path_factory.mktemp("here"), rounds=ROUNDS)


def submit(cluster: Cluster, workers: int = 3, key: str = "") -> str:
    """A job with so many rounds that a fault comes before its end."""
    body = {**JOB, "rounds": ROUNDS, "resources": {"workers": workers}}
    with cluster.client() as client:
        answer = client.post("/v1/jobs", json=body, headers={"Idempotency-Key": key or uuid.uuid4().hex})
    assert answer.status_code in {200, 202}, answer.text
    return str(answer.json()["id"])


def job_of(cluster: Cluster, job_id: str) -> dict[str, Any]:
    """A job as the service tells it; nothing while no server answers."""
    with contextlib.suppress(httpx.TransportError, AssertionError), cluster.client() as client:
        answer = client.get(f"/v1/jobs/{job_id}")
        if answer.status_code == 200:
            return dict(answer.json())
    return {}


def in_the_middle(cluster: Cluster, job_id: str) -> dict[str, Any]:
    """Wait until some rounds are done."""
    return dict(
        wait_for(
            lambda: job_of(cluster, job_id),
            lambda job: job.get("status") == "running" and job["rounds_done"] >= FAR_ENOUGH,
            300,
        )
    )


def ends_alike(cluster: Cluster, job_id: str, here: str, fault_at: datetime | None = None) -> None:
    """The job succeeds, with the model of one process, and was not over before the fault."""
    with cluster.client() as client:
        job = finished(client, job_id, 600)
        assert sha256_of(client, job) == here
    if fault_at is not None:
        assert datetime.fromisoformat(job["timings"]["finished_at"]) > fault_at


def workers_are(cluster: Cluster, number: int) -> None:
    """Wait until so many workers' containers are healthy."""
    wait_for(lambda: cluster.healthy("worker"), lambda names: len(names) == number, 300)


def kill_the_child(cluster: Cluster) -> None:
    """Its nanny starts it again."""
    cluster.docker("exec", cluster.containers("worker")[0], "python", "-c", KILL_CHILDREN)


def kill_the_main_process(cluster: Cluster) -> None:
    """From this machine, so that the engine sees a crash and not a stop by hand."""
    victim = cluster.containers("worker")[0]
    os.kill(int(cluster.docker("inspect", "-f", "{{.State.Pid}}", victim)), signal.SIGKILL)
    count = wait_for(
        lambda: cluster.docker("inspect", "-f", "{{.RestartCount}}", victim), lambda count: count != "0", 60
    )
    assert count == "1"


def kill_the_container(cluster: Cluster) -> None:
    """A stop by hand: nothing but a start by hand brings it back."""
    victim = cluster.containers("worker")[1]
    cluster.docker("kill", victim)
    wait_for(lambda: cluster.containers("worker"), lambda names: victim not in names, 60)
    cluster.docker("start", victim)


def kill_the_runner(cluster: Cluster) -> None:
    """From this machine; the engine starts it again, and its workers are free for it."""
    [victim] = cluster.containers("runner")
    os.kill(int(cluster.docker("inspect", "-f", "{{.State.Pid}}", victim)), signal.SIGKILL)


def pause_past_the_deadline(cluster: Cluster) -> None:
    """Woken, it belongs to no gang any more."""
    victim = cluster.containers("worker")[2]
    # With cgroups of version 1 the engine may refuse to freeze processes that are waiting for their share of the CPU.
    wait_for(lambda: cluster.docker("pause", victim, check=False), lambda said: said == victim, 120)
    try:
        wait_for(lambda: cluster.compose("logs", "--no-log-prefix", "runner"), lambda log: "DeadlinePassed" in log, 120)
    finally:
        cluster.docker("unpause", victim)


def restart_the_scheduler(cluster: Cluster) -> None:
    cluster.compose("restart", "scheduler")


def restart_the_database(cluster: Cluster) -> None:
    cluster.compose("restart", "postgres")


def down_and_up(cluster: Cluster) -> None:
    cluster.compose("down")
    assert cluster.docker("ps", "-q", "--filter", f"name=^{cluster.name}-") == ""
    cluster.up()


FAULTS = [
    kill_the_child,
    kill_the_main_process,
    kill_the_container,
    kill_the_runner,
    pause_past_the_deadline,
    restart_the_scheduler,
    restart_the_database,
    down_and_up,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_job_outlives(hasty: Cluster, here: str, fault: Callable[[Cluster], None]) -> None:
    hasty.up()
    workers_are(hasty, 3)
    job_id = submit(hasty)
    in_the_middle(hasty, job_id)
    fault_at = datetime.now(UTC)
    fault(hasty)
    ends_alike(hasty, job_id, here, fault_at)
    workers_are(hasty, 3)


def test_a_submission_whose_server_is_killed_is_one_job(hasty: Cluster, here: str) -> None:
    """Killed while it answers; sent again with its key it is the same job, whether or not it was stored before."""
    hasty.up()
    key, sent = uuid.uuid4().hex, threading.Event()
    client = hasty.client()

    def send() -> None:
        body = {**JOB, "rounds": ROUNDS, "resources": {"workers": 3}}
        sent.set()
        with contextlib.suppress(httpx.TransportError):
            client.post("/v1/jobs", json=body, headers={"Idempotency-Key": key})

    thread = threading.Thread(target=send)
    thread.start()
    sent.wait()
    hasty.docker("kill", hasty.containers("api")[0])
    thread.join()
    client.close()
    hasty.up()
    job_id = submit(hasty, key=key)
    assert submit(hasty, key=key) == job_id
    ends_alike(hasty, job_id, here)


def test_the_image_is_upgraded_in_the_middle_of_a_job(hasty: Cluster, here: str, tmp_path: Path) -> None:
    hasty.up()
    job_id = submit(hasty)
    in_the_middle(hasty, job_id)
    (tmp_path / "Dockerfile").write_text(f"FROM {hasty.image}\nLABEL upgraded=yes\n")
    tag = f"upgrade-{os.getpid()}"
    hasty.docker("build", "-q", "-t", f"edgewise:{tag}", str(tmp_path))
    before, fault_at = dict(hasty.environment), datetime.now(UTC)
    hasty.environment["EDGEWISE_TAG"] = tag
    try:
        hasty.up()
        images = {
            hasty.docker("inspect", "-f", "{{.Config.Image}}", name)
            for service in ("api", "runner", "scheduler", "worker")
            for name in hasty.containers(service)
        }
        assert images == {f"edgewise:{tag}"}
        ends_alike(hasty, job_id, here, fault_at)
    finally:
        hasty.environment = before
        hasty.up()
        hasty.docker("rmi", f"edgewise:{tag}", check=False)


def test_workers_come_and_go_in_the_middle_of_a_job(hasty: Cluster, here: str) -> None:
    hasty.up()
    job_id = submit(hasty)
    in_the_middle(hasty, job_id)
    fault_at = datetime.now(UTC)
    hasty.compose("up", "-d", "--no-recreate", "--scale", "worker=1", "--wait")
    assert len(hasty.containers("worker")) == 1
    hasty.compose("up", "-d", "--no-recreate", "--scale", "worker=4", "--wait")
    workers_are(hasty, 4)
    ends_alike(hasty, job_id, here, fault_at)
    hasty.up()


REACH = """
import json, socket, sys
reached = []
for host, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((host, port), 1).close()
        reached.append([host, port])
    except OSError:
        pass
print(json.dumps(reached))
"""


def test_a_container_outside_reaches_nothing_but_the_api(hasty: Cluster) -> None:
    hasty.up()
    places = []
    for service, ports in {"postgres": [5432], "scheduler": [8786, 8787], "worker": [], "runner": []}.items():
        for name in hasty.containers(service):
            networks = json.loads(hasty.docker("inspect", "-f", "{{json .NetworkSettings.Networks}}", name))
            address = networks[f"{hasty.name}_inside"]["IPAddress"]
            listening = hasty.docker("exec", name, "cat", "/proc/net/tcp").splitlines()[1:]
            found = {int(line.split()[1].split(":")[1], 16) for line in listening if line.split()[3] == "0A"}
            places += [[address, port] for port in sorted(found | set(ports))]
    assert len(places) >= 8
    ask = ("run", "--rm", "--entrypoint", "python", hasty.image, "-c", REACH, json.dumps(places))
    assert json.loads(hasty.docker(*ask[:2], "--network", "bridge", *ask[2:]).splitlines()[-1]) == []
    # The same question from the inside finds them, so it is the network that says no.
    inside = json.loads(hasty.docker(*ask[:2], "--network", f"{hasty.name}_inside", *ask[2:]).splitlines()[-1])
    assert len(inside) >= 5


def test_a_backup_brings_models_and_jobs_back(hasty: Cluster, docker_data: Path, here: str, tmp_path: Path) -> None:
    """By the commands of deploy/README.md, into a cluster that knows nothing."""
    hasty.up()
    job_id = submit(hasty)
    ends_alike(hasty, job_id, here)
    save, restore = commands_of("Back up and restore")
    hasty.shell(save, tmp_path)
    hasty.compose("down", "-v")
    hasty.up()
    assert job_of(hasty, job_id) == {}
    hasty.shell(restore, tmp_path)
    hasty.up()
    with hasty.client() as client:
        job = client.get(f"/v1/jobs/{job_id}").json()
        assert job["status"] == "succeeded"
        assert sha256_of(client, job) == here
        table = pq.read_table(docker_data / "train.parquet").slice(0, 5).drop(["label"])
        rows = [list(row.values()) for row in table.to_pylist()]
        answer = client.post(f"/v1/models/{job['model']['name']}/predict", json={"rows": rows})
        assert answer.status_code == 200, answer.text


def commands_of(title: str) -> list[str]:
    """The blocks of commands under a title of deploy/README.md."""
    text = (ROOT / "deploy" / "README.md").read_text().split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"(?:^    .+\n)+", text, re.M)
    return [textwrap.dedent(block) for block in blocks]
