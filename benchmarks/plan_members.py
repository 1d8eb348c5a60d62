"""The processes that measure the plan's constants and check its figures (plan.py)."""

import itertools
import multiprocessing
import signal
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.gang import LOOPBACK, Case, Codes, synthetic, time_rounds
from benchmarks.namespaces import address, enter
from boost_core.binning import make_binning
from boost_core.collective import Alone, Integers
from boost_core.cut import FeatureSlices, slice_features
from boost_core.gang_steps import SMALL, Frontier
from boost_core.gang_sums import ReducedHistograms
from workers.endpoint import Endpoint
from workers.mesh import DIRECT_BYTES, Member, MeshCollective
from workers.roster import Roster, Seat, new_secret
from workers.wire import wire_bytes

SMALL_CALLS, LARGE_CALLS = 400, 20
SHORT, LONG = 20, 100  # passes of work between two exchanges: about 1 and 5 ms
TURNS = 120  # of work and an exchange
WORK_BYTES = 1 << 20  # that work goes over: as a member's histograms, it does not fit beside those of others
END_SECONDS = 10.0


@dataclass
class Counts:
    """What one member does and sends in all rounds. cells: rows x features whose gains are added up; values: numbers of
    its histograms before they are reduced; exchanges: messages from and to every other member."""

    cells: float = 0.0
    values: float = 0.0
    exchanges: float = 0.0
    sent: float = 0.0


