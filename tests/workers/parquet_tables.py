"""Parquet files, plans and jobs for the tests of reading and training."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from boost_core.catalogue import resolve_config
from boost_core.config import TrainingConfig
from boost_core.model import Model
from tests.builders import Table
from workers.assignment import assign
from workers.data_plan import DataPlan, DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import MemberOutcome, NoProgress, TrainingJob, TrainingOutcome
from workers.member import run_member
from workers.thread_group import ThreadGroup

LABEL = "label"
Columns = dict[str, Any]


def write(path: Path, columns: Columns | pa.Table, row_group_size: int | None = None) -> str:
    """A Parquet file of these columns; its path as a plan wants it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, row_group_size=row_group_size)
    return str(path)


def write_row_groups(path: Path, groups: Iterable[pa.Table]) -> str:
    """A Parquet file with exactly these row groups, also empty ones."""
    groups = list(groups)
    with pq.ParquetWriter(path, groups[0].schema) as writer:
        for group in groups:
            writer.write_table(group)
    return str(path)


def columns_of(table: Table, dtype: str = "float64") -> Columns:
    """Columns f0, f1, ... and the label, as a user's file has them; NaN stays NaN."""
    features = {f"f{place}": pa.array(column.astype(dtype)) for place, column in enumerate(table.X.T)}
    return features | {LABEL: pa.array(table.labels)}


def split_over_files(folder: Path, columns: Columns, sizes: Sequence[int], row_group_size: int) -> tuple[str, ...]:
    """Consecutive rows in files named so that they sort in order."""
    table, start, paths = pa.table(columns), 0, []
    for number, size in enumerate(sizes):
        paths.append(write(folder / f"{number:03}.parquet", table.slice(start, size), row_group_size))
        start += size
    return tuple(paths)


def plan_of(train: str | Sequence[str], valid: str | Sequence[str] | None = None, **request: Any) -> DataPlan:
    """The plan of some files, label column `label`."""
    given: dict[str, Any] = {"label": LABEL} | request
    return plan_data(DataRequest(_paths(train), None if valid is None else _paths(valid), **given))


def _paths(paths: str | Sequence[str]) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)


def small_config(rounds: int = 5, max_leaves: int = 4, **changes: Any) -> TrainingConfig:
    tree = {"kind": "hamming_tree", "max_leaves": max_leaves}
    return resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": tree}, "rounds": rounds} | changes)


def job_of(plan: DataPlan, config: TrainingConfig | None = None, threads: int = 1) -> TrainingJob:
    return TrainingJob("job", 1, plan, config or small_config(), threads)


def train_plan(plan: DataPlan, config: TrainingConfig | None = None) -> TrainingOutcome:
    """Train in this process, with nobody following."""
    return train_in_process(job_of(plan, config), NoProgress())


def train_table(folder: Path, table: Table, config: TrainingConfig | None = None) -> Model:
    """The model of a table, by way of a Parquet file in `folder`."""
    return train_plan(plan_of(write(folder / "train.parquet", columns_of(table))), config).model


def train_on_threads(
    job: TrainingJob, size: int, shuffle_seed: int | None = None, idle: Sequence[int] = ()
) -> list[MemberOutcome]:
    """Every member's outcome, by rank; the members are threads of this process."""
    assignments = assign(job, [1] * size, shuffle_seed, idle)
    return ThreadGroup(size).run(lambda end: run_member(assignments[end.rank], end, NoProgress()))


def read_all(paths: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
    """Columns of whole files by the plainest way, float64 [n_columns, n_rows], missing as NaN."""
    tables = [pq.read_table(path) for path in paths]
    return np.array([[_number(v) for t in tables for v in t[name].to_pylist()] for name in names], np.float64)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
