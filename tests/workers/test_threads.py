"""Jobs that train at once in one process: no abort, the right models, and no more threads than they were given.

Kernels run in plain threads. Numba's own pools (of which the one that is always there, "workqueue", aborts the process
when two threads use it at once) are never started, so there is no threading layer to choose.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import boost_core
from tests.builders import make_table
from tests.workers.parquet_tables import columns_of, small_config, write

pytestmark = pytest.mark.alone

JOBS, THREADS = 4, 3

SCRIPT = """
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
import numba
import pyarrow as pa
from tests.workers.parquet_tables import plan_of, small_config
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from workers.model_file import model_sha256
from workers.reading import RangeReader

base = len(os.listdir("/proc/self/task"))
jobs, threads, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
plan = plan_of(path)
def train(number, progress):
    job = TrainingJob(str(number), 1, plan, small_config(), threads)
    return model_sha256(train_in_process(job, progress).model)

class Counts(NoProgress):
    # all jobs are in their first round at once when the threads are counted
    together = threading.Barrier(jobs)
    counts, teams, most = [], [], threading.Lock()
    def __init__(self): self.first = True
    def rounds_done(self, batch):
        if self.first:
            self.first = False
            self.together.wait(60)
            with self.most:
                self.counts.append(len(os.listdir("/proc/self/task")))
                self.teams.append(sum(thread.name == "edgewise-team" for thread in threading.enumerate()))
            self.together.wait(60)

pa.set_cpu_count(64)  # Arrow's computing threads, had they been started, would be seen
with RangeReader(plan.train, [(0, plan.n_train)]) as rows:
    rows.columns([feature.name for feature in plan.features])
    assert len(os.listdir("/proc/self/task")) == base  # nor are there any that read
alone = train("alone", NoProgress())
with ThreadPoolExecutor(jobs) as pool:
    found = list(pool.map(lambda number: train(number, Counts()), range(jobs)))
assert found == [alone] * jobs, (alone, found)
# Arrow's threads that wait for disks are as many for any number of jobs; those that compute are never started
assert jobs * threads <= max(Counts.counts) <= base + jobs * threads + pa.io_thread_count(), (base, Counts.counts)
assert Counts.teams == [jobs * (threads - 1)] * jobs, Counts.teams
try:
    print(numba.threading_layer())
except ValueError:
    print("no layer")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_jobs_at_once_with_only_the_unsafe_layer(tmp_path: Path) -> None:
    """Each job has its own thread and those of its team; neither Arrow nor Numba adds any."""
    path = write(tmp_path / "t.parquet", columns_of(make_table(300, 4, 4, seed=3)), 50)
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(JOBS), str(THREADS), path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "no layer"
    assert small_config().rounds > 1


def test_no_kernel_asks_for_numbas_threads() -> None:
    """`parallel=True`, `prange` or a threading layer would start Numba's pools."""
    found = []
    for folder in (Path(boost_core.__file__).parent, Path(boost_core.__file__).parents[1] / "workers"):
        for file in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                words = {getattr(node, "arg", None), getattr(node, "id", None), getattr(node, "attr", None)}
                if words & {"parallel", "prange", "guvectorize", "THREADING_LAYER"}:
                    found.append(f"{file.name}:{node.lineno}")  # type: ignore[attr-defined]
    assert found == []
