"""What an array of int64 looks like on the wire: as it is, or as int32 where every value fits.

One flag in the header tells which; the sender decides from the data, so both sides always agree and every sum stays
exact. Channels that only pad a histogram's rows do not travel.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.jit import kernel

BLOCK = 1024  # values tried at once: the first block that does not fit ends the attempt
Combine = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], None]


@kernel
def narrow(values, out):  # type: ignore[no-untyped-def]
    """out (OUT, flat int32) = values (flat int64); False if one of them does not fit, and out is of no use then."""
    n = values.shape[0]
    for start in range(0, n, BLOCK):
        lost = np.int64(0)
        for i in range(start, min(start + BLOCK, n)):
            short = np.int32(values[i])
            out[i] = short
            lost |= values[i] ^ np.int64(short)
        if lost != 0:
            return False
    return True


@kernel
def pack(histograms, start, stop, n_used, out):  # type: ignore[no-untyped-def]
    """out (OUT, flat int32 or int64) = bins start..stop, channels 0..n_used of histograms [node, bin, channel].

    False if a value does not fit, and out is of no use then.
    """
    k = 0
    for node in range(histograms.shape[0]):
        for b in range(start, stop):
            row = histograms[node, b]
            lost = np.int64(0)
            for c in range(n_used):
                out[k + c] = row[c]
                lost |= row[c] ^ np.int64(out[k + c])
            if lost != 0:
                return False
            k += n_used
    return True


@kernel
def add(so_far, received, out):  # type: ignore[no-untyped-def]
    """out (OUT, flat int64) = so_far (flat int64, may be out) + received (flat int64 or int32)."""
    for i in range(received.shape[0]):
        out[i] = so_far[i] + received[i]


def add_values(so_far: NDArray[Any], received: NDArray[Any], out: NDArray[Any]) -> None:
    """out (OUT) = so_far + received, flat arrays; received may be narrow."""
    if out.dtype == np.int64:
        add(so_far, received, out)
    else:
        np.add(so_far, received, out=out)


def keep_larger(so_far: NDArray[Any], received: NDArray[Any], out: NDArray[Any]) -> None:
    """out (OUT) = the greater of so_far and received, flat arrays; received may be narrow."""
    np.maximum(so_far, received, out=out)


class SendBuffers:
    """Room for what is packed before it is sent, kept from one message to the next."""

    def __init__(self) -> None:
        self._rooms: dict[int, NDArray[np.int64]] = {}

    def room(self, key: int, n_values: int) -> NDArray[np.int64]:
        """Flat int64 [n_values], valid until the next call with the same key."""
        room = self._rooms.get(key)
        if room is None or room.shape[0] < n_values:
            room = self._rooms[key] = np.empty(n_values, np.int64)
        return room[:n_values]

    def flat(self, key: int, values: NDArray[Any]) -> NDArray[Any]:
        """Flat values as they go on the wire: narrow if they are int64 and fit, else themselves."""
        if values.dtype != np.int64 or values.shape[0] == 0:
            return values
        short = self.room(key, -(-values.shape[0] // 2)).view(np.int32)[: values.shape[0]]
        return short if narrow(values, short) else values

    def histograms(self, key: int, whole: NDArray[np.int64], bins: tuple[int, int], n_used: int) -> NDArray[Any]:
        """A slice [node, start:stop, :n_used] of histograms, flat, as it goes on the wire."""
        n_values = whole.shape[0] * (bins[1] - bins[0]) * n_used
        room = self.room(key, n_values)
        short = room.view(np.int32)[:n_values]
        if pack(whole, bins[0], bins[1], n_used, short):
            return short
        pack(whole, bins[0], bins[1], n_used, room)
        return room


def wire_bytes(values: NDArray[Any]) -> int:
    """Bytes an array that is summed takes on the wire."""
    return SendBuffers().flat(0, np.ascontiguousarray(values).reshape(-1)).nbytes


def warm_up() -> None:
    """Compile the kernels, so that no member waits for another's compiler in the middle of a run."""
    histograms, values = np.zeros((1, 1, 1), np.int64), np.zeros(1, np.int64)
    short = np.zeros(1, np.int32)
    narrow(values, short)
    pack(histograms, 0, 1, 1, short)
    pack(histograms, 0, 1, 1, values)
    add(values, short, values)
    add(values, values, values)
