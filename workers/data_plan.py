"""What a job reads, settled before anything is scheduled: files, rows, features, classes.

The plan is made once, by whoever accepts the job, and sent to every member: no member lists files or reads
statistics again. Whatever is wrong with the data as far as schema and labels go is said here, with its place in the
request.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boost_core.model import Feature, Label
from workers.errors import DataError, Location
from workers.label_columns import LABEL, SetCounter, check_set_types, set_classes
from workers.parquet_file import check_distinct_names, file_name, listed, named, open_parquet, row_groups
from workers.weight_column import WEIGHT, WeightCheck, kept_batches

TRAIN: Location = ("data", "train")
VALID: Location = ("data", "valid")
FEATURES: Location = ("data", "features")
EXCLUDE: Location = ("data", "exclude")


@dataclass(frozen=True)
class DataRequest:
    """What a request asks to read. Paths are absolute and checked (data_root.py); features None = all columns but
    the label, the weight and the excluded ones. label: a column, or several of 0 and 1; label_lists: it holds lists."""

    train: tuple[str, ...]
    valid: tuple[str, ...] | None
    label: str | tuple[str, ...]
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    weight: str | None = None
    label_lists: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The label columns."""
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def multi_label(self) -> bool:
        return self.label_lists or not isinstance(self.label, str)


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
    """A job's data. classes: distinct labels of the training rows, sorted; weight: the column of row weights;
    removed: training and validation rows of weight 0, which count in nothing else."""

    train: TableRows
    valid: TableRows | None
    label: str | tuple[str, ...]
    features: tuple[Feature, ...]
    classes: tuple[Label, ...]
    weight: str | None = None
    removed: tuple[int, int] = (0, 0)
    label_lists: bool = False

    @property
    def multi_label(self) -> bool:
        """Whether rows have sets of labels."""
        return self.label_lists or not isinstance(self.label, str)

    @property
    def n_train(self) -> int:
        """Training rows that stay."""
        return self.train.n_rows - self.removed[0]

    @property
    def n_valid(self) -> int:
        """Validation rows that stay."""
        return self.valid.n_rows - self.removed[1] if self.valid else 0


def plan_data(request: DataRequest) -> DataPlan:
    """Read the footers, the label and the weight columns of a request's files.

    Errors: DataError for files that are not Parquet, zero rows, unknown columns, column types that are not supported,
    files that differ, missing labels, a single class, validation labels that training lacks, weights that are none.
    """
    train, footers = _read_footers(request.train, TRAIN)
    schema = footers[train.files[0].path].schema
    features = _choose_features(request, schema)
    _check_label_types(request, schema)
    used = [*_not_features(request), *(feature.name for feature in features)]
    _check_same_types(footers, schema, used, TRAIN)
    counts, removed = _count_labels(train, footers, request, TRAIN)
    classes = set_classes(counts, request.label) if request.multi_label else _classes(counts, str(request.label))
    valid, removed_valid = None, 0
    if request.valid is not None:
        valid, footers = _read_footers(request.valid, VALID)
        _check_same_types(footers, schema, used, VALID)
        counts, removed_valid = _count_labels(valid, footers, request, VALID)
        _check_valid_labels(counts, classes)
    removed_rows = (removed, removed_valid)
    return DataPlan(train, valid, request.label, features, classes, request.weight, removed_rows, request.label_lists)


def _not_features(request: DataRequest) -> list[str]:
    return [*request.labels] if request.weight is None else [*request.labels, request.weight]


def _check_label_types(request: DataRequest, schema: pa.Schema) -> None:
    if request.multi_label:
        check_set_types(schema, request.label)
    else:
        check_label_type(schema.field(request.label), LABEL)


@dataclass(frozen=True)
class _Footer:
    """What a file's footer says, read once for all that the plan asks of it."""

    metadata: pq.FileMetaData
    schema: pa.Schema


Footers = Mapping[str, _Footer]  # by path, of the files with rows


def _read_footers(paths: Sequence[str], loc: Location) -> tuple[TableRows, Footers]:
    files: list[ParquetRows] = []
    footers: dict[str, _Footer] = {}
    for path in paths:
        with open_parquet(path, loc) as parquet:
            sizes = row_groups(parquet)
            if sum(sizes) > 0:
                files.append(ParquetRows(path, sizes))
                check_distinct_names(parquet.schema_arrow, path, loc)
                footers[path] = _Footer(parquet.metadata, parquet.schema_arrow)
    if not files:
        raise DataError(loc, f"0 rows in {len(paths)} file(s): there is nothing to read")
    return TableRows(tuple(files)), footers


def _choose_features(request: DataRequest, schema: pa.Schema) -> tuple[Feature, ...]:
    if absent := [name for name in request.labels if name not in schema.names]:
        raise DataError(LABEL, f"no column {named(absent)}; the data have: {named(schema.names)}")
    _check_weight(request, schema)
    unknown = [name for name in request.exclude if name not in schema.names]
    if unknown:
        raise DataError(EXCLUDE, f"no such column(s) to exclude: {named(unknown)}")
    if request.features is None:
        left_out = {*_not_features(request), *request.exclude}
        names = [name for name in schema.names if name not in left_out]
    else:
        names = _named_features(request, schema)
    if not names:
        raise DataError(FEATURES, "no feature is left besides the label")
    _check_feature_types(schema, names)
    return tuple(Feature(name, str(schema.field(name).type)) for name in names)


