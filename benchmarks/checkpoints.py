"""What checkpoints cost of training time, in one process of two threads and on a gang of two members of one thread.

    python -m benchmarks.checkpoints [--case NAME ...] [--seconds 30] [--train-seconds 36] [--repeats 1] [--json]

Every training runs twice on the same rows, without checkpoints and with one every so many seconds and one at its end,
as the service writes them. Spent: seconds in which a checkpoint is made (the model so far as bytes), written (to the
disk) or replaces the one before, over training seconds; all but the last one run beside the training. Paired: how much
longer the training with checkpoints took. A checkpoint holds all rounds so far, so its cost for 1,000
rounds is told too.
"""

import argparse
import contextlib
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.gang import CASES, LOOPBACK, MEMBERS, Case, synthetic
from benchmarks.machine import describe_machine, machine_line
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone
from workers.assignment import assign
from workers.checkpoint import Checkpoint, to_memory
from workers.checkpoint_store import FolderCheckpoints
from workers.data_plan import DataPlan, DataRequest, plan_data
from workers.endpoint import Endpoint
from workers.job import CheckpointSettings, NoProgress, TrainingJob
from workers.member import run_member
from workers.mesh import Member, MeshCollective
from workers.roster import Roster, Seat, new_secret
from workers.rounds_so_far import RoundsSoFar

NAMES = ("letter", "1,000,000 x 50 x 8")
LARGER = Case("1,000,000 x 50 x 8", 1_000_000, 50, 256, 8, 21, 0)
TRIAL_ROUNDS = 20  # to see how many rounds fill the seconds
BAR = 0.01


class Cost(NamedTuple):
    """Of one checkpoint, in seconds. processor: of the thread that made and wrote it."""

    rounds: int
    n_bytes: int
    made: float
    written: float
    replaced: float
    processor: float

    @property
    def seconds(self) -> float:
        return self.made + self.written + self.replaced


class Meter:
    """Stands where a member makes and keeps its checkpoints, and notes what each cost. One thread at a time writes."""

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self._began = self._made = self._written = self._processor = 0.0

    def make(self, checkpoint: Checkpoint, so_far: RoundsSoFar) -> memoryview:
        """In place of to_memory."""
        self._began, self._processor = time.perf_counter(), time.thread_time()
        content = to_memory(checkpoint, so_far)
        self._made = time.perf_counter()
        return content

    def renamed(self) -> None:
        """The new checkpoint is on the disk under its name."""
        self._written = time.perf_counter()

    def kept(self, n_rounds: int, n_bytes: int) -> None:
        """And it lasts, and the oldest is gone."""
        now = time.perf_counter()
        parts = (self._made - self._began, self._written - self._made, now - self._written)
        self.costs.append(Cost(n_rounds, n_bytes, *parts, time.thread_time() - self._processor))

    def store(self, folder: str) -> FolderCheckpoints:
        """In place of checkpoints_at."""
        meter = self

        class Metered(FolderCheckpoints):
            def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
                super().put(job_id, n_rounds, content)
                meter.kept(n_rounds, len(content))

            def _sync(self) -> None:
                meter.renamed()
                super()._sync()

        return Metered(Path(folder))


@contextlib.contextmanager
def metered() -> Iterator[Meter]:
    """Checkpoints of members that run in the block are noted."""
    meter = Meter()
    with (
        mock.patch("workers.observer.to_memory", meter.make),
        mock.patch("workers.member.checkpoints_at", meter.store),
    ):
        yield meter


class Task(NamedTuple):
    """What a member trains: alone with so many threads, or as one of the roster with one."""

    job: TrainingJob
    threads: int
    roster: Roster | None


class Told(NamedTuple):
    """What a training came to."""

    train_seconds: float
    round_seconds: float
    costs: list[Cost]


def run(task: Task, rank: int, endpoint: Endpoint) -> Told:
    """Train as one member."""
    with contextlib.ExitStack() as stack:
        meter = stack.enter_context(metered())
        if task.roster is None:
            outcome = run_member(assign(task.job, [task.threads])[0], Alone(), NoProgress())
        else:
            links = endpoint.connect(task.roster, rank, 60.0)
            who = Member(task.roster.job_id, task.roster.run, rank)
            mesh = stack.enter_context(MeshCollective(who, links))
            outcome = run_member(assign(task.job, [1] * mesh.size)[rank], mesh, NoProgress())
    return Told(outcome.seconds["train"], outcome.seconds["per_round"], meter.costs)


def member(pipe: Connection, rank: int) -> None:
    """A process that runs what it is sent, until it is sent None."""
    endpoint = Endpoint(LOOPBACK)
    pipe.send(Seat(endpoint.host, endpoint.port))
    while (task := pipe.recv()) is not None:
        pipe.send(run(task, rank, endpoint))
    endpoint.close()


