"""The data sets as peers take them: matrices in memory and class numbers."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

SETS = ("letter", "pendigits", "optdigits", "satimage", "usps", "mnist", "shuttle", "connect4", "kddcup99")


@dataclass(frozen=True)
class Rows:
    """Features [n, d] as float32 (float64 where that is not exact), rows one after another; class numbers [n]."""

    features: NDArray[Any]
    classes: NDArray[np.int64]


def paths_of(data: Path, name: str) -> tuple[Path, Path]:
    """A set's training and test file."""
    return data / f"{name}.train.parquet", data / f"{name}.test.parquet"


def load(data: Path, name: str) -> tuple[Rows, Rows, int]:
    """Training rows, test rows, number of classes; codes of categories stay the numbers that they are."""
    return load_pair(*paths_of(data, name))


def load_pair(train_path: Path, test_path: Path) -> tuple[Rows, Rows, int]:
    """The same of two files."""
    train, test = pq.read_table(train_path), pq.read_table(test_path)
    labels = np.unique(_column(train, "label"))
    return _rows(train, labels), _rows(test, labels), labels.shape[0]


def _rows(table: Any, labels: NDArray[Any]) -> Rows:
    columns = [_column(table, name) for name in table.column_names if name != "label"]
    kind = np.result_type(np.float32, *(column.dtype for column in columns))
    features = np.ascontiguousarray(np.stack(columns, axis=1), dtype=kind)
    found = _column(table, "label")
    classes = np.searchsorted(labels, found)
    known = labels[np.minimum(classes, labels.shape[0] - 1)] == found
    return Rows(features, np.where(known, classes, -1))  # a class that training lacks is answered wrongly


def _column(table: Any, name: str) -> NDArray[Any]:
    return np.asarray(table[name].to_numpy())


def digest_of(data: Path, name: str) -> str:
    """Names the content of a set's files."""
    digest = hashlib.sha256()
    for path in paths_of(data, name):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
