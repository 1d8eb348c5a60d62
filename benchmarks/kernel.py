"""Times the root histogram: cells a second for tables of several shapes, beside the same kernel written in C.

    python -m benchmarks.kernel [--threads 2] [--largest CELLS] [--json]

A cell is one (row, feature) pair; its cost is one vector addition of all sums of a bin. The twin in C (kernel_twin.c)
has the same layout and is compiled here by gcc -O3 -march=native; both run on one thread and take turns, so that a busy
machine slows both, and their sums must be equal. Rates are of median times; the ratio is the median of the turns'
ratios, and at least 0.9 is expected of it. Further columns: a member's histogram with all its threads, and
LightGBM's for one class on one thread, where it is installed (kernel_lightgbm.py). --largest leaves out shapes of more
cells.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.kernel_lightgbm import lightgbm_rate
from benchmarks.kernel_twin import COMPILER, Twin, compiler_line
from benchmarks.machine import describe_machine, machine_line
from boost_core.aligned import aligned_empty, aligned_zeros
from boost_core.binning import make_binning
from boost_core.gain_matrix import GainMatrix
from boost_core.histogram import HistogramBuilder, add_rows
from boost_core.intrinsics import lanes_for, width_for
from boost_core.objective import sums_in_bins
from boost_core.team import Team
from boost_core.weak_learners.votes import Votes

REPEATS = 15
BAR = 0.9  # of the twin's rate


@dataclass(frozen=True)
class Shape:
    """A table and its gain matrix: `classes` gains a row, and a 1 that counts the row where a bin's sums do."""

    rows: int
    features: int
    classes: int
    bins: int

    @property
    def cells(self) -> int:
        return self.rows * self.features


SHAPES = [
    Shape(16_000, 16, 26, 16),
    Shape(60_000, 784, 10, 256),
    Shape(200_000, 54, 7, 256),
    Shape(1_000_000, 28, 1, 256),
    Shape(20_000, 64, 100, 256),
    Shape(2_000, 5_000, 10, 256),
    Shape(10_000_000, 8, 3, 256),
]


@dataclass(frozen=True)
class Rates:
    """Cells a second: the kernel's on one thread, its twin's and the median ratio of both (None: no compiler), a
    member's with all threads, LightGBM's for one class on one thread (None: not installed)."""

    kernel: float
    twin: float | None
    ratio: float | None
    member: float
    lightgbm: float | None


class Case:
    """A shape's random arrays; every timing fills sums of its own from zero."""

    def __init__(self, shape: Shape) -> None:
        rng = np.random.default_rng(0)
        n_sums = sums_in_bins(Votes(free=True), shape.classes)
        self.shape, self.lanes = shape, lanes_for(n_sums)
        self.bins = rng.integers(0, shape.bins, (shape.features, shape.rows), dtype=np.uint8)
        self.rows = np.arange(shape.rows, dtype=np.int32)
        thresholds = [np.arange(shape.bins - 1, dtype=np.float64)] * shape.features
        self.binning = make_binning(thresholds, [False] * shape.features)
        values = aligned_empty((shape.rows, width_for(shape.classes + 1)), np.int32)
        values[:] = rng.integers(-(1 << 20), 1 << 20, values.shape, dtype=np.int32)
        self.gains = GainMatrix(values, shape.classes, 0, 0)
        self.totals = aligned_zeros((int(self.binning.bin_start[-1]), width_for(n_sums)), np.int64)

    def kernel(self) -> None:
        """What the engine compiles, called as it calls it."""
        everything, flat = np.arange(self.shape.features), self.totals.reshape(-1)
        bin_start = self.binning.bin_start
        add_rows(self.bins, self.rows, self.gains.flat, bin_start, everything, self.lanes, flat, False)

    def twin(self, twin: Twin) -> None:
        """The same in C."""
        everything, flat = (0, self.shape.features), self.totals.reshape(-1)
        twin.add_rows(self.bins, self.rows, self.gains.values.reshape(-1), self.binning.bin_start, everything, flat)

    def seconds(self, work: Callable[[], None]) -> float:
        """Of one histogram; its memory has been touched before."""
        self.totals.fill(0)
        started = time.perf_counter()
        work()
        return time.perf_counter() - started


