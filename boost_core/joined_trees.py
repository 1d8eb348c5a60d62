"""The trees of rounds, one after another in arrays that have room for more: what a forest is made of.

A model that is written again and again while it grows would be joined anew each time; here only its new rounds are.
"""

import math
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.fitted import Fitted, Part, Speech
from boost_core.tree import NODE_FIELDS

NODE_TYPES = {
    "node_feature": np.int32, "node_kind": np.int8, "node_bin": np.int32, "node_missing_left": np.bool_,
    "node_left": np.int32, "node_right": np.int32,
}  # fmt: skip
ROOM = 1.5  # to which arrays grow at least, so that a row is moved a few times at most
LARGE = 4 << 20  # bytes
AT_ONCE = 512  # trees whose nodes are brought together before they go to an array a field: what fits a cache


def small_pages(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Like numpy.empty, but of the system's memory it takes what is written to. NumPy asks for pages of 2 MB for LARGE
    arrays: of new memory one was seen to take 10 ms."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if os.name != "posix" or n_bytes < LARGE:
        return np.empty(shape, dtype)
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=private), dtype, math.prod(shape)).reshape(shape)


class Growing:
    """An array whose rows become more. width: numbers a row, None = the array has one dimension; spare: how many times
    the room is made that is needed: memory is the system's until it is written to, and rows are moved less often."""

    def __init__(self, dtype: Any, width: int | None = None, spare: float = 1.0) -> None:
        self._room = np.empty(0 if width is None else (0, width), dtype)
        self._n_rows, self._spare = 0, spare

    @property
    def rows(self) -> NDArray[Any]:
        """What there is: a view, which later rows do not change."""
        return self._room[: self._n_rows]

    def more(self, n_rows: int) -> NDArray[Any]:
        """So many rows behind the others, to be written to."""
        first, self._n_rows = self._n_rows, self._n_rows + n_rows
        if self._n_rows > self._room.shape[0]:
            size = max(int(self._spare * self._n_rows), int(ROOM * self._room.shape[0]))
            grown = small_pages((size, *self._room.shape[1:]), self._room.dtype)
            grown[:first] = self._room[:first]
            self._room = grown
        return self._room[first : self._n_rows]

    def append(self, values: Any) -> None:
        """Rows behind the others."""
        self.more(len(values))[:] = values


class Starts(Growing):
    """Where each of some ranges begins, and the last one ends."""

    def __init__(self, spare: float) -> None:
        super().__init__(np.int64, spare=spare)
        self.append([0])

    def lengths(self, sizes: Sequence[int]) -> None:
        """Ranges of these lengths follow."""
        last = self.rows[-1]
        starts = self.more(len(sizes))
        np.cumsum(sizes, out=starts)
        starts += last


class JoinedTrees:
    """The trees of rounds, in the order of their rounds: the arrays of a model.Forest by their names.

    n_outputs: numbers a leaf as long as there is no tree to tell; spare: see Growing.
    """

    def __init__(self, n_outputs: int, spare: float = 1.0) -> None:
        self.speech, self._spare = Speech.VOTES, spare
        self._nodes = {name: Growing(dtype, spare=spare) for name, dtype in NODE_TYPES.items()}
        self._payload = Growing(np.int8, n_outputs, spare)
        self._multiplier, self._column = Growing(np.int64, spare=spare), Growing(np.int32, spare=spare)
        self._node_start, self._leaf_start, self._round_start = Starts(spare), Starts(spare), Starts(spare)

    @property
    def n_rounds(self) -> int:
        return int(self._round_start.rows.shape[0]) - 1

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What there is, as views: what is appended later does not change them."""
        named = {
            "payload": self._payload, "multiplier": self._multiplier, "column": self._column,
            "node_start": self._node_start, "leaf_start": self._leaf_start, "round_start": self._round_start,
        }  # fmt: skip
        return {name: array.rows for name, array in (self._nodes | named).items()}

    def append(self, rounds: Sequence[Fitted], multipliers: Sequence[NDArray[np.int64]]) -> None:
        """Rounds behind the others; multipliers: int64 [parts] of each, in score units."""
        parts = [part for fitted in rounds for part in fitted.parts]
        if not parts:
            return
        if self.n_rounds == 0:
            self.speech = rounds[0].speech
            payload_type = np.int8 if self.speech is Speech.VOTES else np.int32
            self._payload = Growing(payload_type, parts[0].tree.payload.shape[1], self._spare)
        self._round_start.lengths([len(fitted.parts) for fitted in rounds])
        self._multiplier.append(np.concatenate(multipliers))
        self._column.append([part.column for part in parts])
        self._append_trees(parts)

    def _append_trees(self, parts: Sequence[Part]) -> None:
        nodes, leaves = [part.tree.nodes for part in parts], [part.tree.payload for part in parts]
        n_nodes, n_leaves = [each.shape[0] for each in nodes], [each.shape[0] for each in leaves]
        self._node_start.lengths(n_nodes)
        self._leaf_start.lengths(n_leaves)
        np.concatenate(leaves, out=self._payload.more(sum(n_leaves)), casting="unsafe")
        places = [array.more(sum(n_nodes)) for array in self._nodes.values()]
        first = 0
        for start in range(0, len(parts), AT_ONCE):
            some = np.concatenate([np.empty((0, NODE_FIELDS), np.int64), *nodes[start : start + AT_ONCE]])
            for field, place in enumerate(places):
                place[first : first + some.shape[0]] = some[:, field]
            first += some.shape[0]
