"""Where a member's time goes: the clock of its stages, also of those inside kernels and of exchanges.

The engine has no clock. It tells which phase begins (boost_core/records.py), counts the time in its kernels by a clock
that it is given (boost_core/kernel_times.py), and the mesh counts its exchanges; here they come together.
"""

import ctypes
import os
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.kernel_times import (
    HISTOGRAMS,
    KERNELS,
    N_TIMES,
    NO_CLOCK,
    PARTITION,
    SEARCH,
    UPDATE,
    WEIGHTS,
    KernelClock,
    new_times,
)
from boost_core.records import Phase

READ, BIN, COMPILE = "read", "bin", "compile"
PACKING, EXCHANGE = "packing", "exchange"
# Of rounds, in the order of a round. Histograms, search and partition are parts of growing, of which the rest has its
# own row: preparing the objective, bookkeeping, waiting for other threads. Packing and exchange are taken out of
# whatever stage they happen in.
ROUND_STAGES = (
    Phase.GROWING.value,
    "histograms",
    "search",
    "partition",
    Phase.STEP.value,
    Phase.CONDITIONS.value,
    Phase.UPDATE.value,
    Phase.WEIGHTS.value,
    PACKING,
    EXCHANGE,
    Phase.REPORT.value,
    Phase.CHECKPOINT.value,
    Phase.OTHER.value,
)
STAGES = (READ, BIN, COMPILE, *ROUND_STAGES, Phase.VALIDATE.value)
PHASES = (READ, BIN, COMPILE, "train", Phase.VALIDATE.value)  # what an answer's `seconds` tells apart
PLACES = {name: place for place, name in enumerate(STAGES)}
_INSIDE = {
    "histograms": HISTOGRAMS,
    "search": SEARCH,
    "partition": PARTITION,
    Phase.UPDATE.value: UPDATE,
    Phase.WEIGHTS.value: WEIGHTS,
}
INSIDE = tuple((PLACES[name], entry) for name, entry in _INSIDE.items())
FIRST, LAST = PLACES[ROUND_STAGES[0]], PLACES[ROUND_STAGES[-1]] + 1
OF_ROUNDS = frozenset(ROUND_STAGES)
# Of counts of a clock: after times in kernels (kernel_times.py) those in exchanges, if there are any.
TALKS = ((PLACES[PACKING], N_TIMES), (PLACES[EXCHANGE], N_TIMES + 1))
MOST_MARKS = 256  # from which a clock charges them
BILLIONTH = 1e-9


@runtime_checkable
class Timed(Protocol):
    """A collective that knows how many seconds its exchanges have taken so far, and of these packing what is sent."""

    seconds_spent: float
    seconds_packing: float


