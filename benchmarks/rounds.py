"""Times training rounds in one process, and how fast the machine is meanwhile.

    python -m benchmarks.rounds [--data FOLDER] [--threads 2] [--repeats 1] [--json]

With --data, on letter.train.parquet and pendigits.train.parquet of FOLDER; else on synthetic tables of their shapes.

A shared machine does half as much in one minute as in another. So right before and after every training, the kernel's
twin in C (kernel_twin.c) makes root histograms of the table's shape, one on each thread at once; a round's length in
such histograms tells code from machine, its milliseconds alone do not.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.kernel import Case, Shape
from benchmarks.kernel_twin import Twin, compiler_line
from benchmarks.machine import describe_machine
from boost_core.catalogue import resolve_config
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob

# name, rows, features, distinct values, classes, leaves, rounds
CASES = [("letter", 16_000, 16, 16, 26, 21, 300), ("pendigits", 7_494, 16, 101, 10, 9, 400)]
BARS_MS = {"letter": 2.5, "pendigits": 0.8}  # of the mean round
HISTOGRAMS = 40


@dataclass(frozen=True)
class Run:
    """A training after compilation: its rounds, the whole of it, and the twin's root histogram right before and after
    (None: no compiler)."""

    mean_round_ms: float
    median_round_ms: float
    train_seconds: float
    compile_seconds: float
    twin_ms: float | None

    @property
    def in_histograms(self) -> float | None:
        """The mean round's length in the twin's root histograms."""
        return self.mean_round_ms / self.twin_ms if self.twin_ms is not None else None


def write_synthetic(path: Path, case: tuple[str, int, int, int, int, int, int]) -> None:
    """A learnable table of the case's shape."""
    _, n_rows, n_features, n_values, n_classes, *_ = case
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    centres = rng.integers(0, n_values, (n_classes, n_features))
    values = np.clip(centres[labels] + rng.normal(0, n_values / 6, (n_rows, n_features)), 0, n_values - 1)
    columns = {f"f{j}": values[:, j].astype(np.uint8) for j in range(n_features)}
    pq.write_table(pa.table({**columns, "label": labels}), path)


class Gauge:
    """Root histograms of a case's shape by the twin, one on each of `threads` at once."""

    def __init__(self, case: tuple[str, int, int, int, int, int, int], threads: int, folder: Path) -> None:
        _, n_rows, n_features, n_values, n_classes, *_ = case
        self._cases = [Case(Shape(n_rows, n_features, n_classes, n_values)) for _ in range(threads)]
        first = self._cases[0]
        self._twin = Twin(first.totals.shape[1], first.gains.values.shape[1], folder)

    def milliseconds(self) -> list[float]:
        """Of every histogram of one thread, which all threads begin together."""
        met, found = threading.Barrier(len(self._cases)), []

        def work(case: Case) -> None:
            for _ in range(HISTOGRAMS):
                met.wait()
                began = time.perf_counter()
                case.twin(self._twin)
                if case is self._cases[0]:
                    found.append((time.perf_counter() - began) * 1e3)

        helpers = [threading.Thread(target=work, args=(case,)) for case in self._cases[1:]]
        for helper in helpers:
            helper.start()
        work(self._cases[0])
        for helper in helpers:
            helper.join()
        return found


def time_case(path: Path, leaves: int, rounds: int, threads: int, gauge: Gauge | None) -> Run:
    """One training, between two looks at the machine."""
    weak_learner = {"kind": "hamming_tree", "max_leaves": leaves}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": rounds})
    plan = plan_data(DataRequest((str(path),), None, "label"))
    histograms = gauge.milliseconds() if gauge else []
    outcome = train_in_process(TrainingJob("benchmark", 1, plan, config, threads), NoProgress())
    histograms += gauge.milliseconds() if gauge else []
    seconds = [each.seconds for each in outcome.rounds]
    return Run(
        statistics.mean(seconds) * 1e3,
        statistics.median(seconds) * 1e3,
        outcome.seconds["train"],
        outcome.seconds["compile"],
        statistics.median(histograms) if histograms else None,
    )


def line(name: str, run: Run) -> str:
    """A run as it is printed."""
    bar = BARS_MS[name]
    told = f"{name:10} mean {run.mean_round_ms:.2f} ms, median {run.median_round_ms:.2f} ms a round"
    told += f" (bar {bar}: {'met' if run.mean_round_ms <= bar else 'missed'})"
    if run.twin_ms is None or run.in_histograms is None:
        return told
    return f"{told}; {run.in_histograms:.2f} root histograms in C of {run.twin_ms:.2f} ms on every thread"


def main() -> None:
    """Time every case and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results: dict[str, list[Run]] = {case[0]: [] for case in CASES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gauges = [Gauge(case, arguments.threads, folder) if compiler_line() else None for case in CASES]
        for _ in range(arguments.repeats):
            for case, gauge in zip(CASES, gauges, strict=True):
                path = (arguments.data or folder) / f"{case[0]}.train.parquet"
                if not path.exists() and arguments.data is None:
                    write_synthetic(path, case)
                run = time_case(path, case[5], case[6], arguments.threads, gauge)
                results[case[0]].append(run)
                if not arguments.json:
                    print(line(case[0], run), flush=True)
    if arguments.json:
        found = {
            name: [asdict(run) | {"in_histograms": run.in_histograms} for run in runs] for name, runs in results.items()
        }
        print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "rounds": found}))


if __name__ == "__main__":
    main()
