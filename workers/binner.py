"""From Parquet columns to a member's binned shards, thresholds agreed with all members.

A block of columns is read, its distinct values (or its part of the quantile sample) are exchanged, thresholds follow,
the block is binned and dropped. Every member goes through the same blocks, also one that holds no rows.

Threads share a block by columns and, where these are few, by ranges of their rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import BinGrid, make_grid
from boost_core.binning import (
    Binning,
    Distinct,
    Floats,
    make_binning,
    midpoints,
    quantile_thresholds,
    sample_rows,
)
from boost_core.collective import Collective
from boost_core.team import PARTS_A_THREAD, Team
from boost_core.tile import add_tile, bin_tile
from workers.job import Assignment
from workers.raw_column import TILE_ROWS, RawColumn
from workers.reading import RangeReader

BLOCK_BYTES = 32 << 20  # raw values of a block on one member, as float64
LEAST_COLUMNS = 2  # of a block, however many rows there are: threads share decoding by columns and row groups
# Element operations, roughly: of a cell, of a sampled value, of a grid.
DISTINCT_WORK, BIN_WORK, SAMPLE_WORK, GRID_WORK = 4, 6, 32, 30_000


@dataclass(frozen=True)
class Binned:
    """A member's binned rows: uint8 [n_features, n_rows] each."""

    binning: Binning
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]


