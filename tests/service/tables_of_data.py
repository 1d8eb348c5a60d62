"""Small generated Parquet files for the service's tests."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES = ("ash", "birch", "cedar")
FEATURES = ("height", "girth", "leaf")


def write_trees(path: Path, n_rows: int = 90, seed: int = 0) -> Path:
    """Three overlapping classes over three numeric features, one value in twenty missing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n_rows)
    labels[:3] = (0, 1, 2)
    columns: dict[str, pa.Array] = {}
    for index, name in enumerate(FEATURES):
        values = np.round(labels * (index + 1) + rng.normal(0, 1.5, n_rows), 2)
        columns[name] = pa.array(values, mask=rng.random(n_rows) < 0.05)
    columns["kind"] = pa.array([CLASSES[label] for label in labels])
    return write(path, columns)


def write(path: Path, columns: dict[str, pa.Array]) -> Path:
    """A Parquet file of these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def request(**changes: object) -> dict[str, object]:
    """A valid training request on trees.parquet, with top-level keys changed."""
    body: dict[str, object] = {
        "name": "trees",
        "data": {"train": "trees.parquet", "label": "kind"},
        "algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 4}},
        "rounds": 5,
        "resources": {"workers": 0, "threads": 1},
    }
    return body | changes
