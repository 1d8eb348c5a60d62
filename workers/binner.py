"""From Parquet columns to a member's binned shards, thresholds agreed with all members.

A block of columns is read, its distinct values (or its part of the quantile sample) are exchanged, thresholds follow,
the block is binned and dropped. Every member goes through the same blocks, also one that holds no rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import (
    Binning,
    Floats,
    bin_column,
    distinct_values,
    make_binning,
    midpoints,
    quantile_thresholds,
    sample_rows,
)
from boost_core.collective import Collective
from boost_core.team import Team
from workers.job import Assignment
from workers.reading import RangeReader

BLOCK_BYTES = 64 << 20  # raw float64 values of a block on one member


@dataclass(frozen=True)
class Binned:
    """A member's binned rows: uint8 [n_features, n_rows] each."""

    binning: Binning
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]


def blocks_of(n_features: int, n_rows: int, size: int) -> list[range]:
    """Column blocks, the same on every member: rows are counted as if spread evenly."""
    rows_each = max(n_rows // size, 1)
    width = max(BLOCK_BYTES // (8 * rows_each), 1)
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
        sampled = sample_rows(row_numbers, n_rows, n_features, job.config.seed)
        train_bins = np.empty((n_features, train.n_rows), np.uint8)
        valid_bins = np.empty((n_features, valid.n_rows if valid else 0), np.uint8)
        thresholds: list[Floats] = []
        has_missing: list[bool] = []
        for block in blocks_of(n_features, n_rows, self._assignment.size):
            columns = [names[feature] for feature in block]
            values = self._read(train, columns)
            found, missing = self._thresholds(values, sampled)
            self._bin(values, found, train_bins[block.start : block.stop])
            if valid is not None:
                self._bin(self._read(valid, columns), found, valid_bins[block.start : block.stop])
            thresholds += found
            has_missing += missing
        return Binned(make_binning(thresholds, has_missing), train_bins, valid_bins)

    def _read(self, reader: RangeReader, columns: list[str]) -> Floats:
        self._clock("read")
        values = reader.floats(columns)
        self._clock("bin")
        return values

    def _bin(self, values: Floats, thresholds: list[Floats], bins: NDArray[np.uint8]) -> None:
        def part(start: int, stop: int) -> None:
            for place in range(start, stop):
                bin_column(values[place], thresholds[place], bins[place])

        self._team.over(len(thresholds), 16 * values.size, part)

    def _thresholds(self, values: Floats, sampled: NDArray[np.bool_]) -> tuple[list[Floats], list[bool]]:
        """Thresholds of a block's columns and whether any member has missing values in them."""
        distinct, missing = self._agree_on_distinct(values)
        crowded = [place for place, found in enumerate(distinct) if found is None]
        samples = [values[place][sampled] for place in crowded]
        gathered = self._gather_ragged([sample[~np.isnan(sample)] for sample in samples])
        by_place = dict(zip(crowded, gathered, strict=True))
        thresholds = [
            quantile_thresholds(np.concatenate(by_place[place]), self._max_bins) if found is None else midpoints(found)
            for place, found in enumerate(distinct)
        ]
        return thresholds, missing

    def _agree_on_distinct(self, values: Floats) -> tuple[list[Floats | None], list[bool]]:
        """All members' distinct values of each column, None where there are more than max_bins."""
        found: list[tuple[Floats, bool]] = [(np.empty(0), False)] * len(values)

        def part(start: int, stop: int) -> None:
            for place in range(start, stop):
                found[place] = distinct_values(values[place], self._max_bins)

        self._team.over(len(values), 4 * values.size, part)
        merged: list[Floats | None] = []
        for parts in self._gather_ragged([distinct for distinct, _ in found]):
            union = np.unique(np.concatenate(parts))
            merged.append(union if union.shape[0] <= self._max_bins else None)
        flags = np.array([missing for _, missing in found], np.int64)
        return merged, [bool(flag) for flag in self._collective.max(flags)]

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


def bin_stored(
    rows: RangeReader, names: list[str], binning: Binning, team: Team, clock: Callable[[str], None]
) -> NDArray[np.uint8]:
    """Bins of rows by thresholds that are known, uint8 [n_features, n_rows]: no other member is asked."""
    bins = np.empty((len(names), rows.n_rows), np.uint8)
    for block in blocks_of(len(names), rows.n_rows, 1):
        clock("read")
        values = rows.floats([names[feature] for feature in block])
        clock("bin")

        def part(start: int, stop: int, first: int = block.start, values: Floats = values) -> None:
            for place in range(start, stop):
                bin_column(values[place], binning.of_feature(first + place), bins[first + place])

        team.over(len(block), 16 * values.size, part)
    return bins