def time_shape(shape: Shape, team: Team, folder: Path | None) -> Rates:
    """Rates of a shape; without a folder for the twin's library there is no twin.

    Errors: ValueError if the twin's sums differ.
    """
    case = Case(shape)
    builder = HistogramBuilder(case.bins, case.binning, team)
    works: dict[str, Callable[[], None]] = {
        "kernel": case.kernel,
        "member": lambda: builder.add(case.gains, None, case.totals),
    }
    if folder is not None:
        twin = Twin(case.totals.shape[1], case.gains.values.shape[1], folder)
        works["twin"] = lambda: case.twin(twin)
    check_equal(case, works)
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, work in works.items():
            spent[name].append(case.seconds(work))
    rates = {name: shape.cells / statistics.median(seconds) for name, seconds in spent.items()}
    turns = zip(spent.get("twin", []), spent["kernel"], strict=False)
    ratio = statistics.median(theirs / ours for theirs, ours in turns) if folder is not None else None
    lightgbm = lightgbm_rate(case.bins, shape.bins)
    return Rates(rates["kernel"], rates.get("twin"), ratio, rates["member"], lightgbm)


def check_equal(case: Case, works: dict[str, Callable[[], None]]) -> None:
    """Run each once, which compiles it, and compare the sums."""
    expected: NDArray[np.int64] | None = None
    for name, work in works.items():
        case.seconds(work)
        if expected is None:
            expected = case.totals.copy()
        elif not np.array_equal(expected, case.totals):
            raise ValueError(f"{case.shape}: the sums of {name!r} differ from the kernel's: one of them is wrong")


def measure(shapes: list[Shape], threads: int, compiler: str | None) -> Iterator[tuple[Shape, Rates]]:
    """Every shape after the other."""
    with tempfile.TemporaryDirectory() as folder, Team(threads) as team:
        for shape in shapes:
            yield shape, time_shape(shape, team, Path(folder) if compiler else None)


def as_table(results: list[tuple[Shape, Rates]], threads: int, compiler: str | None) -> Table:
    """Rates in cells a nanosecond."""
    table = Table(title="Root histograms: cells a nanosecond, one thread")
    sizes_heads, bar = ("rows", "features", "classes", "bins"), f"at least {BAR}"
    for head in (*sizes_heads, "here", "in C", "ratio", bar, f"{threads} threads", "LightGBM, 1 class"):
        table.add_column(head, justify="right")
    for shape, rates in results:
        if rates.twin is None or rates.ratio is None:
            compared = [f"no {COMPILER}", "", ""]
        else:
            compared = [f"{rates.twin / 1e9:.3f}", f"{rates.ratio:.2f}", "met" if rates.ratio >= BAR else "missed"]
        sizes = [f"{size:,}" for size in (shape.rows, shape.features, shape.classes, shape.bins)]
        lightgbm = "none" if rates.lightgbm is None else f"{rates.lightgbm / 1e9:.3f}"
        table.add_row(*sizes, f"{rates.kernel / 1e9:.3f}", *compared, f"{rates.member / 1e9:.3f}", lightgbm)
    table.caption = f"in C: {compiler}" if compiler else f"in C: no {COMPILER} on this machine"
    return table


def as_json(results: list[tuple[Shape, Rates]], threads: int, compiler: str | None) -> dict[str, Any]:
    """Rates in cells a second."""
    rows = [
        {**asdict(shape), **asdict(rates), "bar_met": None if rates.ratio is None else rates.ratio >= BAR}
        for shape, rates in results
    ]
    return {"machine": describe_machine(), "compiler": compiler, "bar": BAR, "threads": threads, "kernel": rows}


def main() -> None:
    """Time the shapes and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--largest", type=int, default=max(shape.cells for shape in SHAPES))
    arguments = parser.parse_args()
    compiler = compiler_line()
    chosen = [shape for shape in SHAPES if shape.cells <= arguments.largest]
    results = list(measure(chosen, arguments.threads, compiler))
    if arguments.json:
        print(json.dumps(as_json(results, arguments.threads, compiler)))
        return
    print(machine_line())
    Console(width=120).print(as_table(results, arguments.threads, compiler))


if __name__ == "__main__":
    main()
