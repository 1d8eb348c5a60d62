"""The column of row weights: what may be in it, and how many rows it removes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from workers.errors import DataError, Location
from workers.parquet_file import file_name, open_parquet

WEIGHT: Location = ("data", "weight")


def as_weights(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    """A column as float64, null as NaN."""
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)


def positive(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The rows that stay."""
    return weights > 0


class WeightCheck:
    """Looks at the weights of a table batch by batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._wrong = 0
        self._first = ""
        self.removed = 0

    def kept(self, column: pa.Array, path: str, first_row: int) -> NDArray[np.bool_]:
        """The batch's rows of weight above 0; first_row: of the batch in its file."""
        weights = as_weights(column)
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if wrong.shape[0] and not self._wrong:
            shown = column[int(wrong[0])].as_py()
            place = f"row {first_row + int(wrong[0])} of {file_name(path)!r}"
            self._first = f"the first is {'null' if shown is None else shown} in {place}"
        self._wrong += wrong.shape[0]
        self.removed += int((weights == 0).sum())
        return positive(weights)

    def finish(self, n_rows: int) -> None:
        """Errors: DataError if some weight cannot be one, or if no row is left of n_rows."""
        if self._wrong:
            raise DataError(
                WEIGHT,
                f"column {self.name!r} has {self._wrong} weight(s) that are negative, null, NaN or infinite; "
                f"{self._first} (rows count from 0); weights are finite numbers of 0 or more",
            )
        if self.removed == n_rows:
            raise DataError(WEIGHT, f"column {self.name!r} gives all {n_rows} rows the weight 0: none is left")


def kept_batches(
    file: tuple[str, pq.FileMetaData], names: Sequence[str], weights: WeightCheck | None, loc: Location
) -> Iterator[pa.RecordBatch]:
    """Columns of a file (path, footer) in batches, without the rows of weight 0 (weights None: all rows)."""
    columns = [*names, weights.name] if weights else list(names)
    path, footer = file
    first_row = 0
    with open_parquet(path, loc, footer) as parquet:
        for batch in parquet.iter_batches(columns=columns, use_threads=False):
            if weights is None:
                yield batch
            else:
                yield batch.filter(pa.array(weights.kept(batch.column(weights.name), path, first_row)))
            first_row += batch.num_rows
