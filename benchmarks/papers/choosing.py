"""Cross-validation on the training rows: a weak learner's size and the number of rounds. Test rows are never read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.papers.training import errors_of_rounds
from benchmarks.papers.trials import Trial

Floats = NDArray[np.float64]
SMOOTHED = 51  # rounds over whose mean errors are compared: a single one is a draw


def choose(trial: Trial, data: Path, folds: int, threads: int) -> dict[str, Any]:
    """The setting and rounds of the least mean error over the folds, and what every setting came to."""
    assert trial.grid is not None
    tried = {}
    with folded(data / f"{trial.data}.train.parquet", folds) as pairs:
        for setting in trial.grid.settings:
            request = trial.request(trial.grid.rounds, setting)
            curves = [errors_of_rounds(request, train, held_out, threads) for train, held_out in pairs]
            rounds, error = least(mean_curve(curves))
            tried[setting] = {"rounds": rounds, "error": round(100.0 * error, 3)}
    setting = min(tried, key=lambda each: tried[each]["error"])
    return {trial.grid.name: setting, **tried[setting], "folds": folds, "tried": tried}


def mean_curve(curves: list[Floats]) -> Floats:
    """Mean error of every round; a run that ended early stays at its last one."""
    n_rounds = max(curve.shape[0] for curve in curves)
    filled = [np.pad(curve, (0, n_rounds - curve.shape[0]), mode="edge") for curve in curves]
    return np.asarray(np.mean(filled, axis=0))


def least(curve: Floats) -> tuple[int, float]:
    """The round in the middle of the best stretch, and that stretch's mean error."""
    width = min(SMOOTHED, curve.shape[0])
    means = np.convolve(curve, np.full(width, 1.0 / width), mode="valid")
    place = int(means.argmin())
    return place + (width + 1) // 2, float(means[place])


@contextmanager
def folded(path: Path, folds: int) -> Iterator[list[tuple[Path, Path]]]:
    """(training rows, rows held out) of each fold as files; every class is spread evenly, by a fixed draw."""
    table = pq.read_table(path)
    fold_of_row = spread(table["label"].to_numpy(zero_copy_only=False), folds)
    with tempfile.TemporaryDirectory() as folder:
        pairs = []
        for fold in range(folds):
            names = (Path(folder) / f"{fold}.train.parquet", Path(folder) / f"{fold}.held.parquet")
            for name, rows in zip(names, (fold_of_row != fold, fold_of_row == fold), strict=True):
                pq.write_table(table.filter(pa.array(rows)), name)
            pairs.append(names)
        yield pairs


def spread(labels: NDArray[Any], folds: int) -> NDArray[np.int64]:
    """The fold of every row, int64 [n_rows]."""
    order = np.random.default_rng(0).permutation(labels.shape[0])
    fold_of_row = np.empty(labels.shape[0], np.int64)
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        fold_of_row[rows] = np.arange(rows.shape[0]) % folds
    return fold_of_row