class Members:
    """The processes, and what rank 0 says of a training in one of them or in both."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(MEMBERS)]
        self._pipes = [mine for mine, _ in pairs]
        self._processes = [
            context.Process(target=member, args=(theirs, rank), daemon=True) for rank, (_, theirs) in enumerate(pairs)
        ]
        for process in self._processes:
            process.start()
        self._seats = tuple(pipe.recv() for pipe in self._pipes)

    def alone(self, job: TrainingJob) -> Told:
        """In one process of two threads."""
        self._pipes[0].send(Task(job, MEMBERS, None))
        told: Told = self._pipes[0].recv()
        return told

    def gang(self, job: TrainingJob) -> Told:
        """On both."""
        roster = Roster(job.job_id, job.run, self._seats, new_secret())
        for pipe in self._pipes:
            pipe.send(Task(replace(job, threads=1), 1, roster))
        first, *_ = [pipe.recv() for pipe in self._pipes]
        return Told(*first)

    def close(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()


def write_table(case: Case, path: Path) -> DataPlan:
    """The case's rows as a file."""
    codes, labels = synthetic(case)
    columns = {f"f{j}": codes[j] for j in range(case.n_features)}
    pq.write_table(pa.table({**columns, "label": labels}), path)
    return plan_data(DataRequest((str(path),), None, "label"))


def time_pairs(
    train: Callable[[TrainingJob], Told], job: TrainingJob, settings: CheckpointSettings, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Trainings with and without checkpoints, in turns."""
    trial = train(replace(job, config=replace(job.config, rounds=TRIAL_ROUNDS)))
    rounds = max(TRIAL_ROUNDS, round(arguments.train_seconds / trial.round_seconds))
    plain = replace(job, config=replace(job.config, rounds=rounds))
    kept = replace(plain, checkpoints=settings)
    pairs = []
    for repeat in range(arguments.repeats):
        first, second = (plain, kept) if repeat % 2 == 0 else (kept, plain)
        told = {each.checkpoints is not None: train(each) for each in (first, second)}
        pairs.append((told[False], told[True]))
    return summary(rounds, pairs)


def summary(rounds: int, pairs: list[tuple[Told, Told]]) -> dict[str, Any]:
    """What all pairs of trainings without and with checkpoints came to."""
    spent = sum(cost.seconds for _, kept in pairs for cost in kept.costs)
    last = pairs[-1][1].costs[-1]
    thousand = statistics.median(1000 * cost.seconds / cost.rounds for _, kept in pairs for cost in kept.costs)
    return {
        "rounds": rounds,
        "train_seconds": [kept.train_seconds for _, kept in pairs],
        "spent": spent / sum(kept.train_seconds for _, kept in pairs),
        "paired": statistics.median(kept.train_seconds / plain.train_seconds - 1 for plain, kept in pairs),
        "seconds_a_1000_rounds": thousand,
        "last": last._asdict(),
        "costs": [cost._asdict() for _, kept in pairs for cost in kept.costs],
    }


def time_case(case: Case, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """In one process and on a gang."""
    weak_learner = {"kind": "hamming_tree", "max_leaves": case.max_leaves}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": 1})
    with tempfile.TemporaryDirectory() as folder:
        plan = write_table(case, Path(folder) / "rows.parquet")
        settings = CheckpointSettings(str(Path(folder) / "checkpoints"), arguments.seconds)
        members = Members()
        try:
            ways = {"one process": members.alone, "gang of 2": members.gang}
            job = TrainingJob("benchmark", 1, plan, config)
            return [
                {"case": case.name, "trained": name, **time_pairs(train, job, settings, arguments)}
                for name, train in ways.items()
            ]
        finally:
            members.close()


def show(results: list[dict[str, Any]], seconds: float) -> None:
    """A table for people."""
    columns = ("rounds", "train s", "checkpoints", "made s", "written s", "replaced s", "MB", "spent", "paired")
    title = f"checkpoints every {seconds:g} s; made to MB: the last one's\n{machine_line()}"
    table = Table("table", "trained", *columns, "s a 1,000 rounds", title=title)
    for each in results:
        last = each["last"]
        parts = [f"{last[name]:.3f}" for name in ("made", "written", "replaced")]
        table.add_row(
            each["case"],
            each["trained"],
            str(each["rounds"]),
            f"{statistics.mean(each['train_seconds']):.1f}",
            str(len(each["costs"])),
            *parts,
            f"{last['n_bytes'] / 1e6:.1f}",
            f"{each['spent']:.2%}",
            f"{each['paired']:+.2%}",
            f"{each['seconds_a_1000_rounds']:.3f}",
        )
    Console(width=150).print(table)


def main() -> None:
    """Time all cases, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", default=NAMES, help=f"of {NAMES}; all by default")
    parser.add_argument("--seconds", type=float, default=30.0, help="between two checkpoints")
    parser.add_argument("--train-seconds", type=float, default=36.0, help="about how long a training takes")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = [case for case in (*CASES, LARGER) if case.name in arguments.case]
    results = [each for case in cases for each in time_case(case, arguments)]
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "bar": BAR, "checkpoints": results}, indent=2))
    else:
        show(results, arguments.seconds)


if __name__ == "__main__":
    main()
