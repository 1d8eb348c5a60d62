"""What checkpoints cost of training time, in one process of two threads and on a gang of two members of one thread.

    python -m benchmarks.checkpoints [--case NAME ...] [--seconds 30] [--train-seconds 36] [--repeats 1] [--json]

A training writes a checkpoint every so many seconds and one at its end, as the service does. Of training seconds:
spent   all seconds in which a checkpoint is handed over (in the training's own thread), made (the model so far as
        bytes), written (to the disk) or replaces the one before, though all but the last run beside the training
taken   how much longer the training took for them: rounds while one was on its way, less as many times the median of
        the rounds right before and after, and all seconds of the last one. Trainings with and without checkpoints
        differ by far more from each other than by these.
A checkpoint holds all rounds so far, so its seconds for 1,000 rounds are told too.
"""

import argparse
import contextlib
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
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
from workers.job import CheckpointSettings, NoProgress, RoundProgress, TrainingJob
from workers.member import run_member
from workers.mesh import Member, MeshCollective
from workers.observer import TrainingObserver
from workers.roster import Roster, Seat, new_secret
from workers.rounds_so_far import RoundsSoFar

NAMES = ("letter", "1,000,000 x 50 x 8")
LARGER = Case("1,000,000 x 50 x 8", 1_000_000, 50, 256, 8, 21, 0)
TRIAL_ROUNDS = 20  # to see how many rounds fill the seconds
BAR = 0.01
NEIGHBOURS = 20  # rounds on either side at least
CHECKPOINT = TrainingObserver.checkpoint


class Cost(NamedTuple):
    """Of one checkpoint, in seconds. began: by the clock that rounds are noted by; handed: what the training's own
    thread did, or all before the last one was made; processor: of the thread that made and wrote it."""

    rounds: int
    n_bytes: int
    began: float
    handed: float
    made: float
    written: float
    replaced: float
    processor: float

    @property
    def seconds(self) -> float:
        return self.handed + self.made + self.written + self.replaced


class Meter:
    """Stands where a member makes and keeps its checkpoints, and notes what each cost. One thread at a time writes."""

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self._asked = self._began = self._made = self._written = self._processor = 0.0

    def ask(self, observer: TrainingObserver) -> Checkpoint:
        """In place of an observer's checkpoint."""
        self._asked = time.perf_counter()
        return CHECKPOINT(observer)

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
        times = (self._asked, self._began, self._made, self._written, now)
        handed, made, written, replaced = (after - before for before, after in pairwise(times))
        processor = time.thread_time() - self._processor
        self.costs.append(Cost(n_rounds, n_bytes, self._asked, handed, made, written, replaced, processor))

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

    def ask(observer: TrainingObserver) -> Checkpoint:
        return meter.ask(observer)

    with (
        mock.patch.object(TrainingObserver, "checkpoint", ask),
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
    """What a training came to. ends: when each round was done."""

    train_seconds: float
    round_seconds: float
    costs: list[Cost]
    ends: list[float]

    @property
    def taken(self) -> float:
        """Seconds that the training took longer for its checkpoints."""
        *beside, last = self.costs
        return last.seconds + sum(self._longer(cost.began, cost.began + cost.seconds) for cost in beside)

    def _longer(self, start: float, stop: float) -> float:
        """How much longer the rounds that met start..stop took than their neighbours."""
        ends = np.array(self.ends)
        durations = np.diff(ends)  # of round k + 1, from ends[k]
        first, last = (int(np.searchsorted(ends, start)) - 1, int(np.searchsorted(ends, stop)))
        n = max(last - first, NEIGHBOURS)
        around = np.concatenate([durations[max(first - n, 0) : first], durations[last : last + n]])
        return float(durations[first:last].sum() - (last - first) * np.median(around))


class Watch(NoProgress):
    """Notes when each round was done."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def rounds_done(self, rounds: Sequence[RoundProgress]) -> None:
        self.ends.append(time.perf_counter())


def run(task: Task, rank: int, endpoint: Endpoint) -> Told:
    """Train as one member."""
    watch = Watch()
    with contextlib.ExitStack() as stack:
        meter = stack.enter_context(metered())
        if task.roster is None:
            outcome = run_member(assign(task.job, [task.threads])[0], Alone(), watch)
        else:
            links = endpoint.connect(task.roster, rank, 60.0)
            who = Member(task.roster.job_id, task.roster.run, rank)
            mesh = stack.enter_context(MeshCollective(who, links))
            outcome = run_member(assign(task.job, [1] * mesh.size)[rank], mesh, watch)
    return Told(outcome.seconds["train"], outcome.seconds["per_round"], meter.costs, watch.ends)


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


def time_trainings(
    train: Callable[[TrainingJob], Told], job: TrainingJob, settings: CheckpointSettings, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Trainings with checkpoints."""
    trial = train(replace(job, config=replace(job.config, rounds=TRIAL_ROUNDS)))
    rounds = max(TRIAL_ROUNDS, round(arguments.train_seconds / trial.round_seconds))
    kept = replace(job, config=replace(job.config, rounds=rounds), checkpoints=settings)
    return summary(rounds, [train(kept) for _ in range(arguments.repeats)])


def summary(rounds: int, trainings: list[Told]) -> dict[str, Any]:
    """What all trainings came to."""
    costs, seconds = [cost for told in trainings for cost in told.costs], [told.train_seconds for told in trainings]
    return {
        "rounds": rounds,
        "train_seconds": seconds,
        "spent": sum(cost.seconds for cost in costs) / sum(seconds),
        "taken": sum(told.taken for told in trainings) / sum(seconds),
        "seconds_a_1000_rounds": statistics.median(1000 * cost.seconds / cost.rounds for cost in costs),
        "last": costs[-1]._asdict(),
        "costs": [cost._asdict() for cost in costs],
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
                {"case": case.name, "trained": name, **time_trainings(train, job, settings, arguments)}
                for name, train in ways.items()
            ]
        finally:
            members.close()


def show(results: list[dict[str, Any]], seconds: float) -> None:
    """A table for people."""
    columns = (
        "rounds",
        "train s",
        "checkpoints",
        "handed s",
        "made s",
        "written s",
        "replaced s",
        "MB",
        "spent",
        "taken",
    )
    title = f"checkpoints every {seconds:g} s; handed to MB: the last one's\n{machine_line()}"
    table = Table("table", "trained", *columns, "s a 1,000 rounds", title=title)
    for each in results:
        last = each["last"]
        parts = [f"{last[name]:.3f}" for name in ("handed", "made", "written", "replaced")]
        table.add_row(
            each["case"],
            each["trained"],
            str(each["rounds"]),
            f"{statistics.mean(each['train_seconds']):.1f}",
            str(len(each["costs"])),
            *parts,
            f"{last['n_bytes'] / 1e6:.1f}",
            f"{each['spent']:.2%}",
            f"{each['taken']:+.2%}",
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
