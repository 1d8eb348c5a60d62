"""Times the sum of an array over members, beside XGBoost's own collective.

    python -m benchmarks.collective [--members 2] [--json]

Members are plain processes, in the clear and with TLS, then members of a gang on an embedded Dask cluster. All
collectives run in the same processes on the same arrays and take turns, repeat by repeat, so that a busy machine slows
all of them. Figures are medians over all calls of the member of rank 0. Where XGBoost is not installed its figures are
missing, as are those of Dask workers with TLS.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, machine_line
from boost_core.collective import Collective
from boost_core.config import Choice, TrainingConfig
from boost_core.records import StopReason
from service.certificates import make_certificates
from workers.cluster import LOOPBACK, connect
from workers.cluster_calls import known_workers
from workers.data_plan import DataPlan, ParquetRows, TableRows
from workers.endpoint import Endpoint
from workers.gang import GangSettings, run_gang
from workers.gang_leases import in_order
from workers.job import Assignment, MemberOutcome, NoProgress, Progress, TrainingJob
from workers.mesh import Member, MeshCollective
from workers.recovery import Plan
from workers.relay import Receiver
from workers.restart import Remains
from workers.roster import Roster, Seat, new_secret
from workers.tls import Contexts, contexts, security

SIZES = {"8 KB": 8 << 10, "80 KB": 80 << 10, "8 MB": 8 << 20}  # int64 arrays
CALLS = {"8 KB": 300, "80 KB": 300, "8 MB": 15}  # in one repeat
REPEATS = 5
DASK_SIZE = "80 KB"
NAMES = ("edgewise", "edgewise with TLS", "xgboost")
Sum = Callable[[NDArray[np.int64]], NDArray[np.int64]]
Seconds = dict[str, list[float]]


def time_calls(sum_over_members: Sum, size: str, rank: int) -> list[float]:
    """Seconds of every call in one repeat."""
    values = np.arange(SIZES[size] // 8, dtype=np.int64) + rank
    sum_over_members(values)  # the first call finds connections idle and buffers cold
    seconds = []
    for _ in range(CALLS[size]):
        started = time.perf_counter()
        sum_over_members(values)
        seconds.append(time.perf_counter() - started)
    return seconds


def xgboost_sum(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """XGBoost's all-reduce of the same array."""
    from xgboost import collective

    total: NDArray[np.int64] = collective.allreduce(values, collective.Op.SUM)
    return total


@contextlib.contextmanager
def xgboost_members(arguments: dict[str, Any] | None) -> Iterator[Sum | None]:
    """XGBoost's sum among the processes that entered with the same tracker's arguments, if there is a tracker."""
    if arguments is None:
        yield None
        return
    from xgboost.collective import CommunicatorContext

    # It prints every member's rank, whatever its verbosity is set to.
    with contextlib.redirect_stdout(io.StringIO()), CommunicatorContext(**arguments):
        yield xgboost_sum


def start_tracker(n_members: int) -> Any:
    """XGBoost's meeting point for its members; None if XGBoost is not installed."""
    try:
        from xgboost import RabitTracker
    except ImportError:
        return None
    tracker = RabitTracker(n_workers=n_members, host_ip=LOOPBACK)
    tracker.start()
    return tracker


# --- plain processes ---------------------------------------------------------------------------------------


def plain_member(pipe: Connection, rank: int, folder: Path) -> None:
    """One process: times all collectives in turns; folder: of certificates."""
    with ExitStack() as stack:
        plain = stack.enter_context(plain_mesh(pipe, rank, None))
        encrypted = stack.enter_context(plain_mesh(pipe, rank, contexts(security(folder), "tls://")))
        other = stack.enter_context(xgboost_members(pipe.recv()))
        sums = {"edgewise": plain.sum, "edgewise with TLS": encrypted.sum} | ({"xgboost": other} if other else {})
        pipe.send(time_in_turns(sums, rank))


@contextlib.contextmanager
def plain_mesh(pipe: Connection, rank: int, certificates: Contexts | None) -> Iterator[MeshCollective]:
    """This process's end of a mesh: tells where it listens and hears the roster."""
    endpoint = Endpoint(LOOPBACK, certificates)
    pipe.send(Seat(endpoint.host, endpoint.port))
    roster: Roster = pipe.recv()
    links = endpoint.connect(roster, rank, 30.0)
    endpoint.close()
    with MeshCollective(Member(roster.job_id, roster.run, rank), links) as mesh:
        yield mesh


