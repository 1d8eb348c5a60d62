"""From Parquet columns to a member's binned shards, thresholds agreed with all members.

A block of columns is read, its distinct values (or its part of the quantile sample) are exchanged, thresholds follow,
the block is binned and dropped. Every member goes through the same blocks, also one that holds no rows.

Threads share a block by columns and, where these are few, by ranges of their rows. A member that is alone asks nobody:
there a thread takes a few columns all the way from decoding to their bins, and waits for no other thread between.
Labels are read then by whichever thread runs out of columns.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import (
    NUMBERED,
    Binning,
    Distinct,
    Floats,
    NumbersOf,
    Tally,
    make_binning,
    merged,
    midpoints,
    quantile_thresholds,
    quantiles_of,
    sample_rows,
)
from boost_core.collective import Alone, Collective
from boost_core.model import Feature
from boost_core.team import PARTS_A_THREAD, Team
from boost_core.tile import FEW_ROWS, Tile, TileBinner, Window, add_tile, tile_binner
from workers.byte_binning import ByteBlock
from workers.job import Assignment
from workers.raw_column import RawColumn
from workers.reading import LABELLING, RangeReader

BLOCK_BYTES = 64 << 20  # raw values of a block on one member, floats as float64
GROUP_BYTES = 8 << 20  # the same of the columns that a thread of a lone member takes at a time, if not one column
WIDTHS = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
}  # bytes of a value, else 8
GROUPS_A_THREAD = 2  # at least: with fewer, threads that are done wait for the last one
# Of columns that a thread takes for itself: 784 of 60,000 bytes gained nothing (docs/performance.md).
LEAST_ROWS = 100_000
LEAST_COLUMNS = 2  # of a block, however many rows there are: threads share decoding by columns and row groups
# Element operations, roughly: of a cell, of a sampled value, of a grid, of a cell from its file to its bin.
DISTINCT_WORK, BIN_WORK, COUNT_WORK, SAMPLE_WORK, GRID_WORK, WHOLE_WORK = 4, 6, 4, 32, 30_000, 32


Work = Callable[[], None]
Part = tuple[list[Floats], list[bool]]  # of some columns: thresholds, and whether a value is missing


@dataclass(frozen=True)
class Binned:
    """A member's binned rows: uint8 [n_features, n_rows] each."""

    binning: Binning
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]


def _unheard(phase: str) -> None:
    """A clock that is not looked at."""


