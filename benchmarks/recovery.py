"""How long a gang of three members takes to go on after it lost some.

    python -m benchmarks.recovery [--fault NAME ...] [--rows 1000000] [--deadline 10] [--repeats 1] [--json]

Rows x 50 features x 8 classes, 60 rounds, in round 41 of which the fault comes; three worker processes of one thread.
Seconds:
detection  from the fault until the driver knows that the gang is broken
recovery   from then on until every member of the next gang begins its first round; of these
           reading and replay of the lost rows, of the member that took longest, and
           the rest: who is left and what they hold, waiting for replacements, leases, connections, kernels from the
           disk. At most 5.
Every model is compared with that of an undisturbed training.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from distributed import Client
from rich.console import Console
from rich.table import Table

from benchmarks import recovery_members
from benchmarks.checkpoints import write_table
from benchmarks.gang import Case
from benchmarks.machine import describe_machine, machine_line
from boost_core.catalogue import resolve_config
from workers.cluster import connect
from workers.data_plan import DataPlan
from workers.errors import GangBroken
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import CheckpointSettings, NoProgress, TrainingJob, TrainingOutcome
from workers.model_file import model_sha256
from workers.recovery import Plan, Recovery

FAULTS = ("between_rounds", "in_a_reduction", "two_at_once", "all_at_once", "cut_off", "frozen")
N_WORKERS, ROUNDS, CHECKPOINT_SECONDS = 3, 60, 1.0
BAR_SECONDS = 5.0
AFTER = Recovery._after
Times = dict[tuple[int, str], dict[int, float]]  # by attempt and what happened: by rank, when


def train(job: TrainingJob, client: Client, fault: str, deadline: float) -> tuple[TrainingOutcome, float]:
    """With the fault; and when the driver noticed it."""
    noticed = []

    def after(self: Recovery, broken: GangBroken, *arguments: Any) -> Plan:
        noticed.append(broken.loss.noticed)
        return AFTER(self, broken, *arguments)

    settings = GangSettings(deadline_seconds=deadline, member=f"{recovery_members.__name__}:{fault}")
    with mock.patch.object(Recovery, "_after", after):
        outcome = train_on_gang(job, client, N_WORKERS, NoProgress(), settings)
    [once] = noticed
    return outcome, once


def times_of(path: Path) -> Times:
    """What the members left."""
    times: Times = defaultdict(dict)
    for line in path.read_text().splitlines():
        attempt, rank, what, when = line.split()
        times[int(attempt), what].setdefault(int(rank), float(when))
    return times


def parts(times: Times, noticed: float, seconds: dict[str, float]) -> dict[str, float]:
    """The figures of one recovery. seconds: the next gang's, by phase, of the member that took longest."""
    fault, begun = max(times[0, "fault"].values()), max(times[1, "begin"].values())
    own = max(times[1, "begin"][rank] - enter for rank, enter in times[1, "enter"].items())
    reading = seconds["read"] + seconds["bin"]
    replay = max(0.0, own - reading - seconds["compile"])
    recovery = begun - noticed
    return {
        "detection": noticed - fault,
        "recovery": recovery,
        "reading": reading,
        "replay": replay,
        "rest": recovery - reading - replay,
    }


def measure(plan: DataPlan, expected: str, fault: str, deadline: float) -> dict[str, Any]:
    """One training on a cluster of its own."""
    with tempfile.TemporaryDirectory() as folder, connect(f"local:{N_WORKERS}") as client:
        client.wait_for_workers(N_WORKERS, timeout=60)
        pids = client.run(os.getpid).values()
        job = job_of(plan, fault, CheckpointSettings(folder, CHECKPOINT_SECONDS))
        try:
            outcome, noticed = train(job, client, fault, deadline)
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        times = times_of(Path(folder) / f"{fault}.times")
    same = model_sha256(outcome.model) == expected
    return {"fault": fault, "members": outcome.workers, "same": same, **parts(times, noticed, outcome.seconds)}


def job_of(plan: DataPlan, name: str, checkpoints: CheckpointSettings | None = None) -> TrainingJob:
    """The training of this benchmark."""
    weak_learner = {"kind": "hamming_tree", "max_leaves": 21}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": ROUNDS})
    return TrainingJob(name, 1, plan, config, 1, checkpoints=checkpoints)


def show(results: list[dict[str, Any]], title: str) -> None:
    """A table for people."""
    names = ("detection", "recovery", "reading", "replay", "rest")
    table = Table("fault", "members after", *(f"{name} s" for name in names), "same model", title=title)
    for each in results:
        figures = (f"{each[name]:.2f}" for name in names)
        table.add_row(each["fault"], str(each["members"]), *figures, "yes" if each["same"] else "NO")
    Console(width=150).print(table)


def main() -> None:
    """Time all faults, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", nargs="*", default=FAULTS, choices=FAULTS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds that members wait for each other")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan = write_table(Case("rows", arguments.rows, 50, 256, 8, 21, 0), Path(folder) / "rows.parquet")
        began = time.perf_counter()
        expected = model_sha256(train_in_process(job_of(plan, "alone"), NoProgress()).model)
        alone = time.perf_counter() - began
        results = [
            measure(plan, expected, fault, arguments.deadline)
            for _ in range(arguments.repeats)
            for fault in arguments.fault
        ]
    if arguments.json:
        whole = {"machine": describe_machine(), "deadline": arguments.deadline, "bar": BAR_SECONDS, "results": results}
        print(json.dumps(whole))
    else:
        title = f"{arguments.rows:,} rows, deadline {arguments.deadline:g} s, one process {alone:.1f} s"
        show(results, f"{title}\n{machine_line()}")


if __name__ == "__main__":
    main()
