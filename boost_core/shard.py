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
    """

    bins: NDArray[np.uint8]
    labels: NDArray[np.int32]
    row_ranges: tuple[RowRange, ...]

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.bins.shape[0])

    def row_numbers(self) -> NDArray[np.int64]:
        """Global row number of every row, int64 [n_rows]."""
        parts = [np.arange(start, stop, dtype=np.int64) for start, stop in self.row_ranges]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
