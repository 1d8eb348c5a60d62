"""The steps of predicting a tile of rows, each timed by itself on one thread."""

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boost_core.compact import compact_of
from boost_core.jit import kernel
from boost_core.model import Model
from boost_core.settling import clear
from boost_core.tiles import add_says, code_rows, fill_tables, find_leaves, new_tile
from boost_core.tree_vectors import TREES

REPEATS = 15


@kernel
def _leaves(trees, n_rows, tile):  # type: ignore[no-untyped-def]
    for first in range(0, trees.multiplier.shape[0], TREES):
        find_leaves(trees, first, min(first + TREES, trees.multiplier.shape[0]), n_rows, tile)


@kernel
def _tables(trees, tile):  # type: ignore[no-untyped-def]
    for first in range(0, trees.multiplier.shape[0], TREES):
        fill_tables(trees, first, min(first + TREES, trees.multiplier.shape[0]), tile.tables)


@kernel
def _sums(trees, n_rows, tile):  # type: ignore[no-untyped-def]
    for _ in range(0, trees.multiplier.shape[0], TREES):
        add_says(n_rows, tile)


@kernel
def _clear(sums, n_rows, n_columns):  # type: ignore[no-untyped-def]
    clear(sums, n_rows, n_columns)


def time_steps(model: Model, rows: NDArray[np.float64]) -> dict[str, float]:
    """Nanoseconds a row; the model's trees must speak for all score columns. Errors: ValueError without a layout."""
    compact = compact_of(model.forest)
    if compact is None:
        raise ValueError("the model has no compact layout")
    tile, trees = new_tile(compact), compact.trees
    n_rows = min(tile.sums.shape[0], rows.shape[0])
    flat, strides = rows.reshape(-1), (rows.shape[1], 1)
    _clear(tile.sums, n_rows, compact.n_columns)
    steps: dict[str, Callable[[], None]] = {
        "codes": lambda: code_rows(flat, strides, 0, n_rows, compact.coding, tile),
        "leaves": lambda: _leaves(trees, n_rows, tile),
        "what leaves add": lambda: _tables(trees, tile),
        "sums": lambda: _sums(trees, n_rows, tile),
    }
    return {name: _median(step) / n_rows * 1e9 for name, step in steps.items()}


def _median(step: Callable[[], None]) -> float:
    step()
    spent = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        step()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)
