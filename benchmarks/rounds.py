"""Times training rounds in one process.

    python -m benchmarks.rounds [--data FOLDER] [--threads 2] [--json]

With --data, on letter.train.parquet and pendigits.train.parquet of FOLDER; else on synthetic tables of their shapes.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import describe_machine
from boost_core.catalogue import resolve_config
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob

# name, rows, features, distinct values, classes, leaves, rounds
CASES = [("letter", 16_000, 16, 16, 26, 21, 300), ("pendigits", 7_494, 16, 101, 10, 9, 400)]


def write_synthetic(path: Path, case: tuple[str, int, int, int, int, int, int]) -> None:
    """A learnable table of the case's shape."""
    _, n_rows, n_features, n_values, n_classes, *_ = case
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    centres = rng.integers(0, n_values, (n_classes, n_features))
    values = np.clip(centres[labels] + rng.normal(0, n_values / 6, (n_rows, n_features)), 0, n_values - 1)
    columns = {f"f{j}": values[:, j].astype(np.uint8) for j in range(n_features)}
    pq.write_table(pa.table({**columns, "label": labels}), path)


def time_case(path: Path, leaves: int, rounds: int, threads: int) -> dict[str, float]:
    """Seconds of a training run after compilation."""
    weak_learner = {"kind": "hamming_tree", "max_leaves": leaves}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": rounds})
    plan = plan_data(DataRequest((str(path),), None, "label"))
    outcome = train_in_process(TrainingJob("benchmark", 1, plan, config, threads), NoProgress())
    seconds = [each.seconds for each in outcome.rounds]
    return {
        "mean_round_ms": statistics.mean(seconds) * 1e3,
        "median_round_ms": statistics.median(seconds) * 1e3,
        "train_seconds": outcome.seconds["train"],
        "compile_seconds": outcome.seconds["compile"],
    }


def main() -> None:
    """Time every case and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            name = case[0]
            path = (
                Path(folder) / f"{name}.parquet" if arguments.data is None else arguments.data / f"{name}.train.parquet"
            )
            if arguments.data is None:
                write_synthetic(path, case)
            results[name] = time_case(path, case[5], case[6], arguments.threads)
            if not arguments.json:
                mean, median = results[name]["mean_round_ms"], results[name]["median_round_ms"]
                print(f"{name:10} mean {mean:.2f} ms, median {median:.2f} ms a round")
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "rounds": results}))


if __name__ == "__main__":
    main()
