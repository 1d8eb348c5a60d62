"""Times a round against rows, features, classes and leaves, on synthetic tables in memory.

    python -m benchmarks.growth [--over rows features classes leaves] [--threads 2] [--plots FOLDER] [--json]

One size grows while the others stay; the median of a few rounds, after compilation. slope: the growth of log time by
log size between a size and the one before: 1 is linear. --plots writes one log-log plot (growth.svg) and asks for
matplotlib, which the environment of `make bench` has.
"""

import argparse
import itertools
import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.gang import Case, synthetic, time_rounds
from benchmarks.machine import describe_machine, machine_line
from boost_core.collective import Alone

BASE = {"rows": 100_000, "features": 20, "classes": 8, "leaves": 16}
SIZES = {
    "rows": (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000),
    "features": (5, 10, 20, 40, 80, 160, 320, 640),
    "classes": (2, 3, 4, 7, 8, 15, 16, 31, 32, 64, 128),
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
    return {"size": size, "seconds": time_rounds(case, synthetic(case), Alone(), threads)["seconds"]}


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
        table = Table(name, "ms a round", "slope", title=f"{others}")
        for each in found:
            table.add_row(
                f"{each['size']:,}", f"{each['seconds'] * 1e3:.2f}", f"{each['slope']:.2f}" if "slope" in each else ""
            )
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