def _check_weight(request: DataRequest, schema: pa.Schema) -> None:
    if request.weight is None:
        return
    if request.weight not in schema.names:
        raise DataError(WEIGHT, f"no column {request.weight!r}; the data have: {named(schema.names)}")
    if request.weight in request.labels:
        raise DataError(WEIGHT, f"the label {request.weight!r} cannot be the weight")
    type_ = schema.field(request.weight).type
    if not is_numeric(type_):
        raise DataError(WEIGHT, f"column {request.weight!r} has type {type_}; weights are numbers")


def _named_features(request: DataRequest, schema: pa.Schema) -> list[str]:
    given = list(request.features or ())
    unknown = [name for name in given if name not in schema.names]
    if unknown:
        raise DataError(FEATURES, f"no such column(s): {named(unknown)}; the data have: {named(schema.names)}")
    if labels := [name for name in request.labels if name in given]:
        raise DataError(FEATURES, f"the label {named(labels)} cannot be a feature")
    if request.weight in given:
        raise DataError(FEATURES, f"the weight {request.weight!r} cannot be a feature")
    repeated = [name for name, count in Counter(given).items() if count > 1]
    if repeated:
        raise DataError(FEATURES, f"features are named more than once: {named(repeated)}")
    return [name for name in given if name not in set(request.exclude)]


def is_numeric(type_: pa.DataType) -> bool:
    """Whether a column's values are read as float64."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _check_feature_types(schema: pa.Schema, names: Sequence[str]) -> None:
    strange = [name for name in names if not is_numeric(schema.field(name).type)]
    if strange:
        raise DataError(
            FEATURES,
            "columns of a type that is not supported as a feature yet: "
            f"{listed([f'{name!r} ({schema.field(name).type})' for name in strange])}; integers, floats and booleans "
            "are: name the others in data.exclude or convert them",
        )


def check_label_type(column: pa.Field, loc: Location) -> None:
    """Errors: DataError if a column's values cannot be labels."""
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    fits = is_numeric(plain) and not pa.types.is_float16(plain)
    if not (fits or pa.types.is_string(plain) or pa.types.is_large_string(plain)):
        raise DataError(
            loc,
            f"column {column.name!r} has type {column.type}; labels are integers, strings, booleans, float or double "
            "for now: convert it",
        )


def _check_same_types(footers: Footers, schema: pa.Schema, used: Sequence[str], loc: Location) -> None:
    """Every file has the columns in use, of one type."""
    for path, footer in footers.items():
        here = footer.schema
        absent = [name for name in used if name not in here.names]
        if absent:
            raise DataError(loc, f"columns that training uses are missing in {file_name(path)!r}: {named(absent)}")
        for name in used:
            expected, found = schema.field(name).type, here.field(name).type
            if found != expected:
                raise DataError(
                    loc,
                    f"column {name!r} has type {found} in {file_name(path)!r} but {expected} elsewhere; "
                    "make them one type",
                )


def _count_labels(
    table: TableRows, footers: Footers, request: DataRequest, loc: Location
) -> tuple[Counter[Label], int]:
    """Rows of each label, and the rows of weight 0, which are in no count. Errors: DataError with the count if labels
    are missing or infinite, or weights are none."""
    weights = None if request.weight is None else WeightCheck(request.weight)
    if request.multi_label:
        return _count_sets(footers, request, weights, loc), weights.removed if weights else 0
    label, counts, missing = str(request.label), Counter[Label](), 0
    for path, footer in footers.items():
        for batch in kept_batches((path, footer.metadata), [label], weights, loc):
            column = plain_labels(batch.column(label))
            missing += pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0
            for entry in pc.value_counts(column).to_pylist():
                counts[entry["values"]] += entry["counts"]
    if weights is not None:
        weights.finish(table.n_rows)
    if missing:
        raise DataError(
            LABEL, f"column {label!r} has {missing} missing label(s) (null or NaN); remove those rows first"
        )
    infinite = sum(count for value, count in counts.items() if value in (math.inf, -math.inf))
    if infinite:
        raise DataError(LABEL, f"column {label!r} has {infinite} infinite label(s); remove those rows first")
    return counts, weights.removed if weights else 0


def _count_sets(footers: Footers, request: DataRequest, weights: WeightCheck | None, loc: Location) -> Counter[Label]:
    """Rows that have each label."""
    counter = SetCounter(request.label)
    for path, footer in footers.items():
        for batch in kept_batches((path, footer.metadata), request.labels, weights, loc):
            counter.add(batch, path)
    if weights is not None:
        weights.finish(sum(footer.metadata.num_rows for footer in footers.values()))
    counter.finish()
    return counter.counts


def plain_labels(column: pa.Array) -> pa.Array:
    """Labels without dictionary encoding, and with one zero: -0.0 and 0.0 are the same label."""
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pc.add(plain, pa.scalar(0.0, plain.type)) if pa.types.is_floating(plain.type) else plain


def _classes(counts: Counter[Label], label: str) -> tuple[Label, ...]:
    classes = tuple(sorted(counts))
    if len(classes) < 2:
        raise DataError(LABEL, f"column {label!r} has one class only ({classes[0]!r}): there is nothing to learn")
    return classes


def _check_valid_labels(counts: Counter[Label], classes: Sequence[Label]) -> None:
    known = set(classes)
    strange = [(value, count) for value, count in sorted(counts.items()) if value not in known]
    if strange:
        classes_and_rows = listed([f"{value!r} ({count} rows)" for value, count in strange])
        raise DataError(VALID, f"validation rows have {len(strange)} class(es) that training lacks: {classes_and_rows}")