class StandIn(Alone):
    """A gang of any size in one process: all other members hold the same rows and say the same, but are not there.

    Cuts are found in the features of its own slice, the first ones: a member's work, and nothing of the network.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.counts = Counts()

    def begin_round(self, number: int) -> None:
        if number == 1:
            self.counts = Counts()

    def sum(self, values: Integers) -> Integers:
        self.counts.exchanges += 1
        return self.size * values

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        own = histograms[:, bounds[0] : bounds[1], :n_used]
        self.counts.exchanges += 1
        self.counts.values += own.shape[0] * histograms.shape[1] * own.shape[2]
        return self.size * own

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        self.counts.exchanges += 1
        return [values] * self.size


class Counting(Alone):
    """One process that holds all members' rows, grows the trees that they would, and counts what each would send.

    Bytes are those of the formulas: a reduce-scatter sends all slices but the own one, a gather its array to all
    others, a sum the same or, if it is large, 2 (M - 1) / M of the array.
    """

    def __init__(self, size: int, bounds: Integers) -> None:
        self.size, self._bounds, self._others = size, bounds, size - 1
        self.counts = Counts()

    def begin_round(self, number: int) -> None:
        if number == 1:
            self.counts = Counts()

    def sum(self, values: Integers) -> Integers:
        n_bytes, direct = wire_bytes(values), values.nbytes * self._others <= DIRECT_BYTES
        self._send(n_bytes * self._others if direct else 2 * n_bytes * self._others / self.size, 1 if direct else 2)
        return values

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        used = histograms[:, :, :n_used]
        part = used // self.size  # about what one member's rows come to
        self.counts.values += used.size
        self._send(sum(wire_bytes(part[:, a:b]) for a, b in itertools.pairwise(self._bounds[1:].tolist())), 1)
        return used

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        self._send(values.nbytes * self._others, 1)
        return [values]

    def _send(self, n_bytes: float, exchanges: int) -> None:
        self.counts.sent += n_bytes
        self.counts.exchanges += exchanges


def counted_rounds(
    case: Case, codes: Codes, collective: StandIn | Counting, members: int, rows: tuple[int, int] | None = None
) -> dict[str, float]:
    """time_rounds, with the cells of the rows that are added to histograms in the counts; members: whose rows these
    are."""
    exchange = ReducedHistograms.exchange

    def noted(sums: ReducedHistograms, front: Frontier, chosen: Integers, order: NDArray[np.int32]) -> None:
        bounds = front.segments[chosen[:, SMALL]]
        collective.counts.cells += float((bounds[:, 1] - bounds[:, 0]).sum()) * case.n_features / members
        exchange(sums, front, chosen, order)

    with mock.patch.object(ReducedHistograms, "exchange", noted):
        return time_rounds(case, codes, collective, 1, rows)


def stand_in(case: Case, codes: Codes, size: int) -> dict[str, float]:
    """Seconds and counts of a round of one of so many members."""
    bins, labels = codes
    n_own = len(labels) // size
    alike = np.tile(bins[:, :n_own], size), np.tile(labels[:n_own], size)
    mirrored = StandIn(size)
    seconds = counted_rounds(case, alike, mirrored, 1)["seconds"]
    return {"seconds": seconds} | a_round(case, mirrored.counts)


def count(case: Case, codes: Codes, size: int) -> dict[str, float]:
    """What each of so many members does and sends in a round."""
    n_features = len(codes[0])
    binning = make_binning([np.arange(most, dtype=np.float64) for most in codes[0].max(axis=1)], [False] * n_features)
    counting = Counting(size, slice_features(binning, 0, size).bins)

    def whole(bin_start: NDArray[np.int64], rank: int, size: int) -> FeatureSlices:
        features = np.array([0, *[bin_start.shape[0] - 1] * size], np.int64)
        return FeatureSlices(features, bin_start[features], rank)

    with mock.patch("boost_core.gang_sums.slice_bins", whole):
        counted_rounds(case, codes, counting, size, (0, len(codes[1])))
    return a_round(case, counting.counts)


def a_round(case: Case, counts: Counts) -> dict[str, float]:
    return {name: total / (case.rounds + 1) for name, total in asdict(counts).items()}


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


class Passes:
    """Work of a known length that has nothing to do with training: passes over an array."""

    def __init__(self) -> None:
        self._numbers = np.zeros(WORK_BYTES // 8, np.int64)

    def __call__(self, n: int) -> None:
        for _ in range(n):
            np.add(self._numbers, 1, out=self._numbers)


def work_alone() -> dict[str, float]:
    """Seconds of short and of long work without an exchange."""
    passes = Passes()
    return {"short": mean_seconds(lambda: passes(SHORT), TURNS), "long": mean_seconds(lambda: passes(LONG), TURNS)}


def turns(case: Case, mesh: MeshCollective) -> dict[str, float]:
    """Seconds of short and of long work with a small exchange each, of large exchanges less a small one, and the bytes
    of these: what members that share cores wait for each other. Nothing is trained."""
    passes, little = Passes(), np.arange(16, dtype=np.int64)

    def turn(n: int) -> None:
        passes(n)
        mesh.sum(little)

    mesh.begin_round(1)
    found = {"short": mean_seconds(lambda: turn(SHORT), TURNS), "long": mean_seconds(lambda: turn(LONG), TURNS)}
    told = exchange(case, mesh)
    return found | {"large": max(0.0, told["large"] - told["small"]), "bytes": told["bytes"]}


def mean_seconds(call: Any, times: int) -> float:
    """Mean of so many calls: waits are rare and long, and count."""
    call()
    started = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - started) / times


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
    """What a process is to do: alone stand in for one of `size` members, count or work, with a roster train, exchange
    or take turns."""

    kind: str
    size: int
    rank: int
    roster: Roster | None


def do(task: Task, case: Case, codes: Codes, endpoint: Endpoint) -> dict[str, float]:
    """A task's figures."""
    if task.roster is None:
        if task.kind == "work":
            return work_alone()
        return count(case, codes, task.size) if task.kind == "count" else stand_in(case, codes, task.size)
    links = endpoint.connect(task.roster, task.rank, 60.0)
    with MeshCollective(Member(task.roster.job_id, task.roster.run, task.rank), links) as mesh:
        if task.kind == "turns":
            return turns(case, mesh)
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

    def apart(self, kind: str, size: int) -> list[dict[str, float]]:
        """Figures of all, each for itself, as if it were one of `size` members."""
        return self._told([Task(kind, size, 0, None) for _ in self._pipes])

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
