"""LightGBM's histograms of one class, where it is installed: the rate of whole trees of two leaves.

Such a tree is one histogram of all rows, besides gradients, one cut and new scores: the histogram's own rate is
somewhat higher. K classes cost K of them.
"""

import statistics
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import installed_version

WARM_UP, TREES = 3, 15


def lightgbm_rate(bins: NDArray[np.uint8], n_bins: int) -> float | None:
    """Cells a second on one thread for codes bins [d, n], None where LightGBM is not installed."""
    if installed_version("lightgbm") is None:
        return None
    import lightgbm

    n_features, n_rows = bins.shape
    labels = np.random.default_rng(1).integers(0, 2, n_rows)
    parameters: dict[str, Any] = {"objective": "binary", "num_leaves": 2, "num_threads": 1, "verbose": -1}
    features = np.ascontiguousarray(bins.T, dtype=np.float32)
    data = lightgbm.Dataset(features, labels, params={**parameters, "max_bin": n_bins})
    booster = lightgbm.Booster(parameters, data)
    seconds: list[float] = []
    for tree in range(WARM_UP + TREES):
        started = time.perf_counter()
        booster.update()
        if tree >= WARM_UP:
            seconds.append(time.perf_counter() - started)
    return float(n_rows * n_features / statistics.median(seconds))
