"""Labels of multi-label data: several columns of 0 and 1, one a label, or one column of lists of labels."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boost_core.model import Label
from workers.errors import DataError, Location
from workers.parquet_file import file_name, listed

LABEL: Location = ("data", "label")
Sets = NDArray[np.uint8]


def is_list(type_: pa.DataType) -> bool:
    """Whether a column's values are lists of what labels may be."""
    lists = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    return bool(lists and (pa.types.is_integer(type_.value_type) or _is_text(type_.value_type)))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def check_set_types(schema: pa.Schema, label: str | tuple[str, ...]) -> None:
    """Errors: DataError if columns cannot hold labels of sets; label: a column of lists or columns of 0 and 1."""
    if isinstance(label, str):
        if not is_list(schema.field(label).type):
            message = f"column {label!r} has type {schema.field(label).type}; a column of labels holds lists of "
            raise DataError(LABEL, f"{message}integers or strings")
        return
    if len(label) < 2:
        raise DataError(LABEL, f"one column of 0 and 1 ({label[0]!r}) is one label: name it as text, or name several")
    strange = [
        f"{name!r} ({type_})"
        for name in label
        if not (
            pa.types.is_integer(type_ := schema.field(name).type) or pa.types.is_floating(type_) or type_ == pa.bool_()
        )
    ]
    if strange:
        raise DataError(LABEL, f"label columns hold 0 and 1; these have other types: {listed(strange)}")


class SetCounter:
    """Counts the labels of a table batch by batch, and what is no label."""

    def __init__(self, label: str | tuple[str, ...]) -> None:
        self._label = label
        self._wrong: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self.counts: Counter[Label] = Counter()

    def add(self, batch: pa.RecordBatch, path: str) -> None:
        """Count a batch; its rows are those that stay."""
        if isinstance(self._label, str):
            self._add_lists(batch.column(self._label), path)
        else:
            for name in self._label:
                self._add_column(name, batch.column(name), path)

    def _add_column(self, name: str, column: pa.Array, path: str) -> None:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~np.isin(values, (0.0, 1.0)))
        if wrong.shape[0]:
            self._note(name, wrong.shape[0], column[int(wrong[0])].as_py(), path)
        self.counts[name] += int((values == 1.0).sum())

    def _add_lists(self, column: pa.Array, path: str) -> None:
        if column.null_count:
            self._note(str(self._label), column.null_count, None, path)
        flat = pc.list_flatten(column)
        if flat.null_count:
            self._note(str(self._label), flat.null_count, [None], path)
        for entry in pc.value_counts(flat.drop_null()).to_pylist():
            self.counts[entry["values"]] += entry["counts"]

    def _note(self, name: str, count: int, shown: object, path: str) -> None:
        self._wrong[name] += count
        self._first.setdefault(name, f"{'null' if shown is None else shown} in {file_name(path)!r}")

    def finish(self) -> None:
        """Errors: DataError with the count of what is no label."""
        for name, count in self._wrong.items():
            kind = "missing lists or labels" if isinstance(self._label, str) else "values other than 0 and 1"
            raise DataError(
                LABEL, f"column {name!r} has {count} {kind}, such as {self._first[name]}; put them right first"
            )


def set_classes(counts: Counter[Label], label: str | tuple[str, ...]) -> tuple[Label, ...]:
    """The labels, in the order of their columns, or sorted. Errors: DataError for fewer than two."""
    if not isinstance(label, str):
        return label
    if len(counts) < 2:
        found = ", ".join(map(repr, counts)) or "none"
        raise DataError(LABEL, f"the lists of column {label!r} hold fewer than two different labels ({found})")
    return tuple(sorted(counts))


def sets_of(table: pa.Table, label: str | tuple[str, ...], classes: Sequence[Label]) -> tuple[Sets, NDArray[np.bool_]]:
    """Label sets of a table's rows, uint8 [n_rows, n_labels], and the rows whose labels are all known."""
    sets = np.zeros((table.num_rows, len(classes)), np.uint8)
    known = np.ones(table.num_rows, np.bool_)
    if not isinstance(label, str):
        for place, name in enumerate(label):
            values = table.column(name).cast(pa.float64(), safe=False).to_numpy()
            known &= np.isin(values, (0.0, 1.0))
            sets[:, place] = values == 1.0
        return sets, known
    sets, present, strange = _sets_of_lists(table.column(label).combine_chunks(), classes)
    return sets, present & ~strange


def label_sets(
    table: pa.Table, label: str | tuple[str, ...], classes: Sequence[Label]
) -> tuple[Sets, NDArray[np.bool_]]:
    """Label sets of a table's rows, and the rows whose labels are there; unknown labels in lists are left out."""
    if not isinstance(label, str):
        return sets_of(table, label, classes)
    sets, present, _ = _sets_of_lists(table.column(label).combine_chunks(), classes)
    return sets, present


def _sets_of_lists(column: pa.Array, classes: Sequence[Label]) -> tuple[Sets, NDArray[np.bool_], NDArray[np.bool_]]:
    """Label sets, the rows that have a list, and those with a label that is missing or not among the classes."""
    sets, strange = np.zeros((len(column), len(classes)), np.uint8), np.zeros(len(column), np.bool_)
    rows = np.asarray(pc.list_parent_indices(column), np.int64)
    encoded = pc.list_flatten(column).dictionary_encode()
    place_of = {value: place for place, value in enumerate(classes)}
    places = np.array([*(place_of.get(value, -1) for value in encoded.dictionary.to_pylist()), -1], np.int64)
    found = places[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    sets[rows[found >= 0], found[found >= 0]] = 1
    strange[rows[found < 0]] = True
    return sets, np.asarray(pc.is_valid(column)), strange