def kernel_clock() -> KernelClock:
    """The system's monotonic clock, for Python and for kernels; for Python alone where there is none such."""
    function = getattr(ctypes.CDLL(None), "clock_gettime", None) if os.name == "posix" else None
    if function is None or ctypes.sizeof(ctypes.c_long) != 8:
        return NO_CLOCK._replace(now=time.perf_counter_ns)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return KernelClock(time.perf_counter_ns, address, time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class Stages:
    """Seconds by stage, in the order of STAGES, and of each those in kernels."""

    seconds: tuple[float, ...] = (0.0,) * len(STAGES)
    kernels: tuple[float, ...] = (0.0,) * len(STAGES)

    def less(self, before: "Stages") -> "Stages":
        """What has come since."""
        return Stages(_less(self.seconds, before.seconds), _less(self.kernels, before.kernels))

    @property
    def train(self) -> float:
        """Of rounds, without validation."""
        return sum(self.seconds[FIRST:LAST])

    def outside(self, name: str) -> float:
        """Seconds of a stage that went into Python, calling kernels and making arrays; none of those of exchanges."""
        place = PLACES[name]
        return 0.0 if name in (PACKING, EXCHANGE) else max(0.0, self.seconds[place] - self.kernels[place])

    @property
    def outside_kernels(self) -> float:
        """The same of all stages of rounds."""
        return sum(self.outside(name) for name in ROUND_STAGES)

    def by_name(self) -> dict[str, float]:
        """Seconds of rounds' stages and validation that took any, and of all of them those outside of kernels."""
        names = (*ROUND_STAGES, Phase.VALIDATE.value)
        told = {name: self.seconds[PLACES[name]] for name in names if self.seconds[PLACES[name]] > 0}
        return {**told, "outside_kernels": self.outside_kernels}

    def phases(self) -> dict[str, float]:
        """Seconds by PHASES."""
        own = {name: self.seconds[place] for name, place in PLACES.items()}
        return {name: self.train if name == "train" else own[name] for name in PHASES}


NO_TIME = Stages()


def _less(now: tuple[float, ...], before: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a - b for a, b in zip(now, before, strict=True))


class Clock:
    """Nanoseconds spent in each stage; exactly one runs at a time.

    What stages have taken is charged later, for many rounds at once: a loop that is called a few times a round, each
    time after a kernel has filled the caches, takes as long as the kernel of a small table.
    """

    def __init__(self) -> None:
        self._spent, self._kernels = np.zeros(len(STAGES), np.int64), np.zeros(len(STAGES), np.int64)
        self._times = memoryview(new_times().data)  # read in a fraction of NumPy's time
        self._timed: Timed | None = None
        self._marks: list[tuple[str, int, list[int]]] = []  # stages that are not charged yet, when and with what counts
        self._trained, self._added = 0, 0  # of rounds, and up to which mark
        self.enter(READ)

    def watch(self, times: NDArray[np.int64], collective: object) -> None:
        """Tell kernels (Team.times) and the collective's exchanges apart from now on."""
        self._charge()
        self._times, self._timed = memoryview(times.data), collective if isinstance(collective, Timed) else None
        stage, began, _ = self._marks[0]
        self._marks[0] = stage, began, self._counts()

    def enter(self, stage: str) -> None:
        """A stage begins, and the one before it ends."""
        self._marks.append((stage, time.perf_counter_ns(), self._counts()))
        if len(self._marks) >= MOST_MARKS:
            self._charge()

    def _charge(self) -> None:
        """Charge the time between calls of `enter` to the stages that ended, and what was inside to its own stages."""
        self._add_up()
        marks = self._marks
        places = np.array([PLACES[stage] for stage, _, _ in marks[:-1]], np.int64)
        whole = np.diff([began for _, began, _ in marks])
        counts = np.diff([each for _, _, each in marks], axis=0)
        inside = counts[:, KERNELS].copy()
        for own, entry in INSIDE:
            part = counts[:, entry]
            self._spent[own] += part.sum()
            self._kernels[own] += part.sum()
            whole -= part
            inside -= part
        in_rounds = (places >= FIRST) & (places < LAST)
        for own, entry in TALKS if self._timed is not None else ():
            part = np.where(in_rounds, counts[:, entry], 0)  # before them, waiting for others belongs to what they do
            self._spent[own] += part.sum()
            whole -= part
        np.add.at(self._spent, places, whole)
        np.add.at(self._kernels, places, inside)
        self._marks, self._added = marks[-1:], 0

    def _add_up(self) -> None:
        """Add to the time of rounds what has come since."""
        for (stage, began, _), (_, ended, _) in pairwise(self._marks[self._added :]):
            if stage in OF_ROUNDS:
                self._trained += ended - began
        self._added = len(self._marks) - 1

    def stages(self) -> Stages:
        """All there is until now."""
        self.enter(self._marks[-1][0])
        self._charge()
        return Stages(tuple((self._spent * BILLIONTH).tolist()), tuple((self._kernels * BILLIONTH).tolist()))

    def train(self) -> int:
        """Nanoseconds of rounds until now, without validation."""
        self.enter(self._marks[-1][0])
        self._add_up()
        return self._trained

    def _counts(self) -> list[int]:
        """Nanoseconds in kernels, then those of packing and of the rest of exchanges so far, if there are any."""
        counts: list[int] = self._times.tolist()
        if self._timed is not None:
            packing = self._timed.seconds_packing
            counts += [round(packing * 1e9), round((self._timed.seconds_spent - packing) * 1e9)]
        return counts
