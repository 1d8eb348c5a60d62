"""Measures the memory of a member against what its rows need, and against the estimate that jobs are placed by.

    python -m benchmarks.memory [--cases NAME ...] [--scale 1.0] [--rounds 3] [--threads 2] [--json]

A case is a table and how it is trained, each in a process of its own, so that the greatest resident size is its own.
rows MB = a byte a cell, 4 a score (8 an entry of the lists where scores are sparse) and 4 a label; ratio = (peak - 300
MB) / rows MB, of which 1.3 is the bar. estimate = workers/memory_need.py on one member. Tables are written a row group
at a time and removed again; --scale makes them smaller.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from boost_core.catalogue import resolve_config
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from workers.memory_need import estimate, facts_of

ROW_GROUP = 131_072
FREE_BYTES = 300_000_000  # of the process itself, in the bar
BAR = 1.3


class Case(NamedTuple):
    """A table's shape and how it is trained."""

    name: str
    n_rows: int
    n_features: int
    n_classes: int
    algorithm: dict[str, Any]


TREES: dict[str, Any] = {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 8}}
LABELS: dict[str, Any] = {"name": "multiclass_adaboost", "weak_learner": {"kind": "tree", "max_leaves": 8}}
CASES = [
    Case("none", 1_000, 4, 8, TREES),
    Case("5,000,000 x 50 x 8", 5_000_000, 50, 8, TREES),
    Case(
        "10,000,000 x 30 x 8", 10_000_000, 30, 8, {**TREES, "weak_learner": {"kind": "hamming_tree", "max_leaves": 16}}
    ),
    Case("1,000,000 x 50 x 50", 1_000_000, 50, 50, TREES),
    Case("1,000,000 x 50 x 1,000, lists", 1_000_000, 50, 1_000, LABELS),
    Case("the same, lists of samme", 1_000_000, 50, 1_000, {**LABELS, "name": "samme"}),
    Case("the same, lists of examples", 1_000_000, 50, 1_000, {**LABELS, "sampling": "resample"}),
]


def write_table(path: Path, case: Case) -> None:
    """Rows around a centre for each class, with noise, a row group at a time."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(case.n_classes, case.n_features)).astype(np.float32)
    names = [f"f{j}" for j in range(case.n_features)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("label", pa.int32())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, case.n_rows, ROW_GROUP):
            n = min(ROW_GROUP, case.n_rows - start)
            labels = ((np.arange(start, start + n) * 7919) % case.n_classes).astype(np.int32)
            values = centres[labels] + rng.standard_normal((n, case.n_features), np.float32)
            columns = [pa.array(np.ascontiguousarray(values[:, j])) for j in range(case.n_features)]
            writer.write_table(pa.table([*columns, pa.array(labels)], schema=schema))


def run_case(path: Path, case: Case, rounds: int, threads: int) -> dict[str, Any]:
    """Train once, in this process."""
    config = resolve_config({"algorithm": case.algorithm, "rounds": rounds})
    plan = plan_data(DataRequest((str(path),), None, "label"))
    outcome = train_in_process(TrainingJob("benchmark", 1, plan, config, threads), NoProgress())
    need = estimate(facts_of(plan, config))
    n_rows, sparse = plan.n_train, "lists" in case.name
    scores = n_rows * (4 + 8 * rounds) if sparse else 4 * n_rows * case.n_classes
    rows = n_rows * case.n_features + scores + 4 * n_rows
    return {
        "case": case.name,
        "seconds": outcome.seconds["total"],
        "peak_mb": outcome.peak_memory_bytes / 1e6,
        "rows_mb": rows / 1e6,
        "ratio": (outcome.peak_memory_bytes - FREE_BYTES) / rows,
        "estimate_mb": need.on(1) / 1e6,
    }


def run_apart(case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the table and train in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        smaller = case._replace(n_rows=max(1000, int(case.n_rows * arguments.scale)))
        # Not here: a process that this one starts would begin with this one's greatest size as its own.
        writer = multiprocessing.get_context("spawn").Process(target=write_table, args=(path, smaller))
        writer.start()
        writer.join()
        command = [sys.executable, "-m", "benchmarks.memory", "--case", str(path), case.name]
        options = ["--rounds", str(arguments.rounds), "--threads", str(arguments.threads)]
        found = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("case", "seconds", "peak MB", "rows MB", f"ratio (bar {BAR})", "estimate MB")
    for row in rows:
        figures = [f"{row[name]:.0f}" for name in ("seconds", "peak_mb", "rows_mb")]
        table.add_row(row["case"], *figures, f"{row['ratio']:.2f}", f"{row['estimate_mb']:.0f}")
    console = Console(width=120)
    console.print(machine_line())
    console.print(table)


def main() -> None:
    """Run the chosen cases, or one of them for the process that does."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        [case] = [case for case in CASES if case.name == arguments.case[1]]
        print(json.dumps(run_case(Path(arguments.case[0]), case, arguments.rounds, arguments.threads)))
        return
    rows = [run_apart(case, arguments) for case in CASES if case.name in arguments.cases]
    if not arguments.json:
        show(rows)
    print(json.dumps({"machine": describe_machine(), "memory": rows}))


if __name__ == "__main__":
    main()
