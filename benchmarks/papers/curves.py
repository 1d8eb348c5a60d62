"""The papers' pictures as tables: error against rounds, against the size of trees, and on three Gaussians.

    python -m benchmarks.papers.curves --data FOLDER [--picture NAME ...] [--set NAME ...] [--threads 2]
    python -m benchmarks.papers.curves --show

FOLDER as in `python -m benchmarks.papers`; the Gaussians need none. Errors are in per cent; results are kept in
benchmarks/papers/results, a file a picture, an entry a set and method. The papers print no numbers of these pictures.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine_line
from benchmarks.papers.gaussians import MEANS, bayes_error, draw, write
from benchmarks.papers.store import RESULTS
from benchmarks.papers.training import run
from workers.job import TrainingOutcome

STALL, SIZES, GAUSSIANS = "stall", "tree_sizes", "gaussians"
TITLES = {
    STALL: "Mukherjee & Schapire 2010, figure 1(b): trees of 5 nodes, test error in % (training error) after rounds",
    SIZES: "Mukherjee & Schapire 2010, figure 1(a): test error in % after 500 rounds, by the most nodes of a tree",
    GAUSSIANS: "Saberian & Vasconcelos 2011: three Gaussians in the plane, stumps, test error in % after steps",
}
ROUNDS = 500
SHOWN = (1, 5, 10, 25, 50, 100, 250, 500)
NODES = (5, 11, 21, 51, 101, 201)
STEPS = (1, 10, 25, 50, 100, 200)
SEEDS = (0, 1, 2, 3, 4)
SETS = ("satimage", "pendigits", "letter")
METHODS: dict[str, dict[str, Any]] = {
    "AdaBoost.MM": {"name": "adaboost_mm"},
    "AdaBoost.MM, planned edge 0.05": {"name": "adaboost_mm_fixed", "edge": 0.05},
    "AdaBoost.M1": {"name": "adaboost_m1"},
    "AdaBoost.MH, single-label trees": {"name": "adaboost_mh"},
}
OF_SIZES = ("AdaBoost.MM", "AdaBoost.M1", "AdaBoost.MH, single-label trees")


@dataclass(frozen=True)
class Cell:
    """One line of a picture: a set, a method, and the tree sizes that it is trained with (none: the Gaussians)."""

    picture: str
    data: str
    method: str
    nodes: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.data}/{self.method}"


def cells() -> Iterator[Cell]:
    """All lines of all pictures, in the order of their tables."""
    yield from (Cell(STALL, data, method, NODES[:1]) for data in SETS for method in METHODS)
    yield from (Cell(SIZES, data, method, NODES) for data in SETS[:2] for method in OF_SIZES)
    yield from (Cell(GAUSSIANS, f"draw {seed}", "CD-MCBoost") for seed in SEEDS)


def request(method: str, nodes: int) -> dict[str, Any]:
    """Trees of at most so many nodes, leaves counted."""
    tree = {"kind": "tree", "max_leaves": (nodes + 1) // 2, "max_nodes": nodes}
    return {"algorithm": {**METHODS[method], "weak_learner": tree}, "rounds": ROUNDS}


def in_per_cent(outcome: TrainingOutcome, round_: int) -> tuple[float, float]:
    """(test, training) error after a round, or after the last one of a run that ended before."""
    record = outcome.rounds[min(round_, len(outcome.rounds)) - 1].record
    assert record.valid_error is not None
    return round(100.0 * record.valid_error, 2), round(100.0 * record.train_error, 2)


def measure(cell: Cell, data: Path | None, threads: int) -> dict[str, Any]:
    """The entry of a line."""
    if cell.picture == GAUSSIANS:
        return measure_gaussians(int(cell.data.split()[1]), threads)
    assert data is not None
    train, test = (data / f"{cell.data}.{part}.parquet" for part in ("train", "test"))
    found = {nodes: run(request(cell.method, nodes), train, test, threads) for nodes in cell.nodes}
    ended = {str(nodes): len(outcome.rounds) for nodes, outcome in found.items()}
    if cell.picture == SIZES:
        errors = {str(nodes): in_per_cent(outcome, ROUNDS) for nodes, outcome in found.items()}
    else:
        errors = {str(shown): in_per_cent(found[cell.nodes[0]], shown) for shown in SHOWN}
    seconds = round(sum(outcome.seconds["train"] for outcome in found.values()), 1)
    return {"errors": errors, "rounds": ended, "seconds": seconds}


def measure_gaussians(seed: int, threads: int) -> dict[str, Any]:
    """1,000 rows to train on and 1,000 to test; the best that any rule can do on the same test rows."""
    random = np.random.default_rng(seed)
    train, test = draw(random, 1000), draw(random, 1000)
    with tempfile.TemporaryDirectory() as folder:
        names = write(Path(folder) / "train.parquet", *train), write(Path(folder) / "test.parquet", *test)
        outcome = run({"algorithm": {"name": "cd_mcboost"}, "rounds": STEPS[-1]}, *names, threads)
    errors = {str(step): in_per_cent(outcome, step) for step in STEPS}
    return {"errors": errors, "bayes": round(100.0 * bayes_error(*test), 2), "classes": len(MEANS)}


def entries(picture: str) -> dict[str, dict[str, Any]]:
    """What was measured of a picture so far."""
    path = RESULTS / f"{picture}.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(cell: Cell, entry: Mapping[str, Any]) -> None:
    """Replace a line's entry."""
    found = {**entries(cell.picture), cell.key: dict(entry)}
    (RESULTS / f"{cell.picture}.json").write_text(f"{json.dumps(found, indent=1, sort_keys=True)}\n")


