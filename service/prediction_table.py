"""JSON rows or columns as the matrix that a model reads: matched by name, every mistake with its place."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import Location, Problem, RequestRefused, TooManyRows

Matrix = NDArray[np.float64]
PROBLEMS_SHOWN = 20
NUMBERS = {int, float, bool, type(None)}


def matrix_of_rows(rows: Sequence[Any], features: Sequence[str], cap: int) -> Matrix:
    """float64 [n_rows, n_features] from rows: lists in the order of the features, or objects by name.

    Raises RequestRefused or TooManyRows.
    """
    _check_cap(len(rows), cap)
    width = len(features)
    problems: list[Problem] = []
    cells: list[Sequence[Any]] = []
    for number, row in enumerate(rows):
        found = _row_cells(row, features, width)
        if isinstance(found, str):
            problems.append((("rows", number), found))
        else:
            cells.append(found)
    _raise_any(problems)
    if (plain := _plain(cells)) is not None:
        return plain
    columns = [[row[index] for row in cells] for index in range(width)]

    def place(row: int, index: int) -> Location:
        return ("rows", row, index if isinstance(rows[row], list) else features[index])

    return _matrix(columns, features, len(rows), place)


def matrix_of_columns(columns: Mapping[str, Any], features: Sequence[str], cap: int) -> Matrix:
    """float64 [n_rows, n_features] from columns by name; others are ignored.

    Raises RequestRefused or TooManyRows.
    """
    _raise_any([(("columns",), text) for text in _missing(columns, features)])
    chosen = {name: columns[name] for name in features}
    _raise_any(
        [
            (("columns", name), f"must be a list of values, got {values!r:.60}")
            for name, values in chosen.items()
            if not isinstance(values, list)
        ]
    )
    lengths = {name: len(values) for name, values in chosen.items()}
    n_rows = next(iter(lengths.values()), 0)
    _raise_any(
        [
            (("columns", name), f"has {length} values, but column {features[0]!r} has {n_rows}")
            for name, length in lengths.items()
            if length != n_rows
        ]
    )
    _check_cap(n_rows, cap)
    return _matrix(list(chosen.values()), features, n_rows, lambda row, index: ("columns", features[index], row))


def _plain(cells: list[Sequence[Any]]) -> Matrix | None:
    """All rows at once if they hold only what NumPy reads as this service does; else None: columns are looked at."""
    if not cells or not {kind for row in cells for kind in map(type, row)} <= NUMBERS:
        return None
    try:
        return np.array(cells, np.float64)  # None becomes NaN
    except OverflowError:  # an integer that float64 does not reach
        return None


def _row_cells(row: Any, features: Sequence[str], width: int) -> Sequence[Any] | str:
    """The row's values in the order of the features, or what is wrong with it."""
    if isinstance(row, list):
        if len(row) == width:
            return row
        return f"has {len(row)} values, but the model has {width} features"
    if not isinstance(row, dict):
        return f"must be a list of values or an object by feature name, got {row!r:.60}"
    try:
        return [row[name] for name in features]
    except KeyError:
        return "; ".join(_missing(row, features))


def _missing(given: Mapping[str, Any], features: Sequence[str]) -> list[str]:
    names = [name for name in features if name not in given]
    if not names:
        return []
    shown = ", ".join(map(repr, names[:PROBLEMS_SHOWN]))
    more = f" and {len(names) - PROBLEMS_SHOWN} more" if len(names) > PROBLEMS_SHOWN else ""
    return [f"missing features: {shown}{more}; give null where a value is unknown"]


def _matrix(columns: list[list[Any]], features: Sequence[str], n_rows: int, place: Any) -> Matrix:
    matrix = np.empty((n_rows, len(features)))
    problems: list[Problem] = []
    for index, values in enumerate(columns):
        try:
            matrix[:, index] = _floats(values)
        except (TypeError, ValueError, OverflowError):
            problems += [
                (place(row, index), f"row {row}, column {features[index]!r}: {text}")
                for row, value in enumerate(values)
                if (text := _cell_problem(value))
            ]
    _raise_any(problems)
    return matrix


def _floats(values: list[Any]) -> Matrix:
    """The values as float64, null as NaN. Raises TypeError, ValueError or OverflowError for anything else."""
    if any(isinstance(value, str) for value in values):
        # NumPy would read "1.5" as a number, and nobody could tell a mistake from a wish.
        raise TypeError
    array = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if array.ndim != 1:
        raise ValueError
    return array


def _cell_problem(value: Any) -> str | None:
    if value is None or isinstance(value, (bool, float)):
        return None
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            return "the number is too large"
        return None
    return f"must be a number or null, got {value!r:.60}"


def _check_cap(n_rows: int, cap: int) -> None:
    if n_rows > cap:
        raise TooManyRows(f"{n_rows} rows in one request, at most {cap} are accepted; send several requests")


def _raise_any(problems: list[Problem]) -> None:
    if problems:
        more = len(problems) - PROBLEMS_SHOWN
        shown = problems[:PROBLEMS_SHOWN]
        if more > 0:
            shown.append((problems[PROBLEMS_SHOWN][0][:1], f"and {more} more problems"))
        raise RequestRefused(shown)
