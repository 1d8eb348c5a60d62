"""Predicts a Parquet table with a model, a row group at a time."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from boost_core.model import Label, Model
from boost_core.prediction import predict
from workers.data_plan import is_numeric, named, plain_labels
from workers.errors import DataError, Location
from workers.member import available_cores
from workers.reading import to_floats

DATA: Location = ("data",)


@dataclass(frozen=True)
class TablePrediction:
    """Predicted labels of all rows, in the model's own label values. error: fraction of rows whose label differs,
    None if the table has no label column; seconds: reading and predicting."""

    labels: tuple[Label, ...]
    error: float | None
    seconds: float

    @property
    def rows(self) -> int:
        return len(self.labels)


def predict_table(model: Model, paths: Sequence[str], label: str | None = "label") -> TablePrediction:
    """Predict the rows of Parquet files; columns are matched by name, others are ignored.

    label: the column to compare with, where the files have it; a label that the model does not know counts as an
    error. Errors: DataError for missing or unsuitable columns.
    """
    started = time.perf_counter()
    classes: list[NDArray[np.int32]] = []
    wrong, labelled = 0, 0
    for table in _row_groups(model, paths, label):
        found = predict(model, _matrix(model, table), available_cores())
        classes.append(found)
        if label is not None and label in table.column_names:
            truth = _class_indices(model, table.column(label))
            wrong += int(np.count_nonzero(truth != found))
            labelled += len(found)
    indices = np.concatenate([np.empty(0, np.int32), *classes])
    labels = tuple(model.classes[index] for index in indices)
    return TablePrediction(labels, wrong / labelled if labelled else None, time.perf_counter() - started)


def _row_groups(model: Model, paths: Sequence[str], label: str | None) -> Iterator[pa.Table]:
    wanted = [feature.name for feature in model.features]
    for path in paths:
        name = path.rsplit("/", 1)[-1]
        try:
            parquet = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise DataError(DATA, f"{name!r} cannot be read as Parquet: {error}") from error
        with parquet:
            schema = parquet.schema_arrow
            _check_columns(schema, wanted, name)
            columns = [*wanted, label] if label in schema.names and label not in wanted else wanted
            for group in range(parquet.metadata.num_row_groups):
                yield parquet.read_row_group(group, columns=columns)


def _check_columns(schema: pa.Schema, wanted: Sequence[str], name: str) -> None:
    absent = [column for column in wanted if column not in schema.names]
    if absent:
        raise DataError(DATA, f"{name!r} lacks features of the model: {named(absent)}")
    strange = [f"{c} ({schema.field(c).type})" for c in wanted if not is_numeric(schema.field(c).type)]
    if strange:
        raise DataError(DATA, f"{name!r} has columns that are not numeric as in training: {named(strange)}")


def _matrix(model: Model, table: pa.Table) -> NDArray[np.float64]:
    rows = np.empty((table.num_rows, len(model.features)))
    for place, feature in enumerate(model.features):
        rows[:, place] = to_floats(table.column(feature.name))
    return rows


def _class_indices(model: Model, column: pa.ChunkedArray) -> NDArray[np.int32]:
    """Class index of each label, -1 where the model does not know it: it cannot be predicted, so it is an error."""
    plain = plain_labels(column.combine_chunks())
    known = pa.array(model.classes)
    if pa.types.is_string(known.type) != (pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type)):
        return np.full(len(plain), -1, np.int32)
    found = pc.index_in(pc.cast(plain, known.type), value_set=known)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int32)