def tables(pictures: list[str]) -> Iterator[str]:
    """Each picture as a Markdown table."""
    for picture in pictures:
        columns = {STALL: SHOWN, SIZES: NODES, GAUSSIANS: STEPS}[picture]
        last = "Bayes" if picture == GAUSSIANS else "rounds run"
        yield f"### {TITLES[picture]}\n"
        yield f"| set | method | {' | '.join(map(str, columns))} | {last} |"
        yield f"|---|---|{'---|' * len(columns)}---|"
        found = entries(picture)
        for cell in cells():
            if cell.picture == picture:
                yield line(cell, found.get(cell.key), columns)
        yield ""


def line(cell: Cell, entry: Mapping[str, Any] | None, columns: tuple[int, ...]) -> str:
    """One row of a table."""
    if entry is None:
        return f"| {cell.data} | {cell.method} | {'| ' * len(columns)}not run |"
    figures = [entry["errors"][str(column)] for column in columns]
    shown = [f"{test:.2f} ({train:.2f})" if cell.picture == STALL else f"{test:.2f}" for test, train in figures]
    rounds = ", ".join(str(entry["rounds"][str(nodes)]) for nodes in cell.nodes)
    last = f"{entry['bayes']:.2f}" if cell.picture == GAUSSIANS else rounds
    return f"| {cell.data} | {cell.method} | {' | '.join(shown)} | {last} |"


def main() -> None:
    """Measure the chosen lines one after another, then print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--picture", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--set", nargs="+", default=None, dest="sets")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    wanted = [cell for cell in cells() if cell.picture in arguments.picture]
    if arguments.sets is not None:
        wanted = [cell for cell in wanted if cell.data in arguments.sets]
    if arguments.data is None and not arguments.show and any(cell.picture != GAUSSIANS for cell in wanted):
        parser.error("--data is missing: the folder of the Parquet files (or --show for the figures so far)")
    for cell in wanted if not arguments.show else ():
        keep(cell, measure(cell, arguments.data, arguments.threads))
        print(f"{cell.picture} {cell.key}", flush=True)
    print(machine_line())
    print("\n".join(tables(arguments.picture)))


if __name__ == "__main__":
    main()
