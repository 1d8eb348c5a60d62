"""deploy/compose.scale.yml: a database elsewhere, and workers of another host. Both hosts are this machine, under an
address that its containers can call; their projects, volumes and networks are apart."""

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.cluster import PROJECT, Cluster, figures, running, sha256_of, train, trained_here, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.docker_all, pytest.mark.timeout(1800)]
FILES = ("compose.yml", "deploy/compose.scale.yml")
COPY = """
mkdir certificates
docker compose exec -T scheduler tar -c -C /run/edgewise/tls . | tar -x -p --numeric-owner -C certificates
"""


@contextlib.contextmanager
def database(host: Cluster, folder: Path) -> Iterator[str]:
    """A PostgreSQL that no compose file knows; its address on a network of its own, where this machine has one too."""
    password, name = secrets.token_urlsafe(16), f"{host.name}-database"
    path = folder / "password"
    path.write_text(password)
    path.chmod(0o644)
    host.environment["EDGEWISE_DATABASE_PASSWORD_PATH"] = str(path)
    host.docker("network", "create", name)
    try:
        gateway = host.docker("network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", name)
        settings = ("-e", "POSTGRES_USER=edgewise", "-e", "POSTGRES_DB=edgewise", "-e", f"POSTGRES_PASSWORD={password}")
        host.docker("run", "-d", "--name", name, "--network", name, "-p", f"{gateway}::5432", *settings, "postgres:15")
        ready = ("exec", name, "pg_isready", "-h", "127.0.0.1", "-U", "edgewise", "-d", "edgewise")
        wait_for(lambda: host.docker(*ready, check=False), lambda said: "accepting" in said, 120)
        port = host.docker("port", name, "5432").rpartition(":")[2]
        host.environment |= {
            "EDGEWISE_DATABASE_URL": f"postgresql://edgewise@{gateway}:{port}/edgewise",
            "EDGEWISE_MEMBER_ADDRESS": gateway,
            "EDGEWISE_SCHEDULER_ADDRESS": gateway,
        }
        yield gateway
    finally:
        host.docker("rm", "-f", "-v", name, check=False)
        host.docker("network", "rm", name, check=False)


# Folders that containers read lie beside the data: pytest's own are closed to other users.
def test_workers_of_two_hosts_and_a_database_elsewhere(docker_data: Path, tmp_path: Path) -> None:
    here = trained_here(docker_data, tmp_path)
    checkpoints = docker_data / "checkpoints"
    checkpoints.mkdir()
    checkpoints.chmod(0o777)
    first = Cluster(f"{PROJECT}-first", docker_data, 1, FILES)
    first.environment["EDGEWISE_CHECKPOINTS_FOLDER"] = str(checkpoints)
    with database(first, docker_data), running(first):
        assert first.containers("postgres") == []
        first.shell(COPY, docker_data)
        second = Cluster(f"{PROJECT}-second", docker_data, 2, FILES)
        second.environment = first.environment | {
            "COMPOSE_PROJECT_NAME": second.name,
            "EDGEWISE_CERTIFICATES_FOLDER": str(docker_data / "certificates"),
        }
        try:
            second.compose("up", "-d", "--no-deps", "--scale", "worker=2", "worker")
            with first.client() as client:
                wait_for(lambda: figures(client)["edgewise_workers"], lambda workers: workers == 3, 300)
                assert sha256_of(client, train(client, workers=3)) == here
        finally:
            second.compose("down", "-v", "--timeout", "5", check=False)
