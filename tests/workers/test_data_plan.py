"""What is settled about the data before anything is scheduled, and every reason to refuse them."""

import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from boost_core.model import Feature
from tests.workers.parquet_tables import Columns, plan_of, write, write_row_groups
from workers.errors import DataError

NAN = float("nan")
INF = float("inf")
LIST = pa.list_(pa.field("element", pa.int64()))  # the name that Parquet gives it


def columns(labels: Any = (0, 1, 0, 1), **more: Any) -> Columns:
    """One feature and a label column."""
    label = labels if isinstance(labels, pa.Array) else pa.array(labels)
    return {"x": pa.array(np.arange(len(label), dtype=np.float64)), "label": label} | more


def refusal(*arguments: Any, **request: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        plan_of(*arguments, **request)
    return caught.value


# --- labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 4, 5, 3], (3, 4, 5)),
        ([0, 1, 3, 3], (0, 1, 3)),
        ([-1, 1, 1, -1], (-1, 1)),
        ([True, False, True], (False, True)),
        (["b", "a", "ä", "B"], ("B", "a", "b", "ä")),
        ([0.5, -1.0, 2.0], (-1.0, 0.5, 2.0)),
        ([0.0, -0.0, 1.0], (0.0, 1.0)),
        ([-0.0, 0.0, 1.0], (0.0, 1.0)),
        (pa.array([1.5, 2.5], pa.float32()), (1.5, 2.5)),
        (pa.array([1, 2], pa.int8()), (1, 2)),
        (pa.array([2**64 - 1, 1], pa.uint64()), (1, 2**64 - 1)),
        (pa.array(["b", "a"], pa.large_string()), ("a", "b")),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ("a", "b")),
        (pa.DictionaryArray.from_arrays([1, 0, 1], ["unused", "b"]), ("b", "unused")),
        (pa.array([7, 5, 7]).dictionary_encode(), (5, 7)),
    ],
)
def test_classes_are_the_sorted_labels_as_given(tmp_path: Path, labels: Any, classes: tuple[Any, ...]):
    found = plan_of(write(tmp_path / "t.parquet", columns(labels))).classes
    assert found == classes
    assert [type(value) for value in found] == [type(value) for value in classes]
    assert [str(value) for value in found] == [str(value) for value in classes]  # 0.0, not -0.0


def test_a_category_without_rows_is_no_class(tmp_path: Path):
    labels = pa.DictionaryArray.from_arrays([2, 0, 2], ["a", "lost", "b"])
    assert plan_of(write(tmp_path / "t.parquet", columns(labels))).classes == ("a", "b")


def test_dictionaries_that_differ_give_one_list_of_classes(tmp_path: Path):
    groups = [pa.table(columns(pa.array(part).dictionary_encode())) for part in (["c", "a"], ["b", "c"], ["a", "b"])]
    first = write_row_groups(tmp_path / "a.parquet", groups[:2])
    second = write(tmp_path / "b.parquet", groups[2])
    assert plan_of([first, second]).classes == ("a", "b", "c")


def test_classes_come_from_all_files(tmp_path: Path):
    paths = [write(tmp_path / f"{value}.parquet", columns([value, value])) for value in (2, 0, 1)]
    assert plan_of(paths).classes == (0, 1, 2)


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ([0, None, 1, None], 2),
        ([0.0, NAN, 1.0], 1),
        (pa.array([0.0, NAN, None, 1.0], from_pandas=False), 2),
        (["a", None, "b"], 1),
        ([True, None, False], 1),
        (pa.array(["a", None, "b"]).dictionary_encode(), 1),
    ],
)
def test_missing_labels_are_counted_and_refused(tmp_path: Path, labels: Any, count: int):
    error = refusal(write(tmp_path / "t.parquet", columns(labels)))
    assert error.loc == ("data", "label")
    assert f"column 'label' has {count} missing label(s)" in error.message


def test_missing_labels_are_counted_over_all_files(tmp_path: Path):
    paths = [write(tmp_path / f"{name}.parquet", columns([0, None, 1])) for name in "abc"]
    assert "3 missing label(s)" in refusal(paths).message


def test_missing_validation_labels_are_refused(tmp_path: Path):
    train, valid = write(tmp_path / "t.parquet", columns()), write(tmp_path / "v.parquet", columns([0, None]))
    assert "1 missing label(s)" in refusal(train, valid).message


