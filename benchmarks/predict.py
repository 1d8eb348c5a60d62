"""Times prediction with a 500-round model of 21 leaves beside LightGBM's with 300 rounds of 31 leaves.

    python -m benchmarks.predict [--data FOLDER] [--rows 100000] [--threads 2] [--repeats 3] [--json]

With --data, on letter.train.parquet and letter.test.parquet of FOLDER; else on a synthetic table of their shape. Both
models are trained on the training rows; test and training rows are repeated to --rows and shuffled. Both predict in one
process by turns, so that a busy machine slows both; rates are of median times, ratios are medians of the turns' ratios,
and at least 2 is expected of scores and of labels beside LightGBM's `predict`. Labels with and without early exit must
be equal. A single row is a call of `predict` with one row of float64, another row each time. Where time goes: the steps
of a tile, each by itself, on one thread. LightGBM is left out where it is not installed. There is no ONNX export
yet, so nothing is compared with onnxruntime.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from benchmarks.predict_steps import time_steps
from benchmarks.rounds import CASES, write_synthetic
from boost_core.catalogue import resolve_config
from boost_core.compact import compact_of
from boost_core.model import Model
from boost_core.prediction import predict, scores, settled_labels
from boost_core.settling import make_bounds
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob

ROUNDS, LEAVES = 500, 21
PEER_ROUNDS, PEER_LEAVES, PEER_RATE = 300, 31, 0.1
SINGLES = 2000
BAR, SINGLE_BAR_US = 2.0, 50.0

Works = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """Training rows and the rows to predict."""

    train: Path
    X: NDArray[np.float64]
    y: NDArray[Any]
    rows: NDArray[np.float64]


def read(path: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Features float64 [n, d] and labels of a Parquet file whose label column is `label`."""
    table = pq.read_table(path)
    names = [name for name in table.column_names if name != "label"]
    X = np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)
    return np.ascontiguousarray(X), table["label"].to_numpy()


def make_case(data: Path | None, folder: Path, n_rows: int) -> Case:
    """The real table, or one of its shape."""
    train = folder / "letter.parquet" if data is None else data / "letter.train.parquet"
    if data is None:
        write_synthetic(train, CASES[0])
    X, y = read(train)
    pool = X if data is None else np.concatenate([read(data / "letter.test.parquet")[0], X])
    chosen = np.random.default_rng(0).permutation(np.resize(np.arange(pool.shape[0]), n_rows))
    return Case(train, X, y, np.ascontiguousarray(pool[chosen]))


def train_edgewise(case: Case, threads: int) -> Model:
    """AdaBoost.MH on Hamming trees, as the papers have it for letter."""
    weak_learner = {"kind": "hamming_tree", "max_leaves": LEAVES}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": ROUNDS})
    plan = plan_data(DataRequest((str(case.train),), None, "label"))
    return train_in_process(TrainingJob("benchmark", 1, plan, config, threads), NoProgress()).model


def train_peer(case: Case, threads: int) -> Any:
    """LightGBM's booster, None if it is not installed."""
    try:
        import lightgbm
    except ImportError:
        return None
    classes, y = np.unique(case.y, return_inverse=True)
    parameters = {
        "objective": "multiclass", "num_class": len(classes), "num_leaves": PEER_LEAVES, "learning_rate": PEER_RATE,
        "num_threads": threads, "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, lightgbm.Dataset(case.X, y), PEER_ROUNDS)


def works_of(model: Model, peer: Any, rows: NDArray[np.float64], threads: int) -> Works:
    """What is timed by turns. Errors: ValueError if early exit changes a label."""
    compact = compact_of(model.forest)
    if compact is None:
        raise ValueError("the model has no compact layout: its trees or thresholds are too many for bytes")
    never = make_bounds(compact, model.forest.decoding, early=False)
    works: Works = {
        "scores": lambda: scores(model, rows, threads),
        "labels": lambda: predict(model, rows, threads),
        "labels, no early exit": lambda: settled_labels(compact, never, rows, threads)[0],
    }
    if not np.array_equal(works["labels"](), works["labels, no early exit"]()):
        raise ValueError("early exit changes labels: one of the two is wrong")
    if peer is not None:
        works["LightGBM, scores"] = lambda: peer.predict(rows, raw_score=True, num_threads=threads)
        works["LightGBM, labels"] = lambda: peer.predict(rows, num_threads=threads).argmax(axis=1)
    return works


def time_turns(works: Works, repeats: int) -> dict[str, list[float]]:
    """Seconds of every work, by turns; what must be compiled has run once before (LightGBM takes half a minute)."""
    for name, work in works.items():
        if "LightGBM" not in name:
            work()
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - started)
    return spent


