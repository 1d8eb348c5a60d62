"""What a job reads, settled before anything is scheduled: files, rows, features, classes.

The plan is made once, by whoever accepts the job, and sent to every member: no member lists files or reads
statistics again. Whatever is wrong with the data as far as schema and labels go is said here, with its place in the
request.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boost_core.model import Feature, Label
from workers.errors import DataError, Location

TRAIN: Location = ("data", "train")
VALID: Location = ("data", "valid")
LABEL: Location = ("data", "label")
FEATURES: Location = ("data", "features")
EXCLUDE: Location = ("data", "exclude")
MOST_NAMED = 5  # names listed in a message before it says how many more there are


@dataclass(frozen=True)
class DataRequest:
    """What a request asks to read. Paths are absolute and checked (data_root.py); features None = all columns but
    the label and the excluded ones."""

    train: tuple[str, ...]
    valid: tuple[str, ...] | None
    label: str
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParquetRows:
    """One Parquet file: rows of each of its row groups."""

    path: str
    row_groups: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        return sum(self.row_groups)


@dataclass(frozen=True)
class TableRows:
    """Files in the order that numbers their rows; files without rows are left out."""

    files: tuple[ParquetRows, ...]

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)


@dataclass(frozen=True)
class DataPlan:
    """A job's data. classes: distinct labels of the training rows, sorted."""

    train: TableRows
    valid: TableRows | None
    label: str
    features: tuple[Feature, ...]
    classes: tuple[Label, ...]


def plan_data(request: DataRequest) -> DataPlan:
    """Read the footers and the label columns of a request's files.

    Errors: DataError for files that are not Parquet, zero rows, unknown columns, column types that are not supported,
    files that differ, missing labels, a single class, validation labels that training lacks.
    """
    train, schema = _read_footers(request.train, TRAIN)
    features = _choose_features(request, schema)
    _check_label_type(schema, request.label)
    used = [request.label, *(feature.name for feature in features)]
    _check_same_types(train, schema, used, TRAIN)
    classes = _classes(_count_labels(train, request.label, TRAIN), request.label)
    valid = None
    if request.valid is not None:
        valid, valid_schema = _read_footers(request.valid, VALID)
        _check_columns_present(valid_schema, used, VALID)
        _check_same_types(valid, schema, used, VALID)
        _check_valid_labels(_count_labels(valid, request.label, VALID), classes)
    return DataPlan(train, valid, request.label, features, classes)


def named(names: Sequence[Any]) -> str:
    """A list of names for a message, cut short where it is long."""
    listed = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return listed if len(names) <= MOST_NAMED else f"{listed} and {len(names) - MOST_NAMED} more"


