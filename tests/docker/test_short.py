"""The short tier: up, one model, one kill, and nobody comes in who should not."""

import json
from pathlib import Path

import httpx
import pytest

from tests.docker.cluster import KILL_CHILDREN, Cluster, figures, sha256_of, train, trained_here, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

SUBMIT = """
import sys
from distributed import Client
Client(sys.argv[1], timeout=5).submit(sum, [1]).result(timeout=5)
"""


def test_the_cluster_gives_the_model_of_one_process(cluster: Cluster, docker_data: Path, tmp_path: Path) -> None:
    here = trained_here(docker_data, tmp_path)
    with cluster.client() as client:
        assert sha256_of(client, train(client, workers=3)) == here
        # The workers' processes are killed from inside: their nannies start them again.
        victim = cluster.containers("worker")[0]
        cluster.docker("exec", victim, "python", "-c", KILL_CHILDREN)
        # And one container is killed as a whole: a stop by hand, which no restart policy undoes.
        cluster.docker("kill", cluster.containers("worker")[1])
        wait_for(lambda: cluster.containers("worker"), lambda names: len(names) == 2, 60)
        assert sha256_of(client, train(client, workers=2)) == here
        told = figures(client)
        assert told["edgewise_rounds_total"] == 120
        assert told["edgewise_reduction_bytes_total"] > 0
        assert 0 < told["edgewise_reduction_seconds_total"] < told["edgewise_round_seconds_total"]
        cluster.up()
        wait_for(lambda: figures(client)["edgewise_workers"], lambda workers: workers == 3, 120)
        assert sha256_of(client, train(client, workers=3)) == here


def test_figures_are_of_all_server_processes(cluster: Cluster) -> None:
    """Every call comes by a connection of its own, so either process may take it and either may answer for both."""
    with cluster.client() as client:
        before = calls(client)
        for _ in range(20):
            assert httpx.get(client.base_url.join("/healthz")).status_code == 200
        # A call is counted when its answer is sent, which the caller may have before.
        assert wait_for(lambda: calls(client), lambda now: now >= before + 20, 10) == before + 20
    assert cluster.docker("exec", cluster.containers("api")[0], "python", "-c", FILES_OF_FIGURES) == "2"


def calls(client: httpx.Client) -> float:
    """How often /healthz was asked for, in any server process."""
    return sum(float(line.split()[1]) for line in client.get("/metrics").text.splitlines() if line.startswith(COUNT))


COUNT = 'edgewise_http_request_seconds_count{method="GET",route="/healthz"'
FILES_OF_FIGURES = """
import glob
print(len({name.rpartition("_")[2] for name in glob.glob("/tmp/edgewise-metrics-*/histogram_*.db")}))
"""


def test_the_image_is_small(cluster: Cluster) -> None:
    assert int(cluster.docker("image", "inspect", "-f", "{{.Size}}", cluster.image)) < 650e6


def test_compose_has_nothing_to_say(cluster: Cluster) -> None:
    assert cluster.compose("config", "-q") == ""


def test_only_the_api_is_published_and_only_on_loopback(cluster: Cluster) -> None:
    lines = cluster.compose("ps", "--format", "json").splitlines()
    published = {
        (service["Service"], port["URL"])
        for service in map(json.loads, lines)
        for port in service["Publishers"] or ()
        if port["PublishedPort"]
    }
    assert published == {("api", "127.0.0.1")}


@pytest.mark.parametrize("address", ["tcp://scheduler:8786", "tls://scheduler:8786"])
def test_a_stranger_on_the_network_cannot_submit(cluster: Cluster, address: str) -> None:
    network = f"{cluster.name}_inside"
    run = ("run", "--rm", "--network", network, "--entrypoint", "python", cluster.image)
    assert cluster.docker(*run, "-c", "import socket; print(socket.create_connection(('scheduler', 8786), 5) and 1)")
    said = cluster.docker(*run, "-c", SUBMIT, address, check=False)
    assert "Error" in said, said


def test_calls_without_a_key_are_refused(cluster: Cluster) -> None:
    with cluster.client() as client:
        # The pages are in the image and open; what they show is not.
        for path in ("/", "/assets/main.js", "/assets/style.css"):
            assert httpx.get(client.base_url.join(path)).status_code == 200
        bare = httpx.get(client.base_url.join("/v1/jobs"))
        assert bare.status_code == 401
