"""Faults at a place of a training: what a member does there, for benchmarks and tests that kill members."""

import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

Action = Callable[[Any], None]


class Place(NamedTuple):
    """Before the n-th call of a collective's method in a round (0: before all rounds)."""

    method: str
    call: int
    round: int


NOWHERE = Place("", 0, -1)


class PlacedFault:
    """A collective that acts at a place; `begin` is told of every round when it begins."""

    def __init__(
        self, collective: Any, place: Place, action: Action, begin: Callable[[int], None] = lambda _: None
    ) -> None:
        self._collective, self._place, self._action, self._begin = collective, place, action, begin
        self._round, self._calls = 0, 0

    def __getattr__(self, name: str) -> Any:
        if name == "begin_round":
            return self._begin_round
        self._called(name)
        return getattr(self._collective, name)

    def _begin_round(self, number: int) -> None:
        self._round, self._calls = number, 0
        self._begin(number)
        self._called("begin_round")
        self._collective.begin_round(number)

    def _called(self, name: str) -> None:
        if (name, self._round) == (self._place.method, self._place.round):
            self._calls += 1
            if self._calls == self._place.call:
                self._action(self._collective)


def die(_: Any) -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(_: Any) -> None:
    """Until somebody sends SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def cut_the_line(collective: Any) -> None:
    """No byte passes between this member and the first one; both live."""
    collective._links[0].shutdown()
