"""Random kills while jobs of mixed priorities run: every job must succeed with the model of an undisturbed training.

    python -m benchmarks.soak [--minutes 10] [--jobs 50] [--workers 3] [--pause 10] [--seed 0] [--json]

Starts `edgewise serve` with a cluster of its own and keeps so many jobs submitted. About every `pause` seconds a
worker process is killed, every sixth time the server with all its workers, which is then started again on the same
state. After the minutes nobody is killed any more, and the jobs that are left must end. Exit status 1 if one failed or
has another model.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from service.requests import parse, prepare
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from workers.model_file import model_sha256

KINDS = (
    {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 4}},
    {"name": "adaboost_mm", "weak_learner": {"kind": "tree", "max_leaves": 6}},
    {"name": "samme", "weak_learner": {"kind": "tree", "max_leaves": 4}},
)
ROUNDS = (40, 400)
WORKERS: tuple[str | int, ...] = ("auto", "auto", 1, 1, 2, 3, 0)
END_SECONDS = 600.0  # for the jobs that are left when the killing is over
SERVER_EVERY = 6  # kills


class Served:
    """A server process with its cluster, that can be killed and started again."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--json"]
        self._command += ["--data-root", str(folder), "--state-dir", str(folder / "state")]
        self._command += ["--cluster", f"local:{workers}"]
        self._log = folder / "server.log"
        self.start()

    def start(self) -> None:
        """Start it; where it listens is told by its first line."""
        with self._log.open("ab") as log:
            settings = {"EDGEWISE_CHECKPOINT_SECONDS": "1", "EDGEWISE_DEADLINE_SECONDS": "10"}
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | settings
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: {self._log.read_text()[-2000:]}")
        self.client = httpx.Client(base_url=json.loads(line)["url"], timeout=60)

    def kill(self) -> None:
        """Server and workers at once, as a power cut would."""
        family = [psutil.Process(self._process.pid), *self._children()]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(30)
        psutil.wait_procs(family[1:], 30)

    def kill_worker(self, dice: random.Random) -> bool:
        """One of the worker processes; whether there was one."""
        workers = [child for child in self._children() if _is_worker(child)]
        if not workers:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            dice.choice(workers).kill()
        return True

    def _children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self._process.pid).children(recursive=True))
        return []


def _is_worker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return "spawn_main" in " ".join(process.cmdline())
    return False


class Soak:
    """The jobs of one soak, and what became of them."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self._dice = random.Random(arguments.seed)
        self._arguments = arguments
        write_table(folder / "small.parquet")
        self._folder = folder
        self._expected: dict[str, str] = {}
        self._open: dict[str, str] = {}  # job id -> its request
        self.kills: Counter[str] = Counter()
        self.ended: list[dict[str, Any]] = []
        self._server = Served(folder, arguments.workers)

    def run(self) -> None:
        """Kill until the time is over, then let the rest end."""
        until = time.monotonic() + 60 * self._arguments.minutes
        next_kill = time.monotonic() + self._arguments.pause
        while time.monotonic() < until:
            while len(self._open) < self._arguments.jobs:
                self._submit()
            self._collect()
            if time.monotonic() >= next_kill:
                self._kill()
                next_kill = time.monotonic() + self._dice.uniform(0.5, 1.5) * self._arguments.pause
            time.sleep(0.5)
        patience = time.monotonic() + END_SECONDS
        while self._open and time.monotonic() < patience:
            self._collect()
            time.sleep(0.5)
        self.ended += [{"status": "never ended", "priority": 0, "run": 0, "right": False} for _ in self._open]

    def close(self) -> None:
        """Nothing is left running, however the soak ended."""
        self._server.kill()

    def _submit(self) -> None:
        dice = self._dice
        body = {
            "data": {"train": "small.parquet", "label": "label"},
            "algorithm": dice.choice(KINDS),
            "rounds": dice.choice(ROUNDS),
            "priority": dice.randint(-2, 2),
            "resources": {"workers": dice.choice(WORKERS), "threads": 1},
        }
        answer = self._server.client.post("/v1/jobs", json=body).raise_for_status()
        self._open[answer.json()["id"]] = json.dumps({key: body[key] for key in ("data", "algorithm", "rounds")})

    def _collect(self) -> None:
        for job_id, request in list(self._open.items()):
            job = self._server.client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
            if job["status"] not in {"succeeded", "failed", "cancelled"}:
                continue
            del self._open[job_id]
            right = job["status"] == "succeeded" and job["answer"]["model_sha256"] == self._undisturbed(request)
            self.ended.append({**{key: job[key] for key in ("status", "reason", "priority", "run")}, "right": right})

    def _undisturbed(self, request: str) -> str:
        if request not in self._expected:
            plan, config = prepare(parse(json.loads(request)), self._folder)
            outcome = train_in_process(TrainingJob("soak", 1, plan, config, 1), NoProgress())
            self._expected[request] = model_sha256(outcome.model)
        return self._expected[request]

    def _kill(self) -> None:
        if (sum(self.kills.values()) + 1) % SERVER_EVERY == 0:
            self._server.kill()
            self._server.start()
            self.kills["server with all workers"] += 1
        elif self._server.kill_worker(self._dice):
            self.kills["worker"] += 1


def write_table(path: Path) -> None:
    """A table that trains in some milliseconds a round."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 3_000)
    columns = {f"f{j}": labels * (j % 3) + rng.normal(0, 2, labels.shape[0]) for j in range(8)}
    pq.write_table(pa.table({**columns, "label": labels}), path, row_group_size=1_000)


def summary(soak: Soak) -> dict[str, Any]:
    """Figures of a soak that is over."""
    return {
        "jobs": len(soak.ended),
        "succeeded": sum(job["status"] == "succeeded" for job in soak.ended),
        "right_models": sum(job["right"] for job in soak.ended),
        "more_than_one_run": sum(job["run"] > 1 for job in soak.ended),
        "kills": dict(soak.kills),
        "wrong": [job for job in soak.ended if not job["right"]],
    }


def show(soak: Soak) -> None:
    """Print a line for each priority."""
    table = Table("priority", "jobs", "succeeded", "right model", "runs", "most runs")
    for priority in sorted({job["priority"] for job in soak.ended}, reverse=True):
        jobs = [job for job in soak.ended if job["priority"] == priority]
        runs = [job["run"] for job in jobs]
        counts = [len(jobs), sum(job["status"] == "succeeded" for job in jobs), sum(job["right"] for job in jobs)]
        table.add_row(str(priority), *map(str, [*counts, sum(runs), max(runs)]))
    console = Console(width=120)
    console.print(machine_line())
    console.print(table)
    console.print(", ".join(f"{count} kills of a {what}" for what, count in soak.kills.items()) or "nobody was killed")


def main() -> None:
    """Soak, print, and exit with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pause", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))  # so that the server is ended too
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), arguments)
        with contextlib.closing(soak):
            soak.run()
    found = summary(soak)
    if not arguments.json:
        show(soak)
    print(json.dumps({"machine": describe_machine(), "soak": found}))
    sys.exit(0 if found["right_models"] == found["jobs"] else 1)


if __name__ == "__main__":
    main()
