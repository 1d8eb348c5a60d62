"""Times a round against rows, features, classes and leaves, on synthetic tables in memory.

    python -m benchmarks.growth [--over rows features classes leaves] [--threads 2] [--plots FOLDER] [--json]

One size grows while the others stay; the median of a few rounds, after compilation. slope: the growth of log time by
log size between a size and the one before: 1 is linear. With the classes a table's trees change: so it is told from how
many rows a round's histograms are made (all, and of every cut but the last the smaller side), and what time they take
for one of these rows and a feature. --plots writes one log-log plot (growth.svg) and asks for matplotlib, which the
environment of `make bench` has.
"""

import argparse
import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.gang import Case, synthetic, train_rounds
from benchmarks.machine import describe_machine, machine_line
from boost_core.collective import Alone
from boost_core.kernel_times import HISTOGRAMS
from boost_core.model import Forest

BASE = {"rows": 100_000, "features": 20, "classes": 8, "leaves": 16}
SIZES = {
    "rows": (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000),
    "features": (5, 10, 20, 40, 80, 160, 320, 640),
    "classes": (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64, 128),
    "leaves": (2, 4, 8, 16, 32, 64, 128, 256),
}
N_VALUES = 256
CELLS_A_CASE = 4e9  # rounds times cells, about, so that small tables have many rounds
ROUNDS = (5, 60)


def time_size(name: str, size: int, threads: int) -> dict[str, float]:
    """Seconds of a round where one size is another."""
    sizes = {**BASE, name: size}
    n_rows, n_features, n_classes, max_leaves = (sizes[each] for each in ("rows", "features", "classes", "leaves"))
    work = n_rows * n_features * math.log2(max_leaves + 1)
    rounds = int(min(max(CELLS_A_CASE / work / 100, ROUNDS[0]), ROUNDS[1]))
    case = Case(name, n_rows, n_features, N_VALUES, n_classes, max_leaves, rounds)
    codes = synthetic(case)
    trained = train_rounds(case, codes, Alone(), threads)
    found = {"size": size, "seconds": statistics.median(trained.seconds)}
    if name != "classes":
        return found
    added, n_rounds = rows_added(trained.forest, codes[0]), trained.forest.n_rounds
    cell = trained.times[HISTOGRAMS] * 1e-9 / (added * n_rounds * n_features)
    return found | {"rows added": added, "histogram seconds a row and feature": cell}


def rows_added(forest: Forest, bins: NDArray[np.uint8]) -> float:
    """Rows that a round adds to histograms, in one process; the bins are of a table without missing values."""
    added = 0
    for tree in range(forest.n_trees):
        first, stop = forest.node_start[tree], forest.node_start[tree + 1]
        held = {0: np.arange(bins.shape[1])}
        added += bins.shape[1]
        for node in range(first, stop):  # in the order that they were cut in
            rows = held.pop(node - first)
            left = bins[forest.node_feature[node], rows] <= forest.node_bin[node]
            for child, side in ((forest.node_left[node], left), (forest.node_right[node], ~left)):
                if child >= 0:
                    held[int(child)] = rows[side]
            if node < stop - 1:
                n_left = int(left.sum())
                added += min(n_left, len(rows) - n_left)
    return added / forest.n_rounds


def grown(name: str, threads: int) -> list[dict[str, float]]:
    """All sizes of a kind, with slopes from the second one on."""
    found = [time_size(name, size, threads) for size in SIZES[name]]
    for before, each in itertools.pairwise(found):
        each["slope"] = math.log(each["seconds"] / before["seconds"]) / math.log(each["size"] / before["size"])
    return found


def show(results: dict[str, list[dict[str, float]]]) -> None:
    """A table a kind of size."""
    console = Console(width=120)
    console.print(machine_line())
    for name, found in results.items():
        others = ", ".join(f"{size:,} {other}" for other, size in BASE.items() if other != name)
        detailed = "rows added" in found[0]
        more = ("rows added", "ns a row and feature") if detailed else ()
        table = Table(name, "ms a round", "slope", *more, title=f"{others}")
        for each in found:
            slope = f"{each['slope']:.2f}" if "slope" in each else ""
            cells = [f"{each['size']:,}", f"{each['seconds'] * 1e3:.2f}", slope]
            if detailed:
                a_cell = each["histogram seconds a row and feature"]
                cells += [f"{each['rows added']:,.0f}", f"{a_cell * 1e9:.3f}"]
            table.add_row(*cells)
        console.print(table)


def plot(results: dict[str, list[dict[str, float]]], folder: Path) -> None:
    """growth.svg: time by size, both logarithmic, a line a kind, beside a line of slope 1."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "growth"  # the same figures give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(results), figsize=(3.2 * len(results), 3), squeeze=False)
    for place, (name, found) in zip(axes[0], results.items(), strict=True):
        sizes = [each["size"] for each in found]
        times = [each["seconds"] * 1e3 for each in found]
        place.loglog(sizes, times, "o-")
        linear = [times[-1] * size / sizes[-1] for size in sizes]
        place.loglog(sizes, linear, "--", color="grey", linewidth=0.8)
        place.set_xlabel(name)
    axes[0][0].set_ylabel("ms a round (dashed: linear)")
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "growth.svg", metadata={"Date": None})


def main() -> None:
    """Time all kinds, then print tables or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--over", nargs="*", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plots", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {name: grown(name, arguments.threads) for name in arguments.over}
    if arguments.plots is not None:
        plot(results, arguments.plots)
    if arguments.json:
        told: dict[str, Any] = {"machine": describe_machine(), "base": BASE, "unit": "seconds", "growth": results}
        print(json.dumps(told, indent=2))
    else:
        show(results)


if __name__ == "__main__":
    main()
