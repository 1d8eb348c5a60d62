"""The handwritten digits that scikit-learn ships, as two Parquet files: `python -m demo.digits FOLDER`."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

TEST_SHARE = 4  # every fourth row is for testing


def write_digits(folder: Path) -> dict[str, list[float | int]]:
    """Write digits.train.parquet and digits.test.parquet; returns the test rows as columns."""
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    is_test = np.arange(len(labels)) % TEST_SHARE == 0
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    for part, rows in (("train", ~is_test), ("test", is_test)):
        columns = {name: images[rows, place].astype(np.uint8) for place, name in enumerate(names)}
        columns["label"] = labels[rows].astype(np.int64)
        pq.write_table(pa.table(columns), folder / f"digits.{part}.parquet")
    test: dict[str, list[float | int]] = pq.read_table(folder / "digits.test.parquet").to_pydict()
    return test


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m demo.digits FOLDER")
    write_digits(Path(sys.argv[1]))