def test_infinite_labels_are_refused(tmp_path: Path):
    error = refusal(write(tmp_path / "t.parquet", columns([0.0, INF, 1.0, -INF])))
    assert error.loc == ("data", "label")
    assert "2 infinite label(s)" in error.message


@pytest.mark.parametrize("labels", [[5, 5, 5], ["only"], [True, True]])
def test_one_class_is_refused(tmp_path: Path, labels: list[Any]):
    error = refusal(write(tmp_path / "t.parquet", columns(labels)))
    assert error.loc == ("data", "label")
    assert f"one class only ({labels[0]!r})" in error.message


def test_classes_that_training_lacks_are_named_with_their_counts(tmp_path: Path):
    train = write(tmp_path / "t.parquet", columns([0, 1, 3]))
    valid = write(tmp_path / "v.parquet", columns([2, 0, 2, 7, 2]))
    error = refusal(train, valid)
    assert error.loc == ("data", "valid")
    assert "2 class(es) that training lacks: 2 (3 rows), 7 (1 rows)" in error.message


def test_validation_may_lack_classes(tmp_path: Path):
    plan = plan_of(write(tmp_path / "t.parquet", columns()), write(tmp_path / "v.parquet", columns([1, 1])))
    assert plan.classes == (0, 1)
    assert plan.valid is not None
    assert plan.valid.n_rows == 2


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([date(2020, 1, 1), date(2020, 1, 2)]),
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pa.array([b"a", b"b"]),
        pa.array([[1], [2]], LIST),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array(np.array([1, 2], np.float16)),
        pa.nulls(2),
    ],
    ids=lambda labels: str(labels.type),
)
def test_unsuitable_label_types_are_named(tmp_path: Path, labels: pa.Array):
    error = refusal(write(tmp_path / "t.parquet", columns(labels)))
    assert error.loc == ("data", "label")
    assert f"column 'label' has type {labels.type}" in error.message
    assert "convert it" in error.message


# --- features -----------------------------------------------------------------------------------------------

NUMERIC = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_()),
]
UNSUITABLE = {
    "text": pa.array(["a", "b"]),
    "category": pa.array(["a", "b"]).dictionary_encode(),
    "day": pa.array([date(2020, 1, 1), None]),
    "money": pa.array([Decimal("1.5"), None]),
    "time": pa.array([1, 2], pa.timestamp("us")),
    "span": pa.array([1, 2], pa.duration("s")),
    "raw": pa.array([b"a", b"b"]),
    "items": pa.array([[1], [2]], LIST),
    "record": pa.array([{"a": 1}, {"a": 2}]),
    "empty": pa.nulls(2),
}


def test_numeric_types_are_features(tmp_path: Path):
    features = {f"c{place}": pa.nulls(4, type_) for place, type_ in enumerate(NUMERIC)}
    plan = plan_of(write(tmp_path / "t.parquet", columns() | features))
    assert plan.features == (
        Feature("x", "double"),
        *(Feature(f"c{place}", str(type_)) for place, type_ in enumerate(NUMERIC)),
    )


@pytest.mark.parametrize("name", UNSUITABLE)
def test_unsuitable_features_are_named_with_a_way_out(tmp_path: Path, name: str):
    path = write(tmp_path / "t.parquet", columns([0, 1], **{name: UNSUITABLE[name]}))
    error = refusal(path)
    assert error.loc == ("data", "features")
    assert f"{name!r} ({UNSUITABLE[name].type}" in error.message
    assert "name the others in data.exclude" in error.message
    assert plan_of(path, exclude=(name,)).features == (Feature("x", "double"),)
    assert plan_of(path, features=("x",)).features == (Feature("x", "double"),)


def test_unsuitable_features_are_named_together(tmp_path: Path):
    message = refusal(write(tmp_path / "t.parquet", columns([0, 1], **UNSUITABLE))).message
    assert all(f"'{name}' (" in message for name in ("text", "category", "day", "money", "time"))
    assert "and 5 more" in message