def single_microseconds(call: Callable[[NDArray[np.float64]], Any], rows: NDArray[np.float64]) -> float:
    """Median of one call with one row, over different rows."""
    spent = []
    for number in range(min(SINGLES, rows.shape[0])):
        row = rows[number : number + 1]
        started = time.perf_counter()
        call(row)
        spent.append(time.perf_counter() - started)
    return statistics.median(spent[len(spent) // 10 :]) * 1e6


def compare(spent: dict[str, list[float]], ours: str, theirs: str) -> float | None:
    """How many times as fast, None without the other."""
    if theirs not in spent:
        return None
    return statistics.median(b / a for a, b in zip(spent[ours], spent[theirs], strict=True))


def measure(case: Case, threads: int, repeats: int) -> dict[str, Any]:
    """All figures, JSON-ready."""
    model, peer = train_edgewise(case, threads), train_peer(case, threads)
    spent = time_turns(works_of(model, peer, case.rows, threads), repeats)
    singles = {
        "predict": single_microseconds(lambda row: predict(model, row), case.rows),
        "scores": single_microseconds(lambda row: scores(model, row), case.rows),
    }
    if peer is not None:
        singles["LightGBM, scores"] = single_microseconds(
            lambda row: peer.predict(row, raw_score=True, num_threads=1), case.rows[:300]
        )
    return {
        "rows": case.rows.shape[0],
        "rows_a_second": {name: case.rows.shape[0] / statistics.median(each) for name, each in spent.items()},
        "scores_ratio": compare(spent, "scores", "LightGBM, scores"),
        "labels_ratio": compare(spent, "labels", "LightGBM, labels"),
        "early_exit_gain": compare(spent, "labels", "labels, no early exit"),
        "single_row_microseconds": singles,
        "steps_ns_a_row": time_steps(model, case.rows),
    }


def show(found: dict[str, Any], threads: int) -> None:
    """Print the tables."""
    console = Console(width=120)
    console.print(machine_line())
    table = Table("what", "rows a second", title=f"{found['rows']:,} rows, {threads} threads")
    for name, rate in found["rows_a_second"].items():
        table.add_row(name, f"{rate:,.0f}")
    console.print(table)
    for name, ratio in (("scores", found["scores_ratio"]), ("labels", found["labels_ratio"])):
        verdict = "LightGBM is not installed" if ratio is None else f"{ratio:.1f} times LightGBM's rate"
        met = "" if ratio is None else f" (bar {BAR:g}: {'met' if ratio >= BAR else 'missed'})"
        console.print(f"{name}: {verdict}{met}")
    console.print(f"early exit: {found['early_exit_gain']:.3f} times the rate without, the same labels")
    for name, microseconds in found["single_row_microseconds"].items():
        verdict = "met" if microseconds <= SINGLE_BAR_US else "missed"
        met = "" if "LightGBM" in name else f" (bar {SINGLE_BAR_US:g}: {verdict})"
        console.print(f"single row, {name}: {microseconds:.1f} us{met}")
    steps = ", ".join(f"{name} {spent:.0f}" for name, spent in found["steps_ns_a_row"].items())
    console.print(f"where time goes, ns a row on one thread: {steps}")


def main() -> None:
    """Train, time, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(arguments.data, Path(folder), arguments.rows)
        found = measure(case, arguments.threads, arguments.repeats)
    if not arguments.json:
        show(found, arguments.threads)
    print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "predict": found}))


if __name__ == "__main__":
    main()
