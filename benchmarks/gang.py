"""Times training rounds of two members of one thread beside one process of two threads, and of one thread.

    python -m benchmarks.gang [--data FOLDER] [--case NAME ...] [--repeats 3] [--json]

efficiency = round time of one process of two threads / round time of two members of one thread each. All run in turns
on the same rows, so that a busy machine slows all. Members are plain processes with plain sockets. Tables are
synthetic of the named shapes; with --data, letter and mnist are letter.train.parquet and mnist.train.parquet of FOLDER.
Figures are medians over the rounds, then over the repeats.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from boost_core.binning import make_binning
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone, Collective
from boost_core.model import Forest
from boost_core.records import Phase, RoundRecord
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import train
from boost_core.training_data import TrainingData
from boost_core.warm_up import WarmUp, warm_up
from workers.endpoint import Endpoint
from workers.mesh import Member, MeshCollective
from workers.roster import Roster, Seat, new_secret
from workers.stages import kernel_clock

LOOPBACK = "127.0.0.1"
MEMBERS = 2


class Case(NamedTuple):
    """A table's shape and how it is trained. empty: share of cells with one value."""

    name: str
    n_rows: int
    n_features: int
    n_values: int
    n_classes: int
    max_leaves: int
    rounds: int
    empty: float = 0.0


CASES = [
    Case("letter", 16_000, 16, 16, 26, 21, 60),
    Case("letter-like 200,000", 200_000, 16, 16, 26, 21, 12),
    Case("mnist", 60_000, 784, 256, 10, 21, 5, 0.8),
    Case("2,000,000 x 50 x 8", 2_000_000, 50, 256, 8, 21, 3),
]
Codes = tuple[NDArray[np.uint8], NDArray[np.int32]]


def synthetic(case: Case) -> Codes:
    """Bin codes [n_features, n_rows] that tell something of the classes, and labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, case.n_classes, case.n_rows).astype(np.int32)
    codes = np.zeros((case.n_features, case.n_rows), np.uint8)
    for j in range(case.n_features):
        centres = rng.integers(0, case.n_values, case.n_classes).astype(np.float32)
        noise = rng.standard_normal(case.n_rows, np.float32) * (case.n_values / 3)
        values = np.clip(centres[labels] + noise, 0, case.n_values - 1)
        values[rng.random(case.n_rows, np.float32) < case.empty] = 0
        codes[j] = values
    return codes, labels


def real(path: Path) -> Codes:
    """A table of small integers as codes; label: the column of that name."""
    table = pq.read_table(path)
    labels = np.unique(table["label"].to_numpy(), return_inverse=True)[1].astype(np.int32)
    names = [name for name in table.column_names if name != "label"]
    return np.stack([table[name].to_numpy().astype(np.uint8) for name in names]), labels


def codes_of(case: Case, folder: Path | None) -> Codes:
    """The case's table, from its file where there is one."""
    path = folder / f"{case.name}.train.parquet" if folder else None
    return real(path) if path and path.exists() else synthetic(case)


class Timer:
    """An observer that keeps the seconds and the bytes of each round."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.bytes: list[int] = []
        self._since = time.perf_counter()

    def enter(self, phase: Phase) -> None:
        """Nothing to tell apart."""

    def round_done(self, record: RoundRecord) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self._since)
        self.bytes.append(record.bytes_reduced)
        self._since = now

    def stop_requested(self) -> bool:
        return False


class Trained(NamedTuple):
    """seconds, bytes: of each round, the first one left out of the seconds; times: of all rounds (kernel_times.py)."""

    forest: Forest
    seconds: list[float]
    bytes: list[int]
    times: NDArray[np.int64]


def time_rounds(
    case: Case, codes: Codes, collective: Collective, threads: int, rows: tuple[int, int] | None = None
) -> dict[str, float]:
    """Train this member's rows (None: its even share); the median seconds of a round, the first one left out."""
    trained = train_rounds(case, codes, collective, threads, rows)
    return {"seconds": statistics.median(trained.seconds), "bytes": statistics.mean(trained.bytes)}


