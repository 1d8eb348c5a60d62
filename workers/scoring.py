"""Predicts a Parquet table with a model, a row group at a time."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boost_core.model import Label, Model
from boost_core.prediction import predict, predict_sets
from workers.data_plan import check_label_type, is_numeric
from workers.errors import DataError, Location
from workers.label_columns import check_set_types, label_sets
from workers.member import available_cores
from workers.parquet_file import check_distinct_names, file_name, listed, named, open_parquet
from workers.raw_column import to_floats
from workers.reading import class_indices

DATA: Location = ("data",)


@dataclass(frozen=True)
class TablePrediction:
    """Predicted labels of all rows, in the model's own label values; several a row for multi-label models. error:
    fraction of the labelled rows whose label differs (multi-label: of their (row, label) pairs), None if no row has a
    label; seconds: reading and predicting."""

    labels: tuple[Label | tuple[Label, ...], ...]
    error: float | None
    seconds: float

    @property
    def rows(self) -> int:
        return len(self.labels)


def predict_table(model: Model, paths: Sequence[str], label: str | None = None) -> TablePrediction:
    """Predict the rows of Parquet files; columns are matched by name, others are ignored.

    label: the column to compare with, where the files have it; None: the model's label. A label that the model does
    not know counts as an error; a row whose label is missing (null or NaN) is predicted and not counted.
    Errors: DataError for files that cannot be read, missing or unsuitable columns.
    """
    if model.multi_label:
        return _predict_sets(model, paths, label)
    started = time.perf_counter()
    label = str(model.label) if label is None else label
    classes: list[NDArray[np.int32]] = []
    wrong, labelled = 0, 0
    for table in _row_groups(model, paths, (label,)):
        found = predict(model, _matrix(model, table), available_cores())
        classes.append(found)
        if label in table.column_names:
            column = table.column(label)
            present = ~np.asarray(pc.is_null(column, nan_is_null=True))
            wrong += int(np.count_nonzero(present & (class_indices(column, model.classes) != found)))
            labelled += int(np.count_nonzero(present))
    indices = np.concatenate([np.empty(0, np.int32), *classes])
    labels = tuple(model.classes[index] for index in indices)
    return TablePrediction(labels, wrong / labelled if labelled else None, time.perf_counter() - started)


def _predict_sets(model: Model, paths: Sequence[str], label: str | None) -> TablePrediction:
    """Label sets; label: the column of lists to compare with. A label that the model does not know counts for nothing,
    and a row whose labels are missing is not counted."""
    started, wrong, compared = time.perf_counter(), 0, 0
    names = model.label if label is None else label
    columns = (names,) if isinstance(names, str) else names
    labels: list[tuple[Label, ...]] = []
    for table in _row_groups(model, paths, columns):
        found = predict_sets(model, _matrix(model, table), available_cores())
        labels += [tuple(model.classes[place] for place in np.flatnonzero(row)) for row in found]
        if all(name in table.column_names for name in columns):
            _check_sets(table.schema, names)
            truth, present = label_sets(table, names, model.classes)
            wrong += int((truth.astype(np.bool_) != found)[present].sum())
            compared += int(present.sum()) * len(model.classes)
    return TablePrediction(tuple(labels), wrong / compared if compared else None, time.perf_counter() - started)


def _check_sets(schema: pa.Schema, names: str | tuple[str, ...]) -> None:
    try:
        check_set_types(schema, names)
    except DataError as error:
        raise DataError(DATA, error.message) from None


def _row_groups(model: Model, paths: Sequence[str], labels: tuple[str, ...]) -> Iterator[pa.Table]:
    wanted = [feature.name for feature in model.features]
    for path in paths:
        with open_parquet(path, DATA) as parquet:
            schema = parquet.schema_arrow
            _check_columns(schema, wanted, path)
            for label in labels:
                if not model.multi_label and label in schema.names and not pa.types.is_null(schema.field(label).type):
                    check_label_type(schema.field(label), DATA)
            columns = [*wanted, *(label for label in labels if label in schema.names and label not in wanted)]
            for group in range(parquet.metadata.num_row_groups):
                yield parquet.read_row_group(group, columns=columns)


def _check_columns(schema: pa.Schema, wanted: Sequence[str], path: str) -> None:
    check_distinct_names(schema, path, DATA)
    absent = [column for column in wanted if column not in schema.names]
    if absent:
        raise DataError(DATA, f"{file_name(path)!r} lacks features of the model: {named(absent)}")
    strange = [f"{name!r} ({schema.field(name).type})" for name in wanted if not is_numeric(schema.field(name).type)]
    if strange:
        raise DataError(DATA, f"{file_name(path)!r} has columns that are not numeric as in training: {listed(strange)}")


def _matrix(model: Model, table: pa.Table) -> NDArray[np.float64]:
    rows = np.empty((table.num_rows, len(model.features)))
    for place, feature in enumerate(model.features):
        rows[:, place] = to_floats(table.column(feature.name))
    return rows
