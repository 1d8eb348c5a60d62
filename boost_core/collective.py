"""The exact reductions that the members of a gang share: the contract, and its one-member twin.

Every member calls the same operations in the same order. All sums are of integers, so the result does not
depend on the order in which members' parts arrive, and every member receives the same bits.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Collective(Protocol):
    """What the training loop needs of a gang. Implementations must keep the semantics of `Alone` at size 1.

    Errors: any operation may raise a CollectiveError; the run is then over for this member.
    """

    @property
    def rank(self) -> int:
        """This member's number, 0 <= rank < size."""

    @property
    def size(self) -> int:
        """Number of members."""

    @property
    def bytes_sent(self) -> int:
        """Payload bytes this member has sent to others so far (headers not counted)."""

    def begin_round(self, number: int) -> None:
        """Name the round that the following messages belong to (0 = before the first round)."""

    def sum(self, values: Integers) -> Integers:
        """Elementwise sum over members. Same shape everywhere; returns a new array or `values` itself."""

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        """Elementwise maximum over members (int64 or float64 without NaN)."""

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        """Sum histograms over members and keep this member's slice.

        histograms: C-contiguous int64 [n_nodes, n_bins, n_channels]; bounds: int64 [size + 1], ascending from 0
        to n_bins, equal on all members; n_used: channels that count, the first ones; the others do not travel (None:
        all). Returns the sums of [:, bounds[rank]:bounds[rank + 1], :n_used]; the slice may be empty.
        """

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Every member's array, by rank. Same dtype and trailing dimensions; lengths (axis 0) may differ."""

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """What every member has for this one, by rank. parts: flat arrays, one for each member; of one dtype."""

    def barrier(self) -> None:
        """Return once every member has called it."""


class Alone:
    """A gang of one: every reduction is the identity."""

    rank = 0
    size = 1
    bytes_sent = 0

    def begin_round(self, number: int) -> None:
        """Nothing to name: no message leaves this member."""

    def sum(self, values: Integers) -> Integers:
        return values

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return values

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        return histograms[:, :, :n_used]

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        return [values]

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return list(parts)

    def barrier(self) -> None:
        """Every member is here."""


def max_and_sums(peaks: Integers, counts: list[int], collective: Collective) -> tuple[Integers, list[int]]:
    """Maximum of the peaks and sum of the counts over all members, in one message."""
    if collective.size == 1:
        return peaks, counts
    n_peaks = peaks.shape[0]
    stacked = np.stack(collective.all_gather(np.concatenate([peaks, counts])))
    return stacked[:, :n_peaks].max(axis=0), stacked[:, n_peaks:].sum(axis=0).tolist()