@pytest.fixture
def wide(tmp_path: Path) -> str:
    more = {name: pa.array([1, 2, 3, 4]) for name in ("y", "z", "w.v")}
    return write(tmp_path / "wide.parquet", columns(**more))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, ["x", "y", "z", "w.v"]),
        ({"exclude": ("y",)}, ["x", "z", "w.v"]),
        ({"exclude": ("y", "y", "label")}, ["x", "z", "w.v"]),
        ({"features": ("z", "x")}, ["z", "x"]),  # the model's features are in the order asked for
        ({"features": ("z", "x"), "exclude": ("x",)}, ["z"]),
        ({"features": ("w.v",)}, ["w.v"]),
        ({"label": "z"}, ["x", "label", "y", "w.v"]),
    ],
)
def test_which_columns_are_features(wide: str, request_: dict[str, Any], expected: list[str]):
    assert [feature.name for feature in plan_of(wide, **request_).features] == expected


@pytest.mark.parametrize(
    ("request_", "loc", "message"),
    [
        ({"label": "kind"}, "label", "no column 'kind'; the data have: 'x', 'label', 'y', 'z', 'w.v'"),
        ({"label": ""}, "label", "no column ''"),
        ({"features": ("x", "q", "r")}, "features", "no such column(s): 'q', 'r'; the data have: 'x'"),
        ({"features": ("x", "label")}, "features", "the label 'label' cannot be a feature"),
        ({"features": ("x", "y", "x")}, "features", "named more than once: 'x'"),
        ({"features": ()}, "features", "no feature is left"),
        ({"features": ("x",), "exclude": ("x",)}, "features", "no feature is left"),
        ({"exclude": ("x", "y", "z", "w.v")}, "features", "no feature is left"),
        ({"exclude": ("q",)}, "exclude", "no such column(s) to exclude: 'q'"),
    ],
)
def test_column_names_that_are_refused(wide: str, request_: dict[str, Any], loc: str, message: str):
    error = refusal(wide, **request_)
    assert error.loc == ("data", loc)
    assert message in error.message


def test_long_lists_of_columns_are_cut_short(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns(**{f"c{place}": [1, 2, 3, 4] for place in range(50)}))
    assert "'x', 'label', 'c0', 'c1', 'c2' and 47 more" in refusal(path, label="kind").message


# --- files --------------------------------------------------------------------------------------------------


def test_rows_are_numbered_over_files_and_row_groups(tmp_path: Path):
    first = write(tmp_path / "a.parquet", columns([0, 1, 0, 1, 0]), row_group_size=2)
    second = write(tmp_path / "b.parquet", columns([1, 1, 0]))
    train = plan_of([first, second]).train
    assert [(file.path, file.row_groups) for file in train.files] == [(first, (2, 2, 1)), (second, (3,))]
    assert train.n_rows == 8


def test_empty_files_and_row_groups_are_skipped(tmp_path: Path):
    table = pa.table(columns())
    nothing = table.slice(0, 0)
    empty = write(tmp_path / "a.parquet", nothing)
    hollow = write_row_groups(tmp_path / "b.parquet", [nothing, table, nothing, table])
    no_groups = write_row_groups(tmp_path / "c.parquet", [nothing])
    other_type = write(tmp_path / "d.parquet", {"x": pa.array([], pa.string())})
    plan = plan_of([empty, hollow, no_groups, other_type], [empty, hollow])
    assert [file.row_groups for file in plan.train.files] == [(0, 4, 0, 4)]
    assert plan.valid is not None
    assert plan.valid.n_rows == 8


@pytest.mark.parametrize("count", [1, 3])
def test_no_rows_at_all_is_refused(tmp_path: Path, count: int):
    empty = pa.table(columns()).slice(0, 0)
    paths = [write(tmp_path / f"{place}.parquet", empty) for place in range(count)]
    error = refusal(paths)
    assert error.loc == ("data", "train")
    assert f"0 rows in {count} file(s)" in error.message
    full = write(tmp_path / "full.parquet", columns())
    assert refusal(full, paths).loc == ("data", "valid")


@pytest.mark.parametrize(
    ("other", "types"),
    [
        ({"x": pa.array([1, 2])}, ("int64", "double")),
        ({"x": pa.array([1, 2], pa.float32())}, ("float", "double")),
        ({"x": pa.array(["1", "2"])}, ("string", "double")),
        ({"label": pa.array(["0", "1"])}, ("string", "int64")),
        ({"label": pa.array([0, 1], pa.int32())}, ("int32", "int64")),
    ],
)
def test_types_that_differ_are_named_with_file_and_column(tmp_path: Path, other: Columns, types: tuple[str, str]):
    first, second = write(tmp_path / "a.parquet", columns()), write(tmp_path / "b.parquet", columns([0, 1]) | other)
    [name] = other
    for place, error in (("train", refusal([first, second])), ("valid", refusal(first, second))):
        assert error.loc == ("data", place)
        assert f"column {name!r} has type {types[0]} in 'b.parquet' but {types[1]} elsewhere" in error.message


