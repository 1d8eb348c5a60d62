"""Members that wait in a round until the test has looked at them. Imported by the worker processes, by name."""

import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.placed_faults import Place, PlacedFault
from boost_core.collective import Collective
from workers.job import Assignment, MemberOutcome, Progress
from workers.member import run_member

HELD_ROUND = 3
MANY = 64  # threads of Arrow's pool for computing, if anybody used it


def gate_of(assignment: Assignment) -> Path:
    """The pipe at which a member waits until its other end is opened, and closed."""
    job = assignment.job
    assert job.checkpoints is not None
    return Path(job.checkpoints.folder) / f"{job.job_id}.{assignment.rank}"


def held(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    def wait(_: Any) -> None:
        gate_of(assignment).read_bytes()

    placed: Any = PlacedFault(collective, Place("begin_round", 1, HELD_ROUND), wait)
    return run_member(assignment, placed, progress)


def prepare() -> None:
    """Before any job: one thread of Arrow's may wait for disks, so that any that computes would be one too many."""
    pa.set_io_thread_count(1)
    pa.set_cpu_count(MANY)


def threads() -> dict[str, Any]:
    """This process's threads: helpers of teams, all of Python's, those that Python knows nothing of."""
    python = threading.enumerate()
    layer = sys.modules.get("numba.np.ufunc.parallel")
    return {
        "team": sum(thread.name == "edgewise-team" for thread in python),
        "native": sum(1 for _ in Path("/proc/self/task").iterdir()) - len(python),
        "numba": bool(layer and layer._is_initialized),
    }
