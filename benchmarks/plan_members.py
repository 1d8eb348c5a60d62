"""The processes that measure the plan's constants and check its figures (plan.py)."""

import multiprocessing
import signal
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.gang import LOOPBACK, Case, Codes, synthetic, time_rounds
from benchmarks.namespaces import address, enter
from boost_core.collective import Alone, Integers
from workers.endpoint import Endpoint
from workers.mesh import DIRECT_BYTES, Member, MeshCollective
from workers.roster import Roster, Seat, new_secret
from workers.wire import wire_bytes

SMALL_CALLS, LARGE_CALLS = 400, 20
END_SECONDS = 10.0


@dataclass
class Counts:
    """What one member has to do and to send, in all rounds. cells: rows x features whose gains are added up; values:
    numbers of its histograms before they are reduced; exchanges: messages from and to every other member."""

    cells: int = 0
    values: int = 0
    exchanges: int = 0
    sent: int = 0


class StandIn(Alone):
    """A gang of any size in one process: all other members hold the same rows and say the same, but are not there.

    Cuts are found in the features of its own slice, the first ones. Bytes are counted by the formulas: a reduce-scatter
    sends all slices but the own one, a gather its array to all others, a sum the same or, if it is large, 2 (M - 1) / M
    of the array.
    """

    def __init__(self, size: int, n_features: int, counting: bool) -> None:
        self.size = size
        self.counts = Counts()
        self._n_features, self._counting, self._others = n_features, counting, size - 1

    def begin_round(self, number: int) -> None:
        if number == 1:
            self.counts = Counts()

    def sum(self, values: Integers) -> Integers:
        if self._counting:
            n_bytes, direct = wire_bytes(values), values.nbytes * self._others <= DIRECT_BYTES
            self.counts.exchanges += 1 if direct else 2
            self.counts.sent += n_bytes * self._others if direct else 2 * n_bytes * self._others // self.size
        return self.size * values

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        own = histograms[:, bounds[0] : bounds[1], :n_used]
        if self._counting:
            n_nodes, n_bins, _ = histograms.shape
            n_rows = own[:, :, -1].sum() * n_bins // (int(bounds[1]) * self._n_features)  # the last channel counts rows
            self.counts.cells += int(n_rows) * self._n_features
            self.counts.values += n_nodes * n_bins * own.shape[2]
            self.counts.exchanges += 1
            self.counts.sent += wire_bytes(histograms[:, bounds[1] :, :n_used])
        return self.size * own

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        self.counts.exchanges += 1
        self.counts.sent += values.nbytes * self._others
        return [values] * self.size


def stand_in(case: Case, codes: Codes, size: int) -> dict[str, float]:
    """Seconds and counts of a round of one of so many members."""
    bins, labels = codes
    n_own = len(labels) // size
    alike = np.tile(bins[:, :n_own], size), np.tile(labels[:n_own], size)
    counted = StandIn(size, case.n_features, counting=True)
    time_rounds(case, alike, counted, 1)
    seconds = time_rounds(case, alike, StandIn(size, case.n_features, counting=False), 1)["seconds"]
    n_rounds = case.rounds + 1
    return {"seconds": seconds} | {name: count / n_rounds for name, count in asdict(counted.counts).items()}


def exchange(case: Case, mesh: MeshCollective) -> dict[str, float]:
    """Seconds of an exchange of next to nothing and of four histograms, and the bytes that these send."""
    little = np.arange(16, dtype=np.int64)
    n_bins = case.n_features * case.n_values
    histograms = np.ones((4, n_bins, case.n_classes + 1), np.int64)
    bounds = np.arange(mesh.size + 1, dtype=np.int64) * n_bins // mesh.size
    mesh.begin_round(1)
    found = {
        "small": seconds_of(lambda: mesh.sum(little), SMALL_CALLS),
        "large": seconds_of(lambda: mesh.reduce_scatter(histograms, bounds), LARGE_CALLS),
    }
    before = mesh.bytes_sent
    mesh.reduce_scatter(histograms, bounds)
    return found | {"bytes": mesh.bytes_sent - before}


def seconds_of(call: Any, times: int) -> float:
    """Median of so many calls, after one that finds buffers cold."""
    call()
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


class Task(NamedTuple):
    """What a process is to do: be a stand-in of one of `size` members, or with a roster train or time exchanges."""

    kind: str
    size: int
    rank: int
    roster: Roster | None


def do(task: Task, case: Case, codes: Codes, endpoint: Endpoint) -> dict[str, float]:
    """A task's figures."""
    if task.roster is None:
        return stand_in(case, codes, task.size)
    links = endpoint.connect(task.roster, task.rank, 60.0)
    with MeshCollective(Member(task.roster.job_id, task.roster.run, task.rank), links) as mesh:
        return exchange(case, mesh) if task.kind == "exchange" else time_rounds(case, codes, mesh, 1)


def serve(pipe: Connection, case: Case, host: str, namespace: str | None) -> None:
    """A process: does what it is sent until it is sent None or whoever sends is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    if namespace is not None:
        enter(namespace)
    codes, endpoint = synthetic(case), Endpoint(host)
    pipe.send(Seat(endpoint.host, endpoint.port))
    try:
        while (task := pipe.recv()) is not None:
            pipe.send(do(task, case, codes, endpoint))
    except EOFError:
        pass


class Processes:
    """Several of them, each in a namespace of its own or all in that of the caller. None is left afterwards."""

    def __init__(self, case: Case, n: int, names: Sequence[str] | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        self._run = 0
        for number in range(n):
            mine, theirs = context.Pipe()
            place = (address(number), names[number]) if names else (LOOPBACK, None)
            process = context.Process(target=serve, args=(theirs, case, *place), daemon=True)
            process.start()
            theirs.close()  # so that reading ends when the process does
            self._pipes.append(mine)
            self._processes.append(process)

    def __enter__(self) -> Self:
        try:
            self._seats = tuple(pipe.recv() for pipe in self._pipes)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def together(self, kind: str, n: int) -> list[dict[str, float]]:
        """Figures of the first n, connected to each other, by rank."""
        self._run += 1
        roster = Roster("plan", self._run, self._seats[:n], new_secret())
        return self._told([Task(kind, n, rank, roster) for rank in range(n)])

    def stand_ins(self, size: int) -> list[dict[str, float]]:
        """Figures of all, each one of `size` members whose others are not there."""
        return self._told([Task("stand in", size, 0, None) for _ in self._pipes])

    def _told(self, tasks: list[Task]) -> list[dict[str, float]]:
        pipes = self._pipes[: len(tasks)]
        for pipe, task in zip(pipes, tasks, strict=True):
            pipe.send(task)
        return [pipe.recv() for pipe in pipes]

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(END_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
