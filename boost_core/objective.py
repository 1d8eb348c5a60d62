"""What a weak learner maximises, as functions that kernels call and that each weak learner's file implements.

A weak learner declares a NamedTuple type for its settings and implements the functions below for it. Kernels take a
value of that type; its type alone picks the implementation when a kernel is compiled, so a new weak learner touches no
kernel, and compiled kernels can be cached.

    @implements(cut_value, MyObjective)
    def _cut_value(objective, sums, left, n_channels): ...

sums, left: int64 [n_channels + 1], a node's sums and those of a cut's left side. The last entry counts rows, unless the
objective says that it can do without (needs_no_count): then histograms may leave it out, and what stands there means
nothing. A cut with all rows on one side is told by it, too; but where that is worth what its node is, it gains nothing
and is not taken anyway.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba import types
from numba.extending import overload

from boost_core.intrinsics import lanes_for
from boost_core.jit import CHOSEN, JIT_DISABLED

_implementations: dict[tuple[Any, type], Callable[..., Any]] = {}
_uncounted: dict[type, Callable[[Any], bool]] = {}
Kind = TypeVar("Kind", bound=type)


def cut_value(objective: Any, *arguments: Any) -> Any:
    """(sums, left, n_channels) -> the value of a cut: what the leaves on its two sides are worth together, int64."""
    return _implementations[cut_value, type(objective)](objective, *arguments)


def set_floors(objective: Any, *arguments: Any) -> Any:
    """(sums, n_channels, floors) -> nothing; floors OUT [n_channels]. In place of cut_value, where a cut's value is
    sum_l max(floors_l, |2 left_l - sums_l|): that is searched faster."""
    return _implementations[set_floors, type(objective)](objective, *arguments)


def set_root(objective: Any, *arguments: Any) -> Any:
    """(sums, n_channels, payload) -> the value of the tree without cuts; payload OUT: what its leaf says."""
    return _implementations[set_root, type(objective)](objective, *arguments)


def set_leaves(objective: Any, *arguments: Any) -> Any:
    """(left, right, n_channels, left payload, right payload) -> the values of a cut's two leaves; payloads OUT."""
    return _implementations[set_leaves, type(objective)](objective, *arguments)


def needs_no_count(which: Callable[[Any], bool] = lambda _: True) -> Callable[[Kind], Kind]:
    """Of a type of objective: these of it do not read the count of rows, and a cut with all rows on one side is worth
    what the node is."""

    def register(kind: Kind) -> Kind:
        _uncounted[kind] = which
        return kind

    return register


def sums_in_bins(objective: Any, n_channels: int) -> int:
    """How many sums histograms have in a bin: of each channel and, last, the count of rows, which is left out where it
    is not needed and a bin is added to in fewer instructions without."""
    counted = not _uncounted.get(type(objective), lambda _: False)(objective)
    return n_channels + (counted or len(lanes_for(n_channels)) >= len(lanes_for(n_channels + 1)))


def implementation(function: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """What implements a function for a type, in plain Python."""
    return _implementations[function, kind]


def has(function: Callable[..., Any], kind: type) -> bool:
    """Whether a type of objective implements a function."""
    return (function, kind) in _implementations


def implements(function: Callable[..., Any], objective: type[NamedTuple]) -> Callable[[Any], Any]:
    """Register the implementation of one of the functions above for a type of objective."""

    def register(implementation: Any) -> Any:
        _implementations[function, objective] = implementation

        def choose(given: Any, *arguments: Any) -> Any:
            named = isinstance(given, types.NamedTuple | types.NamedUniTuple)
            return implementation if named and given.instance_class is objective else None

        if not JIT_DISABLED:
            overload(function, strict=False, jit_options=CHOSEN)(choose)
        return implementation

    return register
