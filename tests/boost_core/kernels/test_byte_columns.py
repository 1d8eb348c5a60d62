"""Columns of a byte a value against the kernels for any column."""

import numpy as np
import pytest

from boost_core import byte_columns
from boost_core.binning import bin_column, quantiles_of, tally_of
from boost_core.tile import Tile

LOWEST = {np.int8: -128.0, np.uint8: 0.0, np.bool_: 0.0}
Columns = list[np.ndarray]


@pytest.fixture
def columns() -> Columns:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 256, 10_000).astype(np.uint8),
        random.integers(-128, 128, 10_000).astype(np.int8),
        random.integers(-3, 3, 10_000).astype(np.int8),
        random.integers(0, 2, 10_000).astype(np.bool_),
        np.full(10_000, 255, np.uint8),
    ]


@pytest.mark.parametrize("max_bins", [2, 40, 255])
def test_thresholds_and_bins_are_those_of_floats(columns: Columns, max_bins: int) -> None:
    n = len(columns)
    rows, numbers = np.empty((n, 10_000), np.uint8), np.arange(n)
    for row, column in zip(rows, columns, strict=True):
        values = column.view(np.uint8) if column.dtype == np.bool_ else column
        byte_columns.place((Tile(values[:4_001]), Tile(values[4_001:])), row)
    lowest = np.array([LOWEST[column.dtype.type] for column in columns])
    counts = np.zeros((n, byte_columns.ENTRIES), np.int64)
    sample = np.arange(1, 10_000, 3)
    byte_columns.count(rows, numbers, sample, 0, n, counts)
    thresholds, found = np.empty((n, max_bins)), np.empty(n, np.int64)
    byte_columns.split(counts, lowest, max_bins, 0, n, byte_columns.new_room(), thresholds, found)
    wanted = [quantiles_of(tally_of(column[sample].astype(np.float64)), max_bins) for column in columns]
    assert [row[:m].tolist() for row, m in zip(thresholds, found, strict=True)] == [each.tolist() for each in wanted]
    ends, tables = np.cumsum([0, *map(len, wanted)]), np.empty((n, byte_columns.ENTRIES), np.uint8)
    byte_columns.make_tables(np.concatenate(wanted), ends, lowest, 0, n, tables)
    byte_columns.look_up(rows, numbers, tables, 0, n, np.empty(byte_columns.ROOM, np.uint8))
    for row, column, each in zip(rows, columns, wanted, strict=True):
        codes = np.empty(10_000, np.uint8)
        bin_column(column.astype(np.float64), each, codes)
        assert row.tolist() == codes.tolist()


def test_marking_ends_once_there_are_more_than_the_limit(columns: Columns) -> None:
    rows, seen = np.stack([columns[0], columns[4]]), np.zeros((2, byte_columns.ENTRIES), np.bool_)
    byte_columns.mark(rows, np.array([1, 0]), 200, 0, 2, seen)
    assert np.flatnonzero(seen[0]).tolist() == [255]
    assert seen[1].sum() > 200


def tables() -> dict[str, np.ndarray]:
    entries = np.arange(byte_columns.ENTRIES)

    def stays(n: int) -> np.ndarray:
        return entries - np.searchsorted(np.arange(7, 7 + 5 * n, 5), entries, side="right")

    return {
        "as they are": entries,
        "one bin": np.zeros(byte_columns.ENTRIES),
        "the last begins one": entries == 255,
        "a window": np.clip(entries, 3, 90) - 3,
        "few stays": stays(3),
        "most stays": stays(byte_columns.MOST_STAYS),
        "more stays": stays(byte_columns.MOST_STAYS + 1),
        "a step of two": entries - (entries < 9) * (entries > 0),
        "not from 0": np.minimum(entries + 1, 255),
        "not in order": entries[::-1],
    }


@pytest.mark.parametrize("name", tables())
def test_any_table_is_looked_up(name: str) -> None:
    table = tables()[name].astype(np.uint8)
    values = np.random.default_rng(1).integers(0, 256, byte_columns.TILE + 33).astype(np.uint8)
    values[: byte_columns.ENTRIES] = np.arange(byte_columns.ENTRIES)
    rows = np.stack([values, values])
    byte_columns.look_up(rows, np.array([1]), table[np.newaxis], 0, 1, np.empty(byte_columns.ROOM, np.uint8))
    assert rows[0].tolist() == values.tolist()
    assert rows[1].tolist() == table[values].tolist()
