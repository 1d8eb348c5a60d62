"""Reads a member's row ranges from Parquet, a few columns at a time, so that raw values are never held for long."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boost_core.model import Label
from boost_core.shard import RowRange
from boost_core.team import PARTS_A_THREAD, Team
from boost_core.tile import Tile, window_of
from workers.data_plan import TableRows, is_numeric, plain_labels
from workers.errors import Location
from workers.label_columns import sets_of
from workers.open_files import OpenFiles, changed
from workers.parquet_file import row_groups
from workers.raw_column import RawColumn, copied, moved, owned, tile_of

DATA: Location = ("data",)
DECODING, LABELLING = 16, 64  # element operations that it takes to decode a value, and to find a label's class
# Decoded in one call at most, and what a value of any type takes meanwhile: 47 million cells of 784 columns in one row
# group took 0.20 s on one thread with all columns in one call, 0.11 s with 1 to 16.
READ_BYTES, DECODED_BYTES = 4 << 20, 8
# Of neighbouring row groups decoded in one call, if not one: every call, and every array that comes of it, has both
# threads take turns at Python's lock.
READ_ROWS = 1 << 20
SHARES_A_THREAD = 4  # of decoding
Piece = tuple[str, int, int, int]  # path, row group, start and stop within it


def class_indices(
    column: pa.ChunkedArray, classes: Sequence[Label], room: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Index into `classes` of every label, int32 [n_rows]; -1 for a label that is not among them. room: (OUT, like
    them), where they are put and returned; None: an array of their own.

    Labels are compared as values, so 3.0 is the class 3. Errors: ArrowException for types that have no equality.
    """
    indices = np.empty(len(column), np.int32) if room is None else room
    if pa.types.is_integer(column.type) and column.null_count == 0:
        tiles = [tile_of(chunk) for chunk in column.chunks]
        if (window := window_of(tiles)) is not None:
            meanings = {label: i for i, label in enumerate(classes) if not isinstance(label, str)}
            return window.translated(tiles, meanings, indices)
    encoded = plain_labels(column.combine_chunks()).dictionary_encode()
    place = {label: index for index, label in enumerate(classes)}
    known = np.array([*(place.get(label, -1) for label in encoded.dictionary.to_pylist()), -1], np.int32)
    indices[:] = known[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return indices


@dataclass
class Run:
    """Row groups of a file that are read in one call, and which of their rows are wanted, [start, stop) each."""

    path: str
    groups: range
    n_rows: int
    slices: list[tuple[int, int]] = field(default_factory=list)

    def takes(self, path: str, group: int, start: int, size: int, most: int) -> bool:
        """Whether rows of a row group, from start on, are read here: it is the last one, or follows without a gap and
        makes no more rows than `most`. It becomes the last one. size: its rows."""
        if path != self.path or group not in (self.groups.stop - 1, self.groups.stop):
            return False
        if group == self.groups.stop:
            if start > 0 or self.slices[-1][1] < self.n_rows or self.n_rows + size > most:
                return False
            self.groups, self.n_rows = range(self.groups.start, group + 1), self.n_rows + size
        return True

    def want(self, start: int, stop: int, size: int) -> None:
        """Rows of the last row group, whose size it is, behind those wanted so far."""
        start, stop = (self.n_rows - size + edge for edge in (start, stop))
        if self.slices and self.slices[-1][1] == start:
            start = self.slices.pop()[0]
        self.slices.append((start, stop))


def tiles_of(run: Run, column: pa.ChunkedArray, room: NDArray[np.uint8] | None) -> list[Tile]:
    """The wanted rows of a column; room: (OUT, like them), where unsigned bytes are put.

    Errors: DataError if they are no numbers.
    """
    if room is not None and (tile := copied(column, room)) is not None:
        return [tile]
    if not is_numeric(column.type):
        raise changed(run.path)
    whole = run.slices == [(0, run.n_rows)]
    parts = [column] if whole else [column.slice(start, stop - start) for start, stop in run.slices]
    tiles = [tile_of(owned(chunk, run.n_rows)) for part in parts for chunk in part.chunks]
    return tiles if room is None else moved(tiles, room)


class RangeReader:
    """The files that hold some global row ranges, open while it is in use; their footers are read once.

    Threads of the team decode, never Arrow's own: a member has the threads that it was given and no more.
    Errors, of every method: DataError if a file cannot be read or is not the one that was planned.
    """

    def __init__(self, table: TableRows, ranges: Sequence[RowRange], team: Team | None = None) -> None:
        self._pieces = [piece for row_range in ranges for piece in _pieces(table, row_range)]
        self._planned = {file.path: file for file in table.files}
        self._all_rows = self.n_rows = sum(stop - start for start, stop in ranges)
        self._kept: NDArray[np.bool_] | None = None
        self._team = team or Team(1)
        self._files = OpenFiles(DATA)

    def __enter__(self) -> Self:
        try:
            for path in dict.fromkeys(path for path, *_ in self._pieces):
                with self._files.borrowed(path) as file:
                    if row_groups(file) != self._planned[path].row_groups:
                        raise changed(path)
        except BaseException:
            self._files.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave all other rows out from now on, where some are out already, of those left; kept: bool [n_rows]."""
        if self._kept is not None:
            both = self._kept.copy()
            both[self._kept] = kept
            kept = both
        self._kept, self.n_rows = (None if kept.all() else kept), int(kept.sum())

    def columns(
        self, names: Sequence[str], team: Team | None = None, room: NDArray[np.uint8] | None = None
    ) -> list[RawColumn]:
        """Numeric columns of the ranges' rows in their order, decoded by all threads of the team; team: another one
        than the reader's. Threads may call it at the same time, each with a team of its own.

        room: [columns, n_rows] (OUT), where unsigned bytes are put, and their tiles lie then, unless rows are left out.
        """
        team = team or self._team
        wanted = SHARES_A_THREAD * team.threads
        runs = self._runs(-(-wanted // max(len(names), 1)) if team.threads > 1 else 1)
        # runs are shared by columns where there are fewer of them than threads have turns
        n_shares = min(-(-wanted // max(len(runs), 1)), max(len(names), 1))
        found: list[list[list[Tile]]] = [[[] for _ in runs] for _ in names]
        edges = _edges(runs)
        if self._kept is not None:
            room = None

        def share(start: int, stop: int) -> None:
            for number in range(start, stop):
                place, part = divmod(number, n_shares)
                at, high = (len(names) * edge // n_shares for edge in (part, part + 1))
                for column in self._columns(runs[place], names[at:high]):
                    own = None if room is None else room[at, edges[place] : edges[place + 1]]
                    found[at][place] = tiles_of(runs[place], column, own)
                    at += 1
                    del column  # before the next ones take as much memory again; enumerate would hold it, too

        n_parts = len(runs) * n_shares
        team.over(n_parts, DECODING * self._all_rows * len(names), share, n_parts=n_parts)
        return [RawColumn(tuple(chain.from_iterable(parts)), self._kept) for parts in found]

    def _columns(self, run: Run, names: Sequence[str]) -> Iterator[pa.ChunkedArray]:
        """All rows of a run. Few columns are read in one call: Arrow keeps what it needs to decode all of them until
        the last one is done, and fresh memory costs as much as decoding into it."""
        width = max(READ_BYTES // (DECODED_BYTES * run.n_rows), 1)
        for first in range(0, len(names), width):
            some = names[first : first + width]
            table = self._read(run, some)
            for name in some:
                yield table.column(name)
            del table  # before the next one takes as much memory again

    def floats(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Columns of the ranges' rows in their order, float64 [n_columns, n_rows], C-contiguous."""
        block = np.empty((len(names), self.n_rows))
        for row, column in zip(block, self.columns(names), strict=True):
            at = 0
            for tile in column.tiles():
                row[at : at + len(tile)] = tile.floats()
                at += len(tile)
        return block

    def class_indices(self, label: str, classes: Sequence[Label]) -> NDArray[np.int32]:
        """Index into `classes` of every row's label, int32 [n_rows]."""
        indices, parts = self.labelling(label, classes)
        self._team.each(parts, LABELLING * self._all_rows)
        return indices if self._kept is None else indices[self._kept]

    def labelling(self, label: str, classes: Sequence[Label]) -> tuple[NDArray[np.int32], list[Callable[[], None]]]:
        """An array for the indices of all rows, also of those left out, and what puts them there, in parts for any
        threads at any time before the files are closed."""
        runs = self._runs(PARTS_A_THREAD * self._team.threads)
        indices, edges = np.empty(self._all_rows, np.int32), _edges(runs)
        return indices, [
            partial(self._label, run, label, classes, indices, start) for run, start in zip(runs, edges, strict=False)
        ]

    def _label(self, run: Run, label: str, classes: Sequence[Label], indices: NDArray[np.int32], at: int) -> None:
        for path, table in self._tables([label], [run]):
            stop = at + table.num_rows
            found = class_indices(table.column(label), classes, indices[at:stop])
            used = found if self._kept is None else found[self._kept[at:stop]]
            if used.min(initial=0) < 0:
                raise changed(path)
            at = stop

    def label_sets(self, label: str | tuple[str, ...], classes: Sequence[Label]) -> NDArray[np.uint8]:
        """Label sets of the rows, uint8 [n_rows, n_labels]."""
        sets = np.empty((self._all_rows, len(classes)), np.uint8)
        at = 0
        for path, table in self._tables([label] if isinstance(label, str) else label, self._runs(1)):
            stop = at + table.num_rows
            sets[at:stop], known = sets_of(table, label, classes)
            if not (known if self._kept is None else known | ~self._kept[at:stop]).all():
                raise changed(path)
            at = stop
        return sets if self._kept is None else sets[self._kept]

    def _runs(self, at_least: int) -> list[Run]:
        """The pieces in their order, of neighbouring row groups together, in so many runs where there are so many row
        groups."""
        runs: list[Run] = []
        decoded = sum(self._planned[path].row_groups[group] for path, group, *_ in self._pieces)
        most = min(READ_ROWS, decoded // at_least)
        for path, group, start, stop in self._pieces:
            size = self._planned[path].row_groups[group]
            if not (runs and runs[-1].takes(path, group, start, size, most)):
                runs.append(Run(path, range(group, group + 1), size))
            runs[-1].want(start, stop, size)
        return runs

    def _tables(self, names: Sequence[str], runs: Sequence[Run]) -> Iterator[tuple[str, pa.Table]]:
        """Path and rows of each slice of each run."""
        for run in runs:
            table = self._read(run, names)
            for start, stop in run.slices:
                yield run.path, table.slice(start, stop - start)

    def _read(self, run: Run, names: Sequence[str]) -> pa.Table:
        with self._files.borrowed(run.path) as file:
            table = file.read_row_groups(list(run.groups), columns=list(names), use_threads=False)
        if sorted(table.column_names) != sorted(names):
            raise changed(run.path)
        return table


def _edges(runs: Sequence[Run]) -> list[int]:
    """Where the wanted rows of each run begin among those of all, and where the last end."""
    return [0, *accumulate(sum(stop - start for start, stop in run.slices) for run in runs)]


def _pieces(table: TableRows, row_range: RowRange) -> Iterator[Piece]:
    """(path, row group, start, stop within it) that make up a range of global row numbers."""
    first = 0
    for file in table.files:
        for group, size in enumerate(file.row_groups):
            start, stop = max(row_range[0] - first, 0), min(row_range[1] - first, size)
            if start < stop:
                yield file.path, group, start, stop
            first += size