def train_rounds(
    case: Case, codes: Codes, collective: Collective, threads: int, rows: tuple[int, int] | None = None
) -> Trained:
    """Train this member's rows (None: its even share)."""
    bins, labels = codes
    n_rows, rank, size = len(labels), collective.rank, collective.size
    start, stop = rows or (n_rows * rank // size, n_rows * (rank + 1) // size)
    shard = Shard(np.ascontiguousarray(bins[:, start:stop]), labels[start:stop], ((start, stop),))
    largest = bins.max(axis=1)
    binning = make_binning([np.arange(most, dtype=np.float64) for most in largest], [False] * len(bins))
    weak_learner = {"kind": "hamming_tree", "max_leaves": case.max_leaves}
    config = resolve_config(
        {"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": case.rounds + 1}
    )
    data = TrainingData(shard, None, binning, np.bincount(labels).astype(np.int64))
    timer = Timer()
    with Team(threads, kernel_clock()) as team:
        warm_up(config, int(labels.max()) + 1, WarmUp(collective.size > 1))
        collective.barrier()
        forest = train(data, config, collective, timer, team).forest
        return Trained(forest, timer.seconds[1:], timer.bytes, team.times)


def member(pipe: Connection, rank: int, case: Case, folder: Path | None) -> None:
    """A process that is a member whenever it is sent a roster, and ends when it is sent None."""
    codes = codes_of(case, folder)
    endpoint = Endpoint(LOOPBACK)
    pipe.send(Seat(endpoint.host, endpoint.port))
    while (task := pipe.recv()) is not None:
        if isinstance(task, Roster):
            with MeshCollective(Member(task.job_id, task.run, rank), endpoint.connect(task, rank, 60.0)) as mesh:
                pipe.send(time_rounds(case, codes, mesh, 1))
        else:
            pipe.send(time_rounds(case, codes, Alone(), task))
    endpoint.close()


def time_case(case: Case, folder: Path | None, repeats: int) -> dict[str, Any]:
    """Median round times of one process of one and of two threads, and of the gang."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(MEMBERS)]
    pipes = [mine for mine, _ in pairs]
    processes = [
        context.Process(target=member, args=(theirs, rank, case, folder), daemon=True)
        for rank, (_, theirs) in enumerate(pairs)
    ]
    for process in processes:
        process.start()
    seats = tuple(pipe.recv() for pipe in pipes)
    times: dict[str, list[dict[str, float]]] = {"one thread": [], "two threads": [], "gang": []}
    for repeat in range(repeats):
        for threads, name in ((1, "one thread"), (2, "two threads")):
            pipes[0].send(threads)
            times[name].append(pipes[0].recv())
        roster = Roster("benchmark", repeat + 1, seats, new_secret())
        for pipe in pipes:
            pipe.send(roster)
        first, *_ = [pipe.recv() for pipe in pipes]
        times["gang"].append(first)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    seconds = {name: statistics.median(each["seconds"] for each in found) for name, found in times.items()}
    return {
        "case": case.name,
        "seconds": seconds,
        "bytes_a_round": times["gang"][-1]["bytes"],
        "efficiency": seconds["two threads"] / seconds["gang"],
    }


def show(results: list[dict[str, Any]]) -> None:
    """A table for people."""
    columns = ("one thread", "two threads", "gang")
    table = Table("table", *columns, "efficiency", "KB a round", title=f"milliseconds a round\n{machine_line()}")
    for result in results:
        times = [f"{result['seconds'][name] * 1e3:.1f}" for name in columns]
        table.add_row(result["case"], *times, f"{result['efficiency']:.2f}", f"{result['bytes_a_round'] / 1e3:.0f}")
    Console().print(table)


def main() -> None:
    """Time all cases, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--case", nargs="*", default=None, help="names of cases; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.case is None or case.name in arguments.case]
    results = [time_case(case, arguments.data, arguments.repeats) for case in cases]
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "unit": "seconds", "gang": results}, indent=2))
    else:
        show(results)


if __name__ == "__main__":
    main()