def _open(path: str, loc: Location) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        name = path.rsplit("/", 1)[-1]
        raise DataError(loc, f"{name!r} cannot be read as Parquet: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read_footers(paths: Sequence[str], loc: Location) -> tuple[TableRows, pa.Schema]:
    files: list[ParquetRows] = []
    schema: pa.Schema | None = None
    for path in paths:
        with _open(path, loc) as parquet:
            footer = parquet.metadata
            sizes = tuple(footer.row_group(group).num_rows for group in range(footer.num_row_groups))
            if sum(sizes) > 0:
                files.append(ParquetRows(path, sizes))
                schema = schema or parquet.schema_arrow
    if schema is None:
        raise DataError(loc, f"0 rows in {len(paths)} file(s): there is nothing to read")
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise DataError(loc, f"column names appear more than once: {named(repeated)}")
    return TableRows(tuple(files)), schema


def _choose_features(request: DataRequest, schema: pa.Schema) -> tuple[Feature, ...]:
    if request.label not in schema.names:
        raise DataError(LABEL, f"no column {request.label!r}; the data have: {named(schema.names)}")
    unknown = [name for name in request.exclude if name not in schema.names]
    if unknown:
        raise DataError(EXCLUDE, f"no such column(s) to exclude: {named(unknown)}")
    if request.features is None:
        left_out = {request.label, *request.exclude}
        names = [name for name in schema.names if name not in left_out]
    else:
        names = _named_features(request, schema)
    if not names:
        raise DataError(FEATURES, "no feature is left besides the label")
    return tuple(_feature(schema.field(name)) for name in names)


def _named_features(request: DataRequest, schema: pa.Schema) -> list[str]:
    given = list(request.features or ())
    unknown = [name for name in given if name not in schema.names]
    if unknown:
        raise DataError(FEATURES, f"no such column(s): {named(unknown)}; the data have: {named(schema.names)}")
    if request.label in given:
        raise DataError(FEATURES, f"the label {request.label!r} cannot be a feature")
    repeated = [name for name, count in Counter(given).items() if count > 1]
    if repeated:
        raise DataError(FEATURES, f"features are named more than once: {named(repeated)}")
    return [name for name in given if name not in set(request.exclude)]


def is_numeric(type_: pa.DataType) -> bool:
    """Whether a column's values are read as float64."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _feature(column: pa.Field) -> Feature:
    if not is_numeric(column.type):
        raise DataError(
            FEATURES,
            f"column {column.name!r} has type {column.type}, which is not supported as a feature yet "
            "(integers, floats and booleans are); name it in data.exclude or convert it",
        )
    return Feature(column.name, str(column.type))


def _check_label_type(schema: pa.Schema, label: str) -> None:
    type_ = schema.field(label).type
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    if not (is_numeric(plain) or pa.types.is_string(plain) or pa.types.is_large_string(plain)):
        raise DataError(
            LABEL,
            f"column {label!r} has type {type_}; labels are integers, strings, booleans or floats for now",
        )


def _check_columns_present(schema: pa.Schema, used: Sequence[str], loc: Location) -> None:
    absent = [name for name in used if name not in schema.names]
    if absent:
        raise DataError(loc, f"columns that training uses are missing: {named(absent)}")


def _check_same_types(table: TableRows, schema: pa.Schema, used: Sequence[str], loc: Location) -> None:
    """Every file has the columns in use, of one type."""
    for file in table.files:
        with _open(file.path, loc) as parquet:
            here = parquet.schema_arrow
        _check_columns_present(here, used, loc)
        for name in used:
            expected, found = schema.field(name).type, here.field(name).type
            if found != expected:
                file_name = file.path.rsplit("/", 1)[-1]
                raise DataError(
                    loc,
                    f"column {name!r} has type {found} in {file_name!r} but {expected} elsewhere; make them one type",
                )


def _count_labels(table: TableRows, label: str, loc: Location) -> Counter[Label]:
    """Rows of each label. Errors: DataError with the count if labels are missing."""
    counts: Counter[Label] = Counter()
    missing = 0
    for file in table.files:
        with _open(file.path, loc) as parquet:
            for batch in parquet.iter_batches(columns=[label]):
                column = plain_labels(batch.column(0))
                missing += pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0
                for entry in pc.value_counts(column).to_pylist():
                    counts[entry["values"]] += entry["counts"]
    if missing:
        raise DataError(
            LABEL, f"column {label!r} has {missing} missing label(s) (null or NaN); remove those rows first"
        )
    return counts


def plain_labels(column: pa.Array) -> pa.Array:
    """Labels without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _classes(counts: Counter[Label], label: str) -> tuple[Label, ...]:
    classes = tuple(sorted(counts))
    if len(classes) < 2:
        raise DataError(LABEL, f"column {label!r} has one class only ({classes[0]!r}): there is nothing to learn")
    return classes


def _check_valid_labels(counts: Counter[Label], classes: Sequence[Label]) -> None:
    known = set(classes)
    strange = [(value, count) for value, count in sorted(counts.items()) if value not in known]
    if strange:
        listed = ", ".join(f"{value!r} ({count} rows)" for value, count in strange[:MOST_NAMED])
        raise DataError(VALID, f"validation rows have {len(strange)} class(es) that training lacks: {listed}")
