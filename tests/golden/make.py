"""Makes the golden model file of the current format: `python -m tests.golden.make`.

Run it when the format version changes (the file of an older version stays) or when the engine is meant to give other
models. It prints what tests/workers/test_golden_model.py fixes. The data come from integer arithmetic alone, so any
machine makes the same.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from boost_core.catalogue import resolve_config
from boost_core.model import FORMAT_VERSION, Model
from tests.workers.parquet_tables import plan_of, train_plan, write
from workers.model_file import write_model
from workers.scoring import predict_table

GOLDEN = Path(__file__).parent / f"model_v{FORMAT_VERSION}.edgewise"
CLASSES = ("ash", "birch", "cedar")
N_ROWS = 400
N_SHOWN = 12  # rows whose predictions are fixed


def hashed(seed: int) -> np.ndarray:
    """A column of integers in 0..65535 that look random."""
    rows = np.arange(N_ROWS, dtype=np.uint64)
    mixed = (rows * np.uint64(2654435761) + np.uint64(seed)) * np.uint64(6364136223846793005)
    return ((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(32)).astype(np.int64) & 0xFFFF


def golden_table() -> pa.Table:
    """Exact and crowded thresholds, missing values, a boolean; three classes of text that depend on them."""
    girth, height, noise = hashed(1) % 9, hashed(2) - 30_000, hashed(3)
    evergreen = hashed(4) % 3 == 0
    signal = 3 * girth + height // 4096 + 8 * evergreen + noise % 5
    labels = np.searchsorted([10, 17], signal)
    return pa.table(
        {
            "girth": pa.array(girth, mask=hashed(5) % 11 == 0),
            "height": pa.array(height / 256.0, mask=hashed(6) % 13 == 0),
            "evergreen": pa.array(evergreen),
            "label": pa.array([CLASSES[label] for label in labels]),
        }
    )


def train_golden(folder: Path) -> Model:
    """The golden model, trained anew."""
    tree = {"kind": "hamming_tree", "max_leaves": 5}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": tree}, "rounds": 10, "max_bins": 64})
    return train_plan(plan_of(write(folder / "golden.parquet", golden_table())), config).model


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = train_golden(Path(folder))
        print(f"SHA256 = {json.dumps(write_model(GOLDEN, model))}")
        found = predict_table(model, [str(Path(folder) / "golden.parquet")])
        print(f"LABELS = {json.dumps(found.labels[:N_SHOWN])}")
        print(f"N_WRONG = {round((found.error or 0.0) * N_ROWS)}")


if __name__ == "__main__":
    main()
