"""A cluster made by compose.yml, as a user would make it, for the tests of this folder."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
JOB: dict[str, Any] = {
    "name": "letters",
    "data": {"train": "train.parquet", "label": "label"},
    "algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 21}},
    "rounds": 60,
}

# Of its own for each run, so that two can run at once.
PROJECT = os.environ.get("COMPOSE_PROJECT_NAME") or f"edgewise-test-{os.getpid()}"
# Inside a worker's container: kills the process that trains, which its nanny starts again.
KILL_CHILDREN = """
import os, pathlib, signal
for folder in pathlib.Path("/proc").iterdir():
    if folder.name.isdigit() and b"spawn_main" in (folder / "cmdline").read_bytes():
        os.kill(int(folder.name), signal.SIGKILL)
        break
else:
    raise SystemExit("no worker process found")
"""


class Cluster:
    """One compose project with its own name, volumes and port; `data` is its data root on this machine."""

    def __init__(self, name: str, data: Path, workers: int, files: tuple[str, ...] = ("compose.yml",)) -> None:
        self.name, self.files = name, files
        self.environment = os.environ | {
            "COMPOSE_PROJECT_NAME": name,
            "COMPOSE_FILE": os.pathsep.join(files),
            "EDGEWISE_DATA_FOLDER": str(data),
            "EDGEWISE_PUBLISH_PORT": "0",
            "EDGEWISE_WORKERS": str(workers),
            "EDGEWISE_API_CPUS": "1",
        }

    @property
    def image(self) -> str:
        """The image of all roles."""
        return f"edgewise:{self.environment.get('EDGEWISE_TAG', 'latest')}"

    def compose(self, *arguments: str, check: bool = True) -> str:
        """What a compose command prints."""
        return self.docker("compose", *arguments, check=check)

    def docker(self, *arguments: str, check: bool = True) -> str:
        """What a docker command prints, with its errors."""
        done = subprocess.run(
            ["docker", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"docker {' '.join(arguments)}:\n{done.stdout[-4000:]}"
        return done.stdout.strip()

    def shell(self, commands: str, folder: Path) -> None:
        """Run commands as a user would type them, from a folder that is not the project's."""
        done = subprocess.run(
            ["sh", "-ec", commands],
            cwd=folder,
            env=self.environment | {"COMPOSE_FILE": os.pathsep.join(str(ROOT / file) for file in self.files)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def up(self) -> None:
        """Bring everything up; whatever is missing comes back."""
        try:
            self.compose("up", "-d", "--wait", "--wait-timeout", "900")
        except AssertionError as error:
            logs = self.compose("logs", "--tail", "40", check=False)
            raise AssertionError(f"{error}\n{logs[-12000:]}") from None

    def containers(self, service: str) -> list[str]:
        """Names of a service's running containers."""
        names = self.docker("ps", "--filter", f"name=^{self.name}-{service}-", "--format", "{{.Names}}")
        return sorted(names.split())

    def healthy(self, service: str) -> list[str]:
        """Names of those that also say that they are well."""
        chosen = ("--filter", f"name=^{self.name}-{service}-", "--filter", "health=healthy")
        return sorted(self.docker("ps", *chosen, "--format", "{{.Names}}").split())

    def client(self) -> httpx.Client:
        """A client with the admin key, as the documentation reads it."""
        key = self.compose("exec", "-T", "api", "cat", "/run/edgewise/admin-key")
        address = self.compose("port", "api", "8000")
        return httpx.Client(base_url=f"http://{address}", headers={"Authorization": f"Bearer {key}"}, timeout=30)


@contextlib.contextmanager
def running(found: Cluster) -> Iterator[Cluster]:
    """Build and bring up; take down with all volumes."""
    found.compose("build")
    try:
        found.up()
        yield found
    finally:
        found.compose("down", "-v", "--timeout", "5", check=False)


def wait_for(ask: Callable[[], Any], is_it: Callable[[Any], bool], seconds: float) -> Any:
    """Ask until the answer is it; a container offers no event to wait for."""
    until = time.monotonic() + seconds
    while not is_it(answer := ask()):
        assert time.monotonic() < until, answer
        time.sleep(0.5)
    return answer


def train(client: httpx.Client, workers: int, **changes: Any) -> dict[str, Any]:
    """Submit the job and follow it to its end."""
    body = {**JOB, "resources": {"workers": workers}, **changes}
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return finished(client, answer.json()["id"])


def finished(client: httpx.Client, job_id: str, seconds: float = 300) -> dict[str, Any]:
    """A job once it has succeeded."""
    job = wait_for(
        lambda: client.get(f"/v1/jobs/{job_id}").json(),
        lambda job: job["status"] in {"succeeded", "failed", "cancelled"},
        seconds,
    )
    assert job["status"] == "succeeded", job
    return job


def sha256_of(client: httpx.Client, job: dict[str, Any]) -> str:
    """The hash of a job's model, as the registry tells it."""
    model = job["model"]
    return client.get(f"/v1/models/{model['name']}/versions/{model['version']}").json()["sha256"]


def trained_here(data: Path, folder: Path, **changes: Any) -> str:
    """The hash of the same job's model, trained in one process of this machine."""
    (folder / "job.json").write_text(json.dumps({**JOB, **changes}))
    command = [sys.executable, "-m", "service.cli", "train", "job.json", "--out", "here.model", "--workers", "0"]
    command += ["--data-root", str(data), "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["model_sha256"])


def figures(client: httpx.Client) -> dict[str, float]:
    """The figures of /metrics that have no labels."""
    lines = (line.split() for line in client.get("/metrics").text.splitlines() if line[0] != "#" and "{" not in line)
    return {name: float(value) for name, value in lines}
