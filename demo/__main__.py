"""Trains, follows, serves and checks a model from end to end; everything it makes is removed again.

digits -> Parquet -> `edgewise serve` -> POST /v1/jobs -> rounds as they happen -> POST /v1/models/.../predict
                  -> `edgewise train --workers 2` -> the same model hash
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from demo.digits import write_digits

POLL_SECONDS = 0.1
START_SECONDS = 60.0
JOB: dict[str, Any] = {
    "name": "digits",
    "data": {"train": "digits.train.parquet", "valid": "digits.test.parquet", "label": "label"},
    "algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 9}},
    "rounds": 300,
}
EDGEWISE = [sys.executable, "-m", "service.cli"]
say = Console(highlight=False)


@contextmanager
def service(folder: Path) -> Iterator[httpx.Client]:
    """The embedded service on a free port of this machine, and a client of it."""
    command = [
        *EDGEWISE,
        "serve",
        "--port",
        "0",
        "--data-root",
        str(folder),
        "--state-dir",
        str(folder / "state"),
        "--json",
    ]
    with (
        (folder / "serve.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"the service did not start:\n{(folder / 'serve.log').read_text()}")
            url = json.loads(line)["url"]
            say.print(f"   listening on {url} (its pages: {url}/docs)")
            with httpx.Client(base_url=url, timeout=START_SECONDS) as client:
                yield client
        finally:
            process.terminate()


def follow(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """Show a job's rounds as they happen; returns the finished job."""
    columns = (
        TextColumn("   {task.description}"),
        BarColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=say) as bar:
        task = bar.add_task("round 0", total=JOB["rounds"], figures="waiting")
        after = 0
        while True:
            job: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
            rounds = (
                client.get(f"/v1/jobs/{job_id}/rounds", params={"after": after}).raise_for_status().json()["rounds"]
            )
            if rounds:
                last = rounds[-1]
                after = last["round"]
                figures = f"edge {last['edge']:.3f}  bound {last['bound']:.2e}  test error {last['valid_error']:.4f}"
                bar.update(task, completed=after, description=f"round {after}", figures=figures)
            if job["status"] in ("succeeded", "failed", "cancelled") and not rounds:
                return job
            time.sleep(POLL_SECONDS)


def predict(client: httpx.Client, test: dict[str, list[Any]]) -> float:
    """Error of the served model on the test rows."""
    truth = test.pop("label")
    answer = client.post(f"/v1/models/{JOB['name']}/predict", json={"columns": test}).raise_for_status().json()
    wrong = sum(found != true for found, true in zip(answer["labels"], truth, strict=True))
    return float(wrong / len(truth))


def train_on_cluster(folder: Path) -> dict[str, Any]:
    """The same job on a Dask cluster of two worker processes, without the service."""
    request = folder / "job.json"
    request.write_text(json.dumps(JOB))
    command = [*EDGEWISE, "train", str(request), "--out", str(folder / "cluster.edgewise"), "--workers", "2"]
    command += ["--data-root", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"training on the cluster failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Run the tour. Exit code 0 only if both trainings gave one model."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="edgewise-demo-") as name:
        folder = Path(name)
        say.print("[bold]1. Real data[/]: 1,797 handwritten digits as Parquet, a quarter for testing")
        test = write_digits(folder)
        say.print("[bold]2. The embedded service[/]")
        with service(folder) as client:
            say.print("[bold]3. A training job over HTTP[/]: AdaBoost.MH, Hamming trees of 9 leaves, 300 rounds")
            accepted = client.post("/v1/jobs", json=JOB).raise_for_status().json()
            job = follow(client, accepted["id"])
            if job["status"] != "succeeded":
                raise SystemExit(f"the job {job['status']}: {job['reason']}")
            say.print(f"   bound holds: {job['answer']['bound_holds']}, loss {job['answer']['loss']:.2e}")
            say.print("[bold]4. Prediction over HTTP[/]")
            say.print(f"   test error {predict(client, test):.4f} on {len(next(iter(test.values())))} rows")
            single = job["answer"]["model_sha256"]
        say.print("[bold]5. The same job on a Dask cluster of 2 workers[/]")
        double = train_on_cluster(folder)["model_sha256"]
        say.print(f"   in one process  {single}\n   on two workers  {double}", soft_wrap=True)
    if single != double:
        raise SystemExit("the two models differ: this is a bug, please report it")
    say.print(f"[bold green]One model, whatever the cluster.[/] ({time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    main()
