"""Where a member's time goes: the clock of its stages, also of those inside kernels and of exchanges.

The engine has no clock. It tells which phase begins (boost_core/records.py), counts the time in its kernels by a clock
that it is given (boost_core/kernel_times.py), and the mesh counts its exchanges; here they come together.
"""

import ctypes
import os
import time
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.kernel_times import HISTOGRAMS, KERNELS, NO_CLOCK, PARTITION, SEARCH, KernelClock, new_times
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
INSIDE = tuple(
    (PLACES[name], entry) for name, entry in (("histograms", HISTOGRAMS), ("search", SEARCH), ("partition", PARTITION))
)
FIRST, LAST = PLACES[ROUND_STAGES[0]], PLACES[ROUND_STAGES[-1]] + 1
TALKS = (PLACES[PACKING], PLACES[EXCHANGE])
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
        return 0.0 if place in TALKS else max(0.0, self.seconds[place] - self.kernels[place])

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
NO_TALK = (0, 0)


def _less(now: tuple[float, ...], before: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a - b for a, b in zip(now, before, strict=True))


@dataclass
class Clock:
    """Nanoseconds spent in each stage; exactly one runs at a time."""

    stage: int = PLACES[READ]
    _spent: list[int] = field(default_factory=lambda: [0] * len(STAGES))
    _kernels: list[int] = field(default_factory=lambda: [0] * len(STAGES))
    _since: int = field(default_factory=time.perf_counter_ns)
    _times: NDArray[np.int64] = field(default_factory=new_times)
    _seen: list[int] = field(default_factory=lambda: new_times().tolist())
    _timed: Timed | None = None
    _talked: tuple[int, int] = NO_TALK
    _marks: list[tuple[int, int, list[int], tuple[int, int]]] = field(default_factory=list)

    def watch(self, times: NDArray[np.int64], collective: object) -> None:
        """Tell kernels (Team.times) and the collective's exchanges apart from now on."""
        self._charge()
        self._times, self._seen = times, times.tolist()
        self._timed = collective if isinstance(collective, Timed) else None
        self._talked = self._talk()

    def enter(self, stage: str) -> None:
        """A stage begins. What the one that ends has taken is charged when somebody asks: a loop that is called a few
        times a round, each time after a kernel has filled the caches, takes as long as the kernel of a small table."""
        talked = NO_TALK if self._timed is None else self._talk()
        self._marks.append((self.stage, time.perf_counter_ns(), self._times.tolist(), talked))
        self.stage = PLACES[stage]

    def _charge(self) -> None:
        """Charge the time between calls of `enter` to the stages that ended, and what was inside to its own stages."""
        spent, kernels = self._spent, self._kernels
        for place, now, times, talked in self._marks:
            seen = self._seen
            whole, inside = now - self._since, times[KERNELS] - seen[KERNELS]
            if inside:
                for own, entry in INSIDE:
                    part = times[entry] - seen[entry]
                    spent[own] += part
                    kernels[own] += part
                    whole, inside = whole - part, inside - part
            if talked != self._talked:
                if FIRST <= place < LAST:  # before the first round, waiting for others belongs to what they are doing
                    for own, after, before in zip(TALKS, talked, self._talked, strict=True):
                        spent[own] += after - before
                        whole -= after - before
                self._talked = talked
            spent[place] += whole
            kernels[place] += inside
            self._since, self._seen = now, times
        self._marks.clear()

    def stages(self) -> Stages:
        """All there is until now."""
        self.enter(STAGES[self.stage])
        self._charge()
        return Stages(
            tuple(each * BILLIONTH for each in self._spent), tuple(each * BILLIONTH for each in self._kernels)
        )

    def train(self) -> int:
        """Nanoseconds of rounds until now, without validation."""
        self.enter(STAGES[self.stage])
        self._charge()
        return sum(self._spent[FIRST:LAST])

    def _talk(self) -> tuple[int, int]:
        """Nanoseconds of packing and of the rest of exchanges so far."""
        if self._timed is None:
            return NO_TALK
        packing = self._timed.seconds_packing
        return round(packing * 1e9), round((self._timed.seconds_spent - packing) * 1e9)
