"""Reads a member's row ranges from Parquet, a few columns at a time, so that raw values are never held for long."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from boost_core.model import Label
from boost_core.shard import RowRange
from workers.data_plan import TableRows, plain_labels
from workers.errors import DataError


def to_floats(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    """A numeric column as float64, missing values as NaN."""
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


class RangeReader:
    """The files that hold some global row ranges, open while it is in use."""

    def __init__(self, table: TableRows, ranges: Sequence[RowRange]) -> None:
        self._pieces = [piece for row_range in ranges for piece in _pieces(table, row_range)]
        self.n_rows = sum(stop - start for start, stop in ranges)
        self._open = ExitStack()
        self._files: dict[str, pq.ParquetFile] = {}

    def __enter__(self) -> Self:
        for path, *_ in self._pieces:
            if path not in self._files:
                self._files[path] = self._open.enter_context(self._opened(path))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @staticmethod
    def _opened(path: str) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(path, memory_map=True)
        except (pa.ArrowException, OSError) as error:
            raise DataError(("data",), f"{path.rsplit('/', 1)[-1]!r} can no longer be read: {error}") from error

    def floats(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Columns of the ranges' rows in their order, float64 [n_columns, n_rows], C-contiguous."""
        block = np.empty((len(names), self.n_rows))
        at = 0
        for table in self._tables(names):
            for place, name in enumerate(names):
                block[place, at : at + table.num_rows] = to_floats(table.column(name))
            at += table.num_rows
        return block

    def class_indices(self, label: str, classes: Sequence[Label]) -> NDArray[np.int32]:
        """Index into `classes` of every row's label, int32 [n_rows].

        Errors: DataError if a label is not among the classes: the file changed after the job was planned.
        """
        indices = np.empty(self.n_rows, np.int32)
        at = 0
        for table in self._tables([label]):
            column = plain_labels(table.column(label).combine_chunks())
            found = pc.index_in(column, value_set=pa.array(classes, column.type))
            if found.null_count:
                raise DataError(
                    ("data", "label"),
                    f"{found.null_count} label(s) of column {label!r} are new: data changed",
                )
            indices[at : at + len(found)] = found.to_numpy(zero_copy_only=False)
            at += len(found)
        return indices

    def _tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        for path, group, start, stop in self._pieces:
            table = self._files[path].read_row_group(group, columns=list(names))
            yield table.slice(start, stop - start)


def _pieces(table: TableRows, row_range: RowRange) -> Iterator[tuple[str, int, int, int]]:
    """(path, row group, start, stop within it) that make up a range of global row numbers."""
    first = 0
    for file in table.files:
        for group, size in enumerate(file.row_groups):
            start, stop = max(row_range[0] - first, 0), min(row_range[1] - first, size)
            if start < stop:
                yield file.path, group, start, stop
            first += size