def blocks_of(n_features: int, n_rows: int, size: int) -> list[range]:
    """Column blocks, the same on every member: rows are counted as if spread evenly."""
    rows_each = max(n_rows // size, 1)
    width = max(BLOCK_BYTES // (8 * rows_each), LEAST_COLUMNS)
    return [range(first, min(first + width, n_features)) for first in range(0, n_features, width)]


class Binner:
    """Bins one member's rows. `reading` and `binning` are called around the two kinds of work, for a clock."""

    def __init__(
        self, assignment: Assignment, collective: Collective, team: Team, clock: Callable[[str], None]
    ) -> None:
        self._assignment, self._collective, self._team, self._clock = assignment, collective, team, clock
        self._max_bins = assignment.job.config.max_bins

    def run(self, train: RangeReader, valid: RangeReader | None, row_numbers: NDArray[np.int64]) -> Binned:
        """Read and bin all features; row_numbers: global ones of the training rows."""
        job = self._assignment.job
        names = [feature.name for feature in job.plan.features]
        n_rows, n_features = job.plan.n_train, len(names)
        sampled = np.flatnonzero(sample_rows(row_numbers, n_rows, n_features, job.config.seed))
        train_bins = np.empty((n_features, train.n_rows), np.uint8)
        valid_bins = np.empty((n_features, valid.n_rows if valid else 0), np.uint8)
        thresholds: list[Floats] = []
        has_missing: list[bool] = []
        for block in blocks_of(n_features, n_rows, self._assignment.size):
            columns = [names[feature] for feature in block]
            values = self._read(train, columns)
            found = self._thresholds(values, sampled)
            grids = _grids(found, self._team)
            missing = bin_columns(values, grids, self._team, train_bins[block.start : block.stop])
            has_missing += [bool(flag) for flag in self._collective.max(missing)]
            if valid is not None:
                bin_columns(self._read(valid, columns), grids, self._team, valid_bins[block.start : block.stop])
            thresholds += found
        return Binned(make_binning(thresholds, has_missing), train_bins, valid_bins)

    def _read(self, reader: RangeReader, columns: list[str]) -> list[RawColumn]:
        self._clock("read")
        values = reader.columns(columns)
        self._clock("bin")
        return values

    def _thresholds(self, values: list[RawColumn], sampled: NDArray[np.int64]) -> list[Floats]:
        """Thresholds of a block's columns; sampled: this member's rows that are in the quantile sample."""
        distinct = self._agree_on_distinct(values)
        crowded = [place for place, found in enumerate(distinct) if found is None]
        own = np.empty((len(crowded), len(sampled)))

        def sample(start: int, stop: int) -> None:
            for row in range(start, stop):
                values[crowded[row]].take(sampled, own[row])

        self._team.over(len(crowded), SAMPLE_WORK * own.size, sample)
        # members' parts of the sample have different lengths
        gathered = self._collective.all_gather(own.reshape(-1))
        every = [part.reshape(len(crowded), part.size // max(len(crowded), 1)) for part in gathered]

        def quantiles(start: int, stop: int) -> list[Floats]:
            return [quantile_thresholds(joined([e[row] for e in every]), self._max_bins) for row in range(start, stop)]

        work = SAMPLE_WORK * sum(part.size for part in every)
        found = chain.from_iterable(self._team.over(len(crowded), work, quantiles))
        return [next(found) if each is None else midpoints(each) for each in distinct]

    def _agree_on_distinct(self, values: list[RawColumn]) -> list[Floats | None]:
        """All members' distinct values of each column, None where there are more than max_bins."""
        merged: list[Floats | None] = []
        for parts in self._gather_ragged(distinct_of(values, self._max_bins, self._team)):
            union = union_of(parts)
            merged.append(union if union.shape[0] <= self._max_bins else None)
        return merged

    def _gather_ragged(self, arrays: list[Floats]) -> list[list[Floats]]:
        """For each array every member's version of it, by rank."""
        lengths = np.array([array.shape[0] for array in arrays], np.int64)
        all_lengths = self._collective.all_gather(lengths)
        all_values = self._collective.all_gather(np.concatenate([np.empty(0), *arrays]))
        by_member = [
            np.split(values, np.cumsum(member_lengths)[:-1]) if len(arrays) else []
            for values, member_lengths in zip(all_values, all_lengths, strict=True)
        ]
        return [[member[place] for member in by_member] for place in range(len(arrays))]


def shares(values: Sequence[RawColumn], team: Team) -> list[tuple[int, int, int]]:
    """(column, first row, end) of all cells: enough for the team's threads, rows counting also those left out."""
    n_rows = values[0].n_rows if values else 0
    wanted = -(-PARTS_A_THREAD * team.threads // max(len(values), 1))
    n_parts = max(min(wanted, n_rows // TILE_ROWS), 1)
    edges = [n_rows * part // n_parts for part in range(n_parts + 1)]
    return [(column, start, stop) for column in range(len(values)) for start, stop in pairwise(edges)]


def distinct_of(values: Sequence[RawColumn], limit: int, team: Team) -> list[Floats]:
    """Sorted distinct values of each column, without NaN; where there are more than `limit`, any limit + 1 of them."""
    tasks = shares(values, team)

    def part(first: int, last: int) -> list[Floats]:
        found = []
        for column, start, stop in tasks[first:last]:
            distinct = Distinct(limit)
            for tile in values[column].tiles(start, stop):
                add_tile(distinct, tile)
                if distinct.crowded:
                    break
            found.append(distinct.values())
        return found

    parts: list[list[Floats]] = [[] for _ in values]
    work = DISTINCT_WORK * sum(column.n_rows for column in values)
    for (column, *_), found in zip(tasks, chain.from_iterable(team.over(len(tasks), work, part)), strict=True):
        parts[column].append(found)
    return [union_of(each)[: limit + 1] for each in parts]


def union_of(parts: Sequence[Floats]) -> Floats:
    """Sorted distinct values of arrays that are sorted and distinct."""
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def joined(parts: Sequence[Floats]) -> Floats:
    """Arrays behind each other, without a copy where there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def bin_columns(
    values: Sequence[RawColumn], grids: Sequence[BinGrid], team: Team, bins: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """bins (OUT, uint8 [n_columns, n_rows]): of all rows in use; 1 for each column with missing values, else 0."""
    tasks, missing = shares(values, team), np.zeros(len(values), np.int64)

    def part(first: int, last: int) -> None:
        for column, start, stop in tasks[first:last]:
            at = values[column].n_used(start)
            for tile in values[column].tiles(start, stop):
                if bin_tile(grids[column], tile, bins[column, at : at + len(tile)]):
                    missing[column] = 1
                at += len(tile)

    team.over(len(tasks), BIN_WORK * sum(column.n_rows for column in values), part)
    return missing


def _grids(thresholds: Sequence[Floats], team: Team) -> list[BinGrid]:
    def part(start: int, stop: int) -> list[BinGrid]:
        return [make_grid(each) for each in thresholds[start:stop]]

    return list(chain.from_iterable(team.over(len(thresholds), GRID_WORK * len(thresholds), part)))


def bin_stored(
    rows: RangeReader, names: list[str], binning: Binning, team: Team, clock: Callable[[str], None]
) -> NDArray[np.uint8]:
    """Bins of rows by thresholds that are known, uint8 [n_features, n_rows]: no other member is asked."""
    bins = np.empty((len(names), rows.n_rows), np.uint8)
    for block in blocks_of(len(names), rows.n_rows, 1):
        clock("read")
        values = rows.columns([names[feature] for feature in block])
        clock("bin")
        grids = _grids([binning.of_feature(feature) for feature in block], team)
        bin_columns(values, grids, team, bins[block.start : block.stop])
    return bins
