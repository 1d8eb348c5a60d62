"""Thresholds and bins of a block's columns that have a byte a value: all columns in a few calls (byte_columns.py)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Floats
from boost_core.byte_columns import (
    ENTRIES,
    ROOM,
    count,
    is_bytes,
    look_up,
    make_tables,
    mark,
    new_room,
    place,
    split,
)
from boost_core.collective import Collective
from boost_core.team import Team
from workers.raw_column import RawColumn

LOWEST = {"bool": 0.0, "uint8": 0.0, "int8": -128.0}  # by the type of a column what its entry 0 stands for
PLACE_WORK, CELL_WORK, ENTRY_WORK = 2, 2, 8  # element operations


class ByteBlock:
    """The columns of a block that may be such. Rows of `bins` hold their raw entries until `bin` is called.

    types: of the columns, as Arrow calls them; bins: uint8 [n_columns, n_rows] (OUT).
    """

    def __init__(self, values: Sequence[RawColumn], types: Sequence[str], bins: NDArray[np.uint8], team: Team) -> None:
        self._values, self._bins, self._team = values, bins, team
        self._may = [column for column, type_ in enumerate(types) if type_ in LOWEST]
        self.columns = np.array([c for c in self._may if is_own(values[c])], np.int64)
        self._lowest = np.array([LOWEST[types[column]] for column in self.columns])

    def others(self) -> list[int]:
        """The columns of the block that are none of `columns`."""
        own = set(self.columns.tolist())
        return [column for column in range(len(self._values)) if column not in own]

    def put(self) -> None:
        """Set the rows of `bins`."""
        columns = self.columns.tolist()

        def part(start: int, stop: int) -> None:
            for column in columns[start:stop]:
                place(self._values[column].parts, self._bins[column])

        self._team.over(len(columns), PLACE_WORK * len(columns) * self._bins.shape[1], part)

    def thresholds(self, sampled: NDArray[np.int64], max_bins: int, collective: Collective) -> list[Floats]:
        """Of those columns that are such on all members; only these are left. sampled: rows in the quantile sample."""
        if not self._may:  # nor has any other member
            return []
        seen = self._agree(max_bins, collective)
        crowded = seen.sum(axis=1) > max_bins
        if crowded.any():
            seen[crowded] = collective.sum(self._counted(self.columns[crowded], sampled).reshape(-1)).reshape(
                -1, ENTRIES
            )
        found, n_found = np.empty((len(seen), max_bins)), np.empty(len(seen), np.int64)

        def part(start: int, stop: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                split(seen, self._lowest, max_bins, start, stop, new_room(), found, n_found)

        self._team.over(len(seen), ENTRY_WORK * seen.size, part)
        return [row[:n] for row, n in zip(found, n_found.tolist(), strict=True)]

    def _agree(self, limit: int, collective: Collective) -> NDArray[np.int64]:
        """Entries that any member has seen, 1 or 0, [n_columns, 256]; of more than `limit`, more than so many."""
        own = np.zeros((len(self.columns), ENTRIES), np.bool_)

        def part(start: int, stop: int) -> None:
            mark(self._bins, self.columns, limit, start, stop, own)

        self._team.over(len(own), CELL_WORK * len(own) * self._bins.shape[1], part)
        seen = np.zeros((len(self._may), ENTRIES + 1), np.int64)
        mine = np.isin(self._may, self.columns)
        seen[mine, :ENTRIES], seen[:, ENTRIES] = own, ~mine
        seen = collective.max(seen.reshape(-1)).reshape(seen.shape)
        everywhere = seen[:, ENTRIES] == 0
        self._lowest = self._lowest[everywhere[mine]]
        self.columns = np.array(self._may, np.int64)[everywhere]
        return np.ascontiguousarray(seen[everywhere, :ENTRIES])

    def _counted(self, columns: NDArray[np.int64], sampled: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = np.zeros((len(columns), ENTRIES), np.int64)

        def part(start: int, stop: int) -> None:
            count(self._bins, columns, sampled, start, stop, counts)

        self._team.over(len(columns), CELL_WORK * len(columns) * len(sampled), part)
        return counts

    def bin(self, thresholds: Sequence[Floats]) -> None:
        """Make bins of the entries; thresholds: of `columns`."""
        if not len(self.columns):
            return
        ends = np.cumsum([0, *map(len, thresholds)], dtype=np.int64)
        flat, tables = np.concatenate([np.empty(0), *thresholds]), np.empty((len(self.columns), ENTRIES), np.uint8)

        def part(start: int, stop: int) -> None:
            make_tables(flat, ends, self._lowest, start, stop, tables)
            look_up(self._bins, self.columns, tables, start, stop, np.empty(ROOM, np.uint8))

        self._team.over(len(self.columns), CELL_WORK * len(self.columns) * self._bins.shape[1], part)


def is_own(column: RawColumn) -> bool:
    """Whether its entries can stand for its rows: none is missing, none left out."""
    return column.kept is None and is_bytes(column.parts)
