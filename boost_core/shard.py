"""What a member of a gang holds of the data: binned features and labels of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RowRange = tuple[int, int]


def numbers_in(ranges: Sequence[RowRange], start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
    """Of the row numbers in ranges, one behind the other, those from start to stop, int64."""
    parts, first = [np.empty(0, np.int64)], 0
    for low, high in ranges:
        size = high - low
        begin, end = max(start - first, 0), min((size if stop is None else stop - first), size)
        if begin < end:
            parts.append(np.arange(low + begin, low + end, dtype=np.int64))
        first += size
    return parts[1] if len(parts) == 2 else np.concatenate(parts)


@dataclass(frozen=True)
class Shard:
    """Binned rows of one member.

    bins: uint8 [n_features, n_rows], C-contiguous; the bin of each cell (see binning.Binning for the codes).
    labels: int32 [n_rows]; class indices 0..n_classes-1.
    row_ranges: global row numbers of the rows, as (start, stop) in the order of the rows.
    copies: int64 [n_rows], how often each row counts (row_weights.py); None: every row once.
    numbers: int64 [n_rows], global row numbers where some rows of the ranges were left out; None: all are there.
    sets: uint8 [n_rows, n_labels] of multi-label data (label_sets.py), whose labels are 0; None: a label a row.
    """

    bins: NDArray[np.uint8]
    labels: NDArray[np.int32]
    row_ranges: tuple[RowRange, ...]
    copies: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None
    sets: NDArray[np.uint8] | None = None

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.bins.shape[0])

    def row_numbers(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Global row numbers of the rows from start to stop, all by default, int64."""
        if self.numbers is not None:
            return self.numbers[start:stop]
        return numbers_in(self.row_ranges, start, stop)

    def range_edges(self) -> NDArray[np.int64]:
        """Where each range's rows begin among this member's, and where the last ones end, int64 [ranges + 1]."""
        sizes = [stop - start for start, stop in self.row_ranges]
        if self.numbers is not None:
            sizes = [int(((self.numbers >= start) & (self.numbers < stop)).sum()) for start, stop in self.row_ranges]
        return np.cumsum([0, *sizes]).astype(np.int64)
