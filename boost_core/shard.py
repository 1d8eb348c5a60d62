"""What a member of a gang holds of the data: binned features and labels of its rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RowRange = tuple[int, int]


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

    def row_numbers(self) -> NDArray[np.int64]:
        """Global row number of every row, int64 [n_rows]."""
        if self.numbers is not None:
            return self.numbers
        parts = [np.arange(start, stop, dtype=np.int64) for start, stop in self.row_ranges]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def range_edges(self) -> NDArray[np.int64]:
        """Where each range's rows begin among this member's, and where the last ones end, int64 [ranges + 1]."""
        sizes = [stop - start for start, stop in self.row_ranges]
        if self.numbers is not None:
            sizes = [int(((self.numbers >= start) & (self.numbers < stop)).sum()) for start, stop in self.row_ranges]
        return np.cumsum([0, *sizes]).astype(np.int64)
