"""Times single-label algorithms against the number of classes: what many classes cost.

    python -m benchmarks.classes [--rows 200000] [--features 20] [--rounds 30] [--threads 2] [--classes 100,1000,10000]
                                 [--cases NAME ...] [--json]

AdaBoost.M1 goes on only while trees of 8 leaves answer more than half of the weight right. So its table has most rows
in four classes, and its steps are short.

Every run is a process of its own, so that its greatest resident size is its own. Seconds are those of training, after
compilation. The last columns say how time and memory compare with those of the fewest classes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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

CASES: dict[str, dict[str, Any]] = {
    "multiclass_adaboost": {"name": "multiclass_adaboost"},
    "adaboost_mm": {"name": "adaboost_mm"},
    "resample": {"name": "multiclass_adaboost", "sampling": "resample"},
    "os_exponential": {"name": "os_exponential"},
    "samme": {"name": "samme"},
    "adaboost_m1": {"name": "adaboost_m1", "shrinkage": 0.02},
}
FEW = ("adaboost_m1",)  # whose table has most rows in FEW_CLASSES
FEW_CLASSES, FEW_SHARE = 4, 0.9
LEAVES = 8


def write_table(path: Path, n_rows: int, n_features: int, n_classes: int, few: bool) -> None:
    """Rows around a centre for each class, with noise; every class has rows, with `few` a few have most of them."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, n_classes, n_rows - n_classes)
    if few:
        drawn = np.where(rng.random(drawn.shape[0]) < FEW_SHARE, drawn % FEW_CLASSES, drawn)
    labels = np.concatenate([np.arange(n_classes), drawn])
    rng.shuffle(labels)
    centres = rng.normal(size=(n_classes, n_features))
    values = centres[labels] + 0.5 * rng.normal(size=(n_rows, n_features))
    columns = {f"f{j}": values[:, j].astype(np.float32) for j in range(n_features)}
    pq.write_table(pa.table({**columns, "label": labels}), path)


def run_case(path: Path, case: str, rounds: int, threads: int) -> dict[str, Any]:
    """Train once, in this process."""
    weak_learner = {"kind": "tree", "max_leaves": LEAVES}
    config = resolve_config({"algorithm": {**CASES[case], "weak_learner": weak_learner}, "rounds": rounds})
    plan = plan_data(DataRequest((str(path),), None, "label"))
    outcome = train_in_process(TrainingJob("benchmark", 1, plan, config, threads), NoProgress())
    return {
        "rounds": len(outcome.rounds),
        "train_seconds": outcome.seconds["train"],
        "compile_seconds": outcome.seconds["compile"],
        "total_seconds": outcome.seconds["total"],
        "peak_memory_mb": outcome.peak_memory_bytes / 1e6,
    }


def run_apart(path: Path, case: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same in a new process."""
    command = [sys.executable, "-m", "benchmarks.classes", "--case", str(path), case]
    options = ["--rounds", str(arguments.rounds), "--threads", str(arguments.threads)]
    found = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


def run_all(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """A row of figures for every case and number of classes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        for n_classes in arguments.classes:
            for few in (False, True):
                cases = [case for case in arguments.cases if (case in FEW) == few]
                if cases:
                    write_table(path, arguments.rows, arguments.features, n_classes, few)
                rows += [{"case": case, "classes": n_classes, **run_apart(path, case, arguments)} for case in cases]
    first = {row["case"]: row for row in reversed(rows)}
    for row in rows:
        base = first[row["case"]]
        row["times_seconds"] = row["train_seconds"] / base["train_seconds"]
        row["times_memory"] = row["peak_memory_mb"] / base["peak_memory_mb"]
    return sorted(rows, key=lambda row: (row["case"], row["classes"]))


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("case", "classes", "rounds", "train s", "compile s", "peak MB", "x time", "x memory")
    for row in rows:
        figures = [f"{row[name]:.1f}" for name in ("train_seconds", "compile_seconds", "peak_memory_mb")]
        times = [f"{row[name]:.2f}" for name in ("times_seconds", "times_memory")]
        table.add_row(row["case"], f"{row['classes']:,}", str(row["rounds"]), *figures, *times)
    console = Console(width=120)
    console.print(machine_line())
    console.print(table)


def counts(text: str) -> list[int]:
    """Numbers between commas."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Run everything, or one case for the process that does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--classes", type=counts, default="100,1000,10000")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_case(Path(arguments.case[0]), arguments.case[1], arguments.rounds, arguments.threads)))
        return
    rows = run_all(arguments)
    if not arguments.json:
        show(rows)
    print(json.dumps({"machine": describe_machine(), "classes": rows}))


if __name__ == "__main__":
    main()