def blocks_of(types: Sequence[str], n_rows: int, size: int) -> list[range]:
    """Column blocks, the same on every member: rows are counted as if spread evenly. types: of the columns."""
    return _columns_of(types, BLOCK_BYTES // max(n_rows // size, 1), LEAST_COLUMNS)


def groups_of(types: Sequence[str], n_rows: int, threads: int) -> list[range]:
    """Groups of columns for the threads of a lone member of so many rows, of which each holds one at a time; none where
    these would be more raw values than a block's, or columns are too short or too few: then blocks are shared."""
    least, whole = GROUPS_A_THREAD * threads, sum(WIDTHS.get(type_, 8) for type_ in types)
    groups = _columns_of(types, min(GROUP_BYTES // max(n_rows, 1), whole // least), 1)
    widest = max((sum(WIDTHS.get(types[column], 8) for column in group) for group in groups), default=0)
    shared = threads == 1 or (len(groups) >= least and n_rows >= LEAST_ROWS)
    return groups if shared and threads * widest * n_rows <= BLOCK_BYTES else []


def _columns_of(types: Sequence[str], most: int, least: int) -> list[range]:
    """Neighbouring columns, of at most so many bytes a row where they are more than the least number."""
    blocks: list[range] = []
    first, width = 0, 0
    for column, type_ in enumerate(types):
        if column - first >= least and width + WIDTHS.get(type_, 8) > most:
            blocks.append(range(first, column))
            first, width = column, 0
        width += WIDTHS.get(type_, 8)
    return [*blocks, range(first, len(types))] if types else []


class Binner:
    """Bins one member's rows. `reading` and `binning` are called around the two kinds of work, for a clock."""

    def __init__(
        self, assignment: Assignment, collective: Collective, team: Team, clock: Callable[[str], None]
    ) -> None:
        self._assignment, self._collective, self._team, self._clock = assignment, collective, team, clock
        self._max_bins = assignment.job.config.max_bins

    def run(
        self, train: RangeReader, valid: RangeReader | None, numbers: NumbersOf, beside: Sequence[Work] = ()
    ) -> Binned:
        """Read and bin all features; numbers: global ones of the training rows from a place to another; beside: what
        else is to be done, in any order, on any thread, of less work than a group of columns each."""
        job = self._assignment.job
        features = job.plan.features
        types = [feature.type for feature in features]
        sampled = self._sampled_rows(train.n_rows, numbers)
        train_bins = np.empty((len(features), train.n_rows), np.uint8)
        valid_bins = np.empty((len(features), valid.n_rows if valid else 0), np.uint8)

        def done(block: range, binner: Binner) -> Part:
            some = features[block.start : block.stop]
            own = train_bins[block.start : block.stop]
            found, missing = binner._bin(binner._read(train, some, own), some, sampled, own)
            if valid is not None:
                valid_own = valid_bins[block.start : block.stop]
                bin_block(binner._read(valid, some, valid_own), some, found, binner._team, valid_own)
            return found, missing

        n_rows = max(train.n_rows, valid.n_rows if valid else 0)
        if self._collective.size == 1 and (groups := groups_of(types, n_rows, self._team.threads)):
            parts = self._apart(groups, WHOLE_WORK * n_rows * len(features), done, beside)
        else:
            self._team.each(beside, LABELLING * n_rows)
            parts = [done(block, self) for block in blocks_of(types, job.plan.n_train, self._assignment.size)]
        self._clock("bin")  # what follows, too
        thresholds = list(chain.from_iterable(found for found, _ in parts))
        has_missing = list(chain.from_iterable(missing for _, missing in parts))
        return Binned(make_binning(thresholds, has_missing), train_bins, valid_bins)

    def _apart(
        self, groups: list[range], work: int, done: Callable[[range, "Binner"], Part], beside: Sequence[Work]
    ) -> list[Part]:
        """What `done` returns for each group, with a binner that the thread has to itself. Small work comes last, where
        it fills the time for which one thread would wait for the other's last group."""
        caller = threading.get_ident()

        def take(start: int, stop: int) -> list[Part]:
            # clocks are the caller's: how it divides its time stands for all threads
            called = threading.get_ident() == caller
            with self._team.of_caller() if called else Team(1) as team:
                own = Binner(self._assignment, Alone(), team, self._clock if called else _unheard)
                found = [done(group, own) for group in groups[start:stop]]
                if others := beside[max(start - len(groups), 0) : max(stop - len(groups), 0)]:
                    own._clock("read")
                    team.each(others, 0)
                return found

        size = len(groups) + len(beside)
        return list(chain.from_iterable(self._team.over(size, work, take, None, size)))

    def _sampled_rows(self, n_own: int, numbers: NumbersOf) -> NDArray[np.int64]:
        """Places of this member's training rows that are in the quantile sample."""
        plan, seed = self._assignment.job.plan, self._assignment.job.config.seed

        def part(start: int, stop: int) -> list[NDArray[np.int64]]:
            edges = [*range(start, stop, NUMBERED), stop]
            size = plan.n_train, len(plan.features)
            return [sample_rows(numbers(low, high), *size, seed, low) for low, high in pairwise(edges)]

        return np.concatenate([np.empty(0, np.int64), *chain.from_iterable(self._team.over(n_own, 4 * n_own, part))])

    def _read(self, reader: RangeReader, features: Sequence[Feature], bins: NDArray[np.uint8]) -> list[RawColumn]:
        """Columns; bins (OUT): where theirs will be, and values of a byte may be until then."""
        self._clock("read")
        values = reader.columns([feature.name for feature in features], self._team, bins)
        self._clock("bin")
        return values

    def _bin(
        self, values: list[RawColumn], features: Sequence[Feature], sampled: NDArray[np.int64], bins: NDArray[np.uint8]
    ) -> tuple[list[Floats], list[bool]]:
        """bins (OUT) of a block of training rows; thresholds, and whether any member misses a value, of its columns."""
        narrow = ByteBlock(values, [feature.type for feature in features], bins, self._team)
        narrow.put()
        of_bytes = narrow.thresholds(sampled, self._max_bins, self._collective)
        narrow.bin(of_bytes)
        others = narrow.others()
        rest = [values[column] for column in others]
        of_others = self._thresholds(rest, sampled)
        missing = np.zeros(len(values), np.int64)
        missing[others] = bin_columns(rest, of_others, self._team, [bins[column] for column in others])
        found = dict(zip([*narrow.columns.tolist(), *others], [*of_bytes, *of_others], strict=True))
        return [found[column] for column in range(len(values))], [bool(flag) for flag in self._collective.max(missing)]

    def _thresholds(self, values: list[RawColumn], sampled: NDArray[np.int64]) -> list[Floats]:
        """Thresholds of a block's columns; sampled: this member's rows that are in the quantile sample."""
        distinct = self._agree_on_distinct(values)
        crowded = [place for place, found in enumerate(distinct) if found is None]
        # values that a table counts are exchanged with their counts, others as they are
        own = np.array([values[place].window is None and len(sampled) > 0 for place in crowded], np.int64)
        listed = self._collective.max(own) > 0
        found = iter(self._quantiles([values[place] for place in crowded], listed, sampled))
        return [next(found) if each is None else midpoints(each) for each in distinct]

    def _quantiles(
        self, values: list[RawColumn], listed: NDArray[np.bool_], sampled: NDArray[np.int64]
    ) -> Iterator[Floats]:
        """Thresholds of crowded columns by a sample of their rows. listed: bool like values."""
        lists = self._sampled([column for column, as_list in zip(values, listed, strict=True) if as_list], sampled)
        counts = self._counted([column for column, as_list in zip(values, listed, strict=True) if not as_list], sampled)
        return (next(lists) if as_list else next(counts) for as_list in listed)

    def _sampled(self, values: list[RawColumn], sampled: NDArray[np.int64]) -> Iterator[Floats]:
        """By the sampled values of all members."""
        own = np.empty((len(values), len(sampled)))

        def sample(start: int, stop: int) -> None:
            for row in range(start, stop):
                values[row].sample(sampled, own[row])

        self._team.over(len(values), SAMPLE_WORK * own.size, sample)
        # members' parts of the sample have different lengths
        gathered = self._collective.all_gather(own.reshape(-1)) if len(values) else [own]
        every = [part.reshape(len(values), part.size // max(len(values), 1)) for part in gathered]

        def quantiles(start: int, stop: int) -> list[Floats]:
            return [quantile_thresholds(joined([e[row] for e in every]), self._max_bins) for row in range(start, stop)]

        work = SAMPLE_WORK * sum(part.size for part in every)
        return chain.from_iterable(self._team.over(len(values), work, quantiles))

    def _counted(self, values: list[RawColumn], sampled: NDArray[np.int64]) -> Iterator[Floats]:
        """By how often each of the sampled values occurs among all members."""

        def tally(start: int, stop: int) -> list[Tally]:
            return [column.tally(sampled) for column in values[start:stop]]

        work = COUNT_WORK * len(values) * len(sampled)
        tallies = list(chain.from_iterable(self._team.over(len(values), work, tally)))
        if not tallies:
            return iter(())
        if self._collective.size > 1:
            all_values = self._gather_ragged([each.values for each in tallies])
            all_counts = self._gather_ragged([each.counts.astype(np.float64) for each in tallies])
            tallies = [
                merged([Tally(*each) for each in zip(found, (n.astype(np.int64) for n in counts), strict=True)])
                for found, counts in zip(all_values, all_counts, strict=True)
            ]
        return (quantiles_of(each, self._max_bins) for each in tallies)

    def _agree_on_distinct(self, values: list[RawColumn]) -> list[Floats | None]:
        """All members' distinct values of each column, None where there are more than max_bins."""
        merged: list[Floats | None] = []
        for parts in self._gather_ragged(distinct_of(values, self._max_bins, self._team)):
            union = union_of(parts)
            merged.append(union if union.shape[0] <= self._max_bins else None)
        return merged

    def _gather_ragged(self, arrays: list[Floats]) -> list[list[Floats]]:
        """For each array every member's version of it, by rank."""
        if self._collective.size == 1:
            return [[array] for array in arrays]
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
    wanted = -(-PARTS_A_THREAD * team.threads // max(len(values), 1)) if team.threads > 1 else 1
    n_parts = max(min(wanted, n_rows // FEW_ROWS), 1)
    edges = [n_rows * part // n_parts for part in range(n_parts + 1)]
    return [(column, start, stop) for column in range(len(values)) for start, stop in pairwise(edges)]


def distinct_of(values: Sequence[RawColumn], limit: int, team: Team) -> list[Floats]:
    """Sorted distinct values of each column, without NaN; where there are more than `limit`, any limit + 1 of them."""
    tasks = shares(values, team)

    def part(first: int, last: int) -> list[Floats]:
        found = []
        for column, start, stop in tasks[first:last]:
            tiles, window = values[column].tiles(start, stop), values[column].window
            found.append(_distinct_floats(tiles, limit) if window is None else _distinct_numbers(tiles, window, limit))
        return found

    parts: list[list[Floats]] = [[] for _ in values]
    work = DISTINCT_WORK * sum(column.n_rows for column in values)
    for (column, *_), found in zip(tasks, chain.from_iterable(team.over(len(tasks), work, part)), strict=True):
        parts[column].append(found)
    return [union_of(each)[: limit + 1] for each in parts]


def _distinct_floats(tiles: Iterable[Tile], limit: int) -> Floats:
    distinct = Distinct(limit)
    for tile in tiles:
        add_tile(distinct, tile)
        if distinct.crowded:
            break
    return distinct.values()


def _distinct_numbers(tiles: Iterable[Tile], window: Window, limit: int) -> Floats:
    seen = np.zeros(window.size, np.bool_)
    for tile in tiles:
        if window.mark(tile, limit, seen):
            break
    return window.numbers(np.flatnonzero(seen)[: limit + 1])


def union_of(parts: Sequence[Floats]) -> Floats:
    """Sorted distinct values of arrays that are sorted and distinct."""
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def joined(parts: Sequence[Floats]) -> Floats:
    """Arrays behind each other, without a copy where there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def bin_block(
    values: Sequence[RawColumn],
    features: Sequence[Feature],
    thresholds: Sequence[Floats],
    team: Team,
    bins: NDArray[np.uint8],
) -> None:
    """bins (OUT, uint8 [n_columns, n_rows]): of a block of columns by thresholds that are known."""
    narrow = ByteBlock(values, [feature.type for feature in features], bins, team)
    narrow.put()
    narrow.bin([thresholds[column] for column in narrow.columns])
    others = narrow.others()
    known = [thresholds[column] for column in others]
    bin_columns([values[column] for column in others], known, team, [bins[column] for column in others])


def bin_columns(
    values: Sequence[RawColumn], thresholds: Sequence[Floats], team: Team, bins: Sequence[NDArray[np.uint8]]
) -> NDArray[np.int64]:
    """bins (OUT, uint8 [n_rows] each): of all rows in use; 1 for each column with missing values, else 0."""
    tasks, missing = shares(values, team), np.zeros(len(values), np.int64)
    binners = _binners(values, thresholds, team)

    def part(first: int, last: int) -> None:
        for column, start, stop in tasks[first:last]:
            at = values[column].n_used(start)
            for tile in values[column].tiles(start, stop):
                if binners[column](tile, bins[column][at : at + len(tile)]):
                    missing[column] = 1
                at += len(tile)

    team.over(len(tasks), BIN_WORK * sum(column.n_rows for column in values), part)
    return missing


def _binners(values: Sequence[RawColumn], thresholds: Sequence[Floats], team: Team) -> list[TileBinner]:
    """What bins a column's tiles."""

    def part(start: int, stop: int) -> list[TileBinner]:
        return [
            tile_binner(column.window, each)
            for column, each in zip(values[start:stop], thresholds[start:stop], strict=True)
        ]

    return list(chain.from_iterable(team.over(len(thresholds), GRID_WORK * len(thresholds), part)))


def bin_stored(
    rows: RangeReader, features: Sequence[Feature], binning: Binning, team: Team, clock: Callable[[str], None]
) -> NDArray[np.uint8]:
    """Bins of rows by thresholds that are known, uint8 [n_features, n_rows]: no other member is asked."""
    bins = np.empty((len(features), rows.n_rows), np.uint8)
    for block in blocks_of([feature.type for feature in features], rows.n_rows, 1):
        clock("read")
        some = features[block.start : block.stop]
        own = bins[block.start : block.stop]
        values = rows.columns([feature.name for feature in some], None, own)
        clock("bin")
        thresholds = [binning.of_feature(feature) for feature in block]
        bin_block(values, some, thresholds, team, own)
    return bins