def test_types_of_columns_that_are_not_used_may_differ(tmp_path: Path):
    first = write(tmp_path / "a.parquet", columns(other=[1, 2, 3, 4]))
    second = write(tmp_path / "b.parquet", columns(other=["a", "b", "c", "d"]))
    third = write(tmp_path / "c.parquet", columns())
    assert plan_of([first, second, third], third, exclude=("other",)).train.n_rows == 12


def test_columns_may_come_in_another_order(tmp_path: Path):
    first = write(tmp_path / "a.parquet", columns(y=[1, 2, 3, 4]))
    second = write(tmp_path / "b.parquet", pa.table(columns(y=[1, 2, 3, 4])).select(["label", "y", "x"]))
    assert [feature.name for feature in plan_of([first, second]).features] == ["x", "y"]


@pytest.mark.parametrize("dropped", ["x", "label"])
def test_a_file_that_lacks_a_column_is_named(tmp_path: Path, dropped: str):
    first = write(tmp_path / "a.parquet", columns(y=[1, 2, 3, 4]))
    second = write(tmp_path / "b.parquet", pa.table(columns(y=[1, 2, 3, 4])).drop_columns([dropped]))
    for place, error in (("train", refusal([first, second])), ("valid", refusal(first, second))):
        assert error.loc == ("data", place)
        assert f"columns that training uses are missing in 'b.parquet': {dropped!r}" in error.message


@pytest.mark.parametrize("name", ["x", "label", "other"])
def test_repeated_column_names_are_refused_in_any_file(tmp_path: Path, name: str):
    fine = write(tmp_path / "a.parquet", columns(other=[1, 2, 3, 4]))
    table = pa.table(columns(other=[1, 2, 3, 4]))
    twice = write(tmp_path / "b.parquet", table.append_column(name, table[name]))
    for error in (refusal(twice), refusal([fine, twice]), refusal(fine, twice)):
        assert f"'b.parquet' has columns of the same name: {name!r}" in error.message


def test_names_that_differ_in_case_are_different(tmp_path: Path):
    plan = plan_of(write(tmp_path / "a.parquet", columns(X=[1, 2, 3, 4], Label=[1, 2, 3, 4])))
    assert [feature.name for feature in plan.features] == ["x", "X", "Label"]


NOT_PARQUET: dict[str, bytes | None] = {
    "nothing": b"",
    "text": b"x,label\n1,0\n",
    "magic only": b"PAR1PAR1",
    "cut short": None,
}


@pytest.mark.parametrize("kind", NOT_PARQUET)
def test_a_file_that_is_not_parquet_is_named(tmp_path: Path, kind: str):
    fine = Path(write(tmp_path / "fine.parquet", columns()))
    strange = tmp_path / "strange.parquet"
    content = NOT_PARQUET[kind]
    strange.write_bytes(fine.read_bytes()[:-20] if content is None else content)
    for place, error in (("train", refusal(str(strange))), ("valid", refusal(str(fine), str(strange)))):
        assert error.loc == ("data", place)
        assert "'strange.parquet' cannot be read as Parquet" in error.message
        assert str(tmp_path) not in error.message


def test_a_file_that_is_gone_is_named_without_its_folder(tmp_path: Path):
    message = refusal(str(tmp_path / "gone.parquet")).message
    assert message.startswith("'gone.parquet' cannot be read")
    assert str(tmp_path) not in message


def test_damaged_label_pages_are_refused(tmp_path: Path):
    path = Path(write(tmp_path / "t.parquet", {"label": pa.array([0, 1] * 50), "x": pa.array([0.5] * 100)}))
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56  # the first column's first pages; the footer is at the end
    path.write_bytes(content)
    error = refusal(str(path))
    assert error.loc == ("data", "train")
    assert "'t.parquet' cannot be read" in error.message


def test_a_plan_crosses_processes(tmp_path: Path):
    plan = plan_of(write(tmp_path / "t.parquet", columns(["a", "b"])))
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_refusal_crosses_processes(tmp_path: Path):
    error = refusal(write(tmp_path / "t.parquet", columns([5, 5])))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.loc, copy.message) == (type(error), error.loc, error.message)
