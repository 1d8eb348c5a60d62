"""Times how a member comes to its rows, beside what pyarrow alone takes to decode the same files.

    python -m benchmarks.reading [--threads 2] [--repeats 5] [--json]

A member reads, agrees on thresholds, bins, and takes the fingerprint of its rows; pyarrow decodes the same columns of
the same files, row group by row group, and drops them. Both have the same number of threads and take turns in one
process, so that a busy machine slows both. Files are in the page cache. Times are medians.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone
from boost_core.team import Team
from workers.assignment import assign
from workers.data_plan import DataPlan, DataRequest, plan_data
from workers.job import TrainingJob
from workers.loading import Loader
from workers.shelf import Shelf


@dataclass(frozen=True)
class Case:
    """A table: values drawn from so many (0: all different), as a type, in row groups of so many rows."""

    name: str
    n_rows: int
    n_features: int
    n_values: int
    type_: str
    group_rows: int
    missing: float = 0.0


CASES = [
    Case("doubles, all different", 1_000_000, 20, 0, "float64", 125_000),
    Case("doubles, one row group", 1_000_000, 20, 0, "float64", 1_000_000),
    Case("floats, a tenth missing", 1_000_000, 20, 0, "float32", 125_000, missing=0.1),
    Case("integers below 16", 1_000_000, 16, 16, "uint8", 125_000),
    Case("integers below 10,000", 1_000_000, 20, 10_000, "int32", 125_000),
    Case("images", 60_000, 784, 256, "uint8", 60_000),
]


def write_case(case: Case, folder: Path) -> str:
    """The case's file; snappy and dictionaries as pyarrow writes them by default."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for place in range(case.n_features):
        if case.n_values:
            values = rng.integers(0, case.n_values, case.n_rows).astype(case.type_)
        else:
            values = rng.standard_normal(case.n_rows).astype(case.type_)
        mask = rng.random(case.n_rows) < case.missing if case.missing else None
        columns[f"f{place}"] = pa.array(values, mask=mask)
    columns["label"] = rng.integers(0, 8, case.n_rows)
    path = folder / "case.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=case.group_rows)
    return str(path)


def decode(plan: DataPlan) -> None:
    """What pyarrow alone does: all columns in use, a row group at a time."""
    columns = [*(feature.name for feature in plan.features), str(plan.label)]
    for file in plan.train.files:
        with pq.ParquetFile(file.path) as parquet:
            for group in range(len(file.row_groups)):
                parquet.read_row_group(group, columns=columns)


class Phases:
    """Seconds by phase, as a member's clock has them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase, self._since = "read", time.perf_counter()

    def enter(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now


def load(job: TrainingJob, threads: int) -> dict[str, float]:
    """What a member does before it trains; seconds by phase."""
    phases = Phases()
    [assignment] = assign(job, [threads])
    with Team(threads) as team:
        Loader(assignment, Alone(), team, phases.enter).load(Shelf())
    phases.enter("")
    return phases.seconds


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def time_case(case: Case, threads: int, repeats: int) -> dict[str, Any]:
    """Median seconds of both, and how a member's divide."""
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_data(DataRequest((write_case(case, Path(folder)),), None, "label"))
        job = TrainingJob("benchmark", 1, plan, resolve_config({"algorithm": {"name": "adaboost_mh"}}), threads)
        decode(plan)
        load(job, threads)  # files become cached, kernels compiled
        alone, whole, phases = [], [], []
        for _ in range(repeats):
            alone.append(timed(lambda: decode(plan)))
            started = time.perf_counter()
            phases.append(load(job, threads))
            whole.append(time.perf_counter() - started)
    n_cells = case.n_rows * case.n_features
    seconds = {"pyarrow": statistics.median(alone), "member": statistics.median(whole)}
    return {
        "case": case.name,
        "shape": [case.n_rows, case.n_features],
        "seconds": seconds | {name: statistics.median(each[name] for each in phases) for name in ("read", "bin")},
        "cells_a_second": {name: n_cells / each for name, each in seconds.items()},
        "share_of_pyarrow": seconds["pyarrow"] / seconds["member"],
    }


def show(results: list[dict[str, Any]], threads: int) -> None:
    """A table for people."""
    title = f"milliseconds to read and bin, {threads} threads\n{machine_line()}"
    table = Table(
        "table", "rows x features", "pyarrow alone", "member", "of it reading", "binning", "rate", title=title
    )
    for result in results:
        times = [f"{result['seconds'][name] * 1e3:.0f}" for name in ("pyarrow", "member", "read", "bin")]
        n_rows, n_features = result["shape"]
        table.add_row(result["case"], f"{n_rows:,} x {n_features}", *times, f"{result['share_of_pyarrow']:.2f}")
    Console().print(table)


def main() -> None:
    """Time all cases, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", nargs="*", default=None, help="names of cases; all by default")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    pa.set_cpu_count(arguments.threads)
    cases = [case for case in CASES if arguments.case is None or case.name in arguments.case]
    results = [time_case(case, arguments.threads, arguments.repeats) for case in cases]
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "reading": results}, indent=2))
    else:
        show(results, arguments.threads)


if __name__ == "__main__":
    main()
