"""Compiles kernels in processes of their own: all that a member with many rows needs, before it reads, and those of
weak learners beside all others.

    member   starts the child -> waits -> reads -> loads the kernels from Numba's cache -> trains
    member   starts the child -> reads, compiles the rest and sums of leaves -> waits -> loads -> trains
    child    a line of JSON on its standard input -> compiles -> ends, also once that input ends: its member is gone

The first for memory: Numba and LLVM keep some 110 MB of functions that a process has compiled and do not of those that
it has loaded. The second for time: a process compiles one function at a time, and weak learners take half of it
(docs/performance.md); without the sums, in a process that trains alone, both take about as long. Whatever happens to
the child, the member compiles what it does not find.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba.core.registry import cpu_target

from boost_core import jit
from boost_core.collective import Alone
from boost_core.config import TrainingConfig
from boost_core.intrinsics import width_for
from boost_core.team import Rehearsal
from boost_core.warm_up import WarmUp, warm_up, warm_up_growth, warm_up_sums
from workers.assignment import assign
from workers.data_plan import DataRequest, plan_data
from workers.job import Assignment, TrainingJob
from workers.loading import Loader
from workers.machine_limits import cpu_limit, memory_limit
from workers.memory_need import PROCESS_BYTES
from workers.shelf import Shelf

LEAST_CELLS = 64 << 20  # bytes of bins: below, 110 MB are not worth the second or two that a child takes to start
CHILD_BYTES = 250_000_000  # that compiles weak learners; it peaks at 220 to 260 MB
GIVE_UP_SECONDS = 300.0  # half of what other members wait in round 0 (mesh.py); compiling takes 9 to 13
LOOK_SECONDS = 0.2
TINY_ROWS = 600  # more different values than the most bins
UNLIKE = ("rounds", "seed", "max_bins")  # of a configuration, what no kernel depends on


@dataclass(frozen=True)
class Order:
    """What kernels are for. types: different ones of the features, as Arrow calls them; growth: those of weak learners
    alone are wanted."""

    config: TrainingConfig
    n_classes: int
    kind: WarmUp
    types: tuple[str, ...]
    growth: bool = False

    @classmethod
    def of(cls, job: TrainingJob, kind: WarmUp) -> Self:
        """Of a job's member."""
        types = sorted({feature.type for feature in job.plan.features})
        return cls(job.config, len(job.plan.classes), kind, tuple(types))

    def to_json(self) -> str:
        """One line."""
        values = {"config": self.config.to_dict(), "n_classes": self.n_classes, "kind": asdict(self.kind)}
        return json.dumps({**values, "types": self.types, "growth": self.growth}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`."""
        values = json.loads(text)
        config, kind = TrainingConfig.from_dict(values["config"]), WarmUp(**values["kind"])
        return cls(config, values["n_classes"], kind, tuple(values["types"]), values["growth"])

    def of_growth(self) -> Self:
        """The part of it that is weak learners."""
        return replace(self, types=(), growth=True)

    def marker(self) -> Path | None:
        """The file that says that these kernels were made on such a processor; None: nothing is compiled or kept.

        It saves starting a child and is trusted for nothing else.
        """
        if jit.JIT_DISABLED or jit.CACHE is None:
            return None
        values = self._of_growth_alone() if self.growth else json.loads(self.to_json())
        values["config"] = {name: value for name, value in values["config"].items() if name not in UNLIKE}
        machine = cpu_target.target_context.codegen().magic_tuple()  # by which Numba's cache tells processors apart
        text = json.dumps([values, numba.__version__, machine], sort_keys=True)
        return jit.CACHE / f"made-{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def _of_growth_alone(self) -> dict[str, Any]:
        """What decides kernels of weak learners. It may leave out what decides a few: a marker is no promise."""
        config = self.config
        names = {"algorithm": config.algorithm.name, "weak_learner": config.weak_learner.name}
        kind = asdict(replace(self.kind, validated=False))  # which no weak learner depends on
        return {"config": names, "kind": kind, "width": width_for(self.n_classes + 1), "growth": True}


def worth_a_process(assignment: Assignment, order: Order) -> bool:
    """Whether a member has so many rows that what compiling leaves behind is noticed, and its kernels are not made."""
    return _cells(assignment) >= LEAST_CELLS and _unmade(order.marker())


def _cells(assignment: Assignment) -> int:
    """Bytes of a member's bins."""
    ranges = (*assignment.train_ranges, *assignment.valid_ranges)
    return len(assignment.job.plan.features) * sum(stop - start for start, stop in ranges)


def _unmade(marker: Path | None) -> bool:
    return marker is not None and not marker.exists()


def worth_a_second_process(assignment: Assignment, order: Order) -> bool:
    """Whether kernels of weak learners are not made, and there are a processor and memory for a child that makes them
    while the member reads its rows, which are not many."""
    room = memory_limit() - PROCESS_BYTES - CHILD_BYTES
    fits = assignment.threads > 1 and cpu_limit() > 1 and _cells(assignment) < min(LEAST_CELLS, room)
    return fits and _unmade(order.of_growth().marker())


def make_kernels(order: Order, cancelled: Callable[[], bool]) -> None:
    """Wait for a child that makes them. Nothing that goes wrong with it is an error."""
    marker = order.marker()
    with suppress(OSError), _child(order) as child:
        if marker is not None and _made(child, cancelled):
            for made in (marker, order.of_growth().marker()):
                if made is not None:
                    made.touch()


@contextmanager
def growth_made_apart(
    assignment: Assignment, order: Order, cancelled: Callable[[], bool]
) -> Iterator[Callable[[], None]]:
    """Have a child compile what weak learners need from now on, where that is worth it. What is given compiles what the
    child leaves to the member, so that both take as long, and waits for the child; afterwards it is gone. Nothing that
    goes wrong with it is an error.
    """
    children: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        if worth_a_second_process(assignment, order):
            with suppress(OSError):
                children.append(stack.enter_context(_child(order.of_growth())))

        def wait() -> None:
            while children:
                child = children.pop()
                if not order.kind.in_gang:
                    warm_up_sums(order.config, order.n_classes, order.kind)
                if not _made(child, cancelled):
                    child.kill()

        yield wait
    marker = order.of_growth().marker()
    if marker is not None and _unmade(marker):
        with suppress(OSError):  # the caller has made them, if the child has not
            marker.touch()


@contextmanager
def _child(order: Order) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is at work, and is gone afterwards. It imports what this process does, and says nothing.

    Errors: OSError if it cannot be started, or is gone at once.
    """
    paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    child = subprocess.Popen(
        [sys.executable or "python", "-P", "-m", "workers.kernel_maker"],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )
    with child:  # which closes its input and waits for it
        try:
            assert child.stdin is not None
            child.stdin.write(order.to_json().encode() + b"\n")
            yield child
        finally:
            child.kill()


def _made(child: subprocess.Popen[bytes], cancelled: Callable[[], bool]) -> bool:
    """Whether a child came to its end, which nobody waits for once the job is cancelled."""
    give_up = time.monotonic() + GIVE_UP_SECONDS
    while not cancelled() and time.monotonic() < give_up:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(LOOK_SECONDS) == 0
    return False


def _end_with_member() -> None:
    """Wait until nobody holds the other end of the standard input, then end this process at once."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def load_tiny(order: Order) -> None:
    """Read and bin a tiny table with columns of the same types: kernels exist for them then, for columns of few and of
    many different values. The member may still compile one or another that its own columns need."""
    values = np.arange(TINY_ROWS)
    features = {
        f"{name}{n_values}": pa.array(values % n_values).cast(name, safe=False)
        for name in order.types
        for n_values in (2, TINY_ROWS)
    }
    with tempfile.TemporaryDirectory(prefix="edgewise-kernels-") as folder, Rehearsal() as team:
        path = str(Path(folder) / "tiny.parquet")
        pq.write_table(pa.table({**features, "label": pa.array(values % 2)}), path)
        plan = plan_data(DataRequest((path,), (path,), "label"))
        [assignment] = assign(TrainingJob("kernels", 1, plan, order.config, 1), [1])
        Loader(assignment, Alone(), team, lambda stage: None).load(Shelf())


def main() -> None:
    """Compile what the standard input asks for."""
    order = Order.from_json(sys.stdin.readline())
    threading.Thread(target=_end_with_member, daemon=True).start()
    if order.growth:
        warm_up_growth(order.config, order.n_classes, order.kind)
        return
    warm_up(order.config, order.n_classes, order.kind)
    load_tiny(order)


if __name__ == "__main__":
    main()