def time_in_turns(sums: dict[str, Sum], rank: int) -> dict[str, Seconds]:
    """Seconds of all calls, by collective and size."""
    times: dict[str, Seconds] = {name: {size: [] for size in SIZES} for name in sums}
    for size in SIZES:
        for _ in range(REPEATS):
            for name, sum_over_members in sums.items():
                times[name][size] += time_calls(sum_over_members, size, rank)
    return times


def time_plain(n_members: int) -> dict[str, dict[str, float]]:
    """Median seconds by collective and size, between plain processes."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        for rank in range(n_members):
            mine, theirs = context.Pipe()
            process = context.Process(target=plain_member, args=(theirs, rank, Path(folder)), daemon=True)
            process.start()
            pipes.append(mine)
            processes.append(process)
        for _ in range(2):  # a mesh in the clear, a mesh with certificates
            tell(pipes, Roster("benchmark", 1, tuple(pipe.recv() for pipe in pipes), new_secret()))
        tracker = start_tracker(n_members)
        tell(pipes, tracker.worker_args() if tracker else None)
        times, *_ = [pipe.recv() for pipe in pipes]
        for process in processes:
            process.join()
    return {name: {size: statistics.median(each) for size, each in sizes.items()} for name, sizes in times.items()}


def tell(pipes: list[Connection], what: Any) -> None:
    for pipe in pipes:
        pipe.send(what)


# --- members on a Dask cluster -----------------------------------------------------------------------------


def gang_member(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """What a member of the gang runs here instead of training."""
    seconds = time_calls(collective.sum, DASK_SIZE, assignment.rank)
    figures = {str(number): each for number, each in enumerate(seconds)}
    return MemberOutcome(assignment.rank, None, StopReason.ROUNDS, (), figures, 0, 0)


def xgboost_task(arguments: dict[str, Any], rank: int) -> list[float]:
    """The same as a plain Dask task a worker, as XGBoost's own Dask interface does it."""
    with xgboost_members(arguments) as other:
        assert other is not None
        return time_calls(other, DASK_SIZE, rank)


def time_gang(client: Client, n_members: int, run: int) -> list[float]:
    """Seconds of one repeat between the members of a gang."""
    plan = DataPlan(TableRows((ParquetRows("none", (1,)),)), None, "label", (), ("a", "b"))
    config = TrainingConfig(Choice("none", {}), Choice("none", {}), 1, 255, 0)
    job = TrainingJob("benchmark", run, plan, config)
    settings = GangSettings(member="benchmarks.collective:gang_member")
    told = (NoProgress(), Receiver(NoProgress()))
    outcomes = run_gang(job, client, Plan(Remains(), n_members), told, settings)
    return list(next(outcome for outcome in outcomes if outcome.rank == 0).seconds.values())


def time_xgboost_tasks(client: Client, n_members: int) -> list[float]:
    """Seconds of one repeat between XGBoost's members on the same workers; none without XGBoost."""
    tracker = start_tracker(n_members)
    if tracker is None:
        return []
    workers = in_order(known_workers(client, 10.0))[:n_members]
    futures = [
        client.submit(xgboost_task, tracker.worker_args(), rank, workers=[worker.address], pure=False)
        for rank, worker in enumerate(workers)
    ]
    first, *_ = client.gather(futures)
    return list(first)


def time_dask(n_members: int) -> dict[str, float]:
    """Median seconds of a sum by collective, between Dask workers."""
    times: dict[str, list[float]] = {"edgewise": [], "xgboost": []}
    with connect(f"local:{n_members}") as client:
        for run in range(1, REPEATS + 1):
            times["edgewise"] += time_gang(client, n_members, run)
            times["xgboost"] += time_xgboost_tasks(client, n_members)
    return {name: statistics.median(each) for name, each in times.items() if each}


# --- what is printed ---------------------------------------------------------------------------------------


def show(figures: dict[str, Any]) -> None:
    """A table for people."""
    title = f"sum over {figures['members']} members, milliseconds (median)\n{machine_line()}"
    table = Table("members are", "array", *NAMES, title=title)
    for size in SIZES:
        table.add_row(
            "processes", size, *[milliseconds(figures["processes"].get(name, {}).get(size)) for name in NAMES]
        )
    table.add_row("Dask workers", DASK_SIZE, *[milliseconds(figures["dask_workers"].get(name)) for name in NAMES])
    Console().print(table)


def milliseconds(seconds: float | None) -> str:
    return f"{seconds * 1e3:.3f}" if seconds is not None else "-"


def main() -> None:
    """Time all, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = {
        "machine": describe_machine(),
        "members": arguments.members,
        "unit": "seconds",
        "processes": time_plain(arguments.members),
        "dask_workers": time_dask(arguments.members),
    }
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        show(figures)


if __name__ == "__main__":
    main()
