"""Times the root histogram: cells a second for tables of several shapes.

    python -m benchmarks.kernel [--json]

A cell is one (row, feature) pair; its cost is one vector addition of all channels. Times are medians.
"""

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine
from boost_core.binning import make_binning
from boost_core.gain_matrix import GainMatrix
from boost_core.histogram import HistogramBuilder
from boost_core.intrinsics import LANE, lanes_for
from boost_core.team import Team

# rows, features, channels (one counts the rows), bins
SHAPES = [
    (16_000, 16, 27, 16),
    (200_000, 54, 8, 256),
    (60_000, 784, 11, 256),
    (1_000_000, 28, 2, 256),
    (20_000, 64, 101, 256),
    (2_000, 5_000, 11, 256),
]
REPEATS = 15


def time_shape(shape: tuple[int, int, int, int], team: Team) -> float:
    """Median seconds of one root histogram."""
    n_rows, n_features, n_channels, n_bins = shape
    rng = np.random.default_rng(0)
    bins = rng.integers(0, n_bins, (n_features, n_rows), dtype=np.uint8)
    binning = make_binning([np.arange(n_bins - 1, dtype=np.float64)] * n_features, [False] * n_features)
    n_padded = LANE * len(lanes_for(n_channels))
    values = rng.integers(-(1 << 20), 1 << 20, (n_rows, n_padded), dtype=np.int32)
    gains = GainMatrix(values, np.zeros(n_rows, np.int64), n_channels - 1, 0, 0)
    builder = HistogramBuilder(bins, binning, team)
    totals = builder.empty(1, n_padded)[0]
    seconds = []
    for repeat in range(REPEATS + 1):
        started = time.perf_counter()
        totals.fill(0)
        builder.add(gains, None, totals)
        if repeat:  # the first one compiles
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def main() -> None:
    """Time every shape and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with Team(arguments.threads) as team:
        for shape in SHAPES:
            seconds = time_shape(shape, team)
            rows.append(
                {"shape": list(shape), "milliseconds": seconds * 1e3, "cells_a_second": shape[0] * shape[1] / seconds}
            )
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "kernel": rows}))
        return
    for row in rows:
        rows_, features, channels, bins = row["shape"]
        print(
            f"{rows_:>10,} x {features:>5,} x {channels:>3} channels, {bins:>3} bins  "
            f"{row['milliseconds']:8.2f} ms  {row['cells_a_second'] / 1e9:5.2f} cells a nanosecond"
        )


if __name__ == "__main__":
    main()
