"""Where a message's payload goes as it comes: straight to its place, or combined with what is there.

Before a message's header is known its payload may be narrow (wire.py) or not. So at first there is only as much room
as the shorter of the two takes, and more once the header tells.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.messages import Header
from workers.wire import Combine

CHUNK = 1 << 16  # elements added at once; 8 MB sums took 4.2 ms whole, 3.7-4.4 ms by chunks of 64-1024 KB
NARROW_BYTES = 4


def as_bytes(array: NDArray[Any]) -> list[memoryview]:
    """The bytes of a C-contiguous array without a copy; no view at all if it is empty."""
    return [array.data.cast("B")] if array.size else []


def shortest_item(array: NDArray[Any]) -> int:
    """Bytes a value of the array takes on the wire at least."""
    return NARROW_BYTES if array.dtype == np.int64 else array.itemsize


def fits(array: NDArray[Any], expected: Header, header: Header) -> bool:
    """Whether a header announces the values of an array, narrow or not."""
    item = NARROW_BYTES if header.narrow else array.itemsize
    may = array.dtype == np.int64 or not header.narrow
    return may and header.n_rows == expected.n_rows and header.n_bytes == array.size * item


class Incoming(Protocol):
    """Where one message's payload goes, view by view."""

    expected: Header

    def fit(self, header: Header) -> bool:
        """Whether a payload of the header's size can be taken; called once, when the header is there."""

    def room(self) -> list[memoryview]:
        """Where the next bytes go."""

    def filled(self) -> None:
        """The room of the last call is full."""


class Fixed:
    """A message of known shape that goes straight to its place, a flat array."""

    def __init__(self, expected: Header, array: NDArray[Any]) -> None:
        self.expected = expected
        self._array = array
        self._have = self._asked = 0
        self._wanted = array.size * shortest_item(array)
        self._narrow = False

    def fit(self, header: Header) -> bool:
        self._wanted, self._narrow = header.n_bytes, header.narrow
        return fits(self._array, self.expected, header)

    def room(self) -> list[memoryview]:
        self._asked = self._wanted
        return [self._array.data.cast("B")[self._have : self._asked]] if self._have < self._asked else []

    def filled(self) -> None:
        self._have = self._asked
        if self._narrow and self._have == self._wanted:
            self._array[:] = self._array.view(np.int32)[: self._array.size].copy()


class Ragged:
    """A message whose length along axis 0 only its sender knows; `array` is what came."""

    def __init__(self, expected: Header, tail: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.expected = expected
        self.array: NDArray[Any] = np.empty((0, *tail), dtype)
        self._views: list[memoryview] = []

    def fit(self, header: Header) -> bool:
        row_bytes = self.array.dtype.itemsize * math.prod(self.array.shape[1:])
        if header.narrow or header.n_bytes != header.n_rows * row_bytes:
            return False
        self.array = np.empty((header.n_rows, *self.array.shape[1:]), self.array.dtype)
        self._views = as_bytes(self.array)
        return True

    def room(self) -> list[memoryview]:
        return self._views

    def filled(self) -> None:
        self._views = []


class Accumulator:
    """Combines members' arrays of one shape elementwise, chunk by chunk in whatever order they arrive.

    own: this member's part, flat and contiguous; it is not changed unless it is also `out`.
    """

    def __init__(self, combine: Combine, own: NDArray[Any], out: NDArray[Any]) -> None:
        self._combine = combine
        self.out = out
        self._so_far = [own] * -(-out.size // CHUNK)

    def take(self, number: int, received: NDArray[Any]) -> None:
        """Combine one member's chunk with what is there."""
        start = number * CHUNK
        stop = start + received.size
        self._combine(self._so_far[number][start:stop], received, self.out[start:stop])
        self._so_far[number] = self.out


class Part:
    """A message that is combined into an accumulator; only one chunk of it is ever held.

    scratch: uint8 [8 * CHUNK].
    """

    def __init__(self, expected: Header, accumulator: Accumulator, scratch: NDArray[np.uint8]) -> None:
        self.expected = expected
        self._accumulator = accumulator
        self._scratch = scratch
        self._number = 0
        self._dtype: np.dtype[Any] = accumulator.out.dtype
        self._item = shortest_item(accumulator.out)
        self._have = self._asked = 0

    def _values(self) -> int:
        """Values in the chunk that comes next."""
        return max(0, min(CHUNK, self._accumulator.out.size - self._number * CHUNK))

    def fit(self, header: Header) -> bool:
        self._dtype = np.dtype(np.int32) if header.narrow else self._accumulator.out.dtype
        self._item = self._dtype.itemsize
        return fits(self._accumulator.out, self.expected, header)

    def room(self) -> list[memoryview]:
        self._asked = self._values() * self._item
        return [self._scratch.data[self._have : self._asked]] if self._have < self._asked else []

    def filled(self) -> None:
        n_values = self._values()
        if self._asked < n_values * self._item:  # asked for before the header told that the values are wide
            self._have = self._asked
            return
        self._accumulator.take(self._number, self._scratch[: self._asked].view(self._dtype))
        self._number, self._have = self._number + 1, 0
