"""Tables are predicted by column name, and compared with their labels where they have them."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from boost_core.model import Model
from boost_core.prediction import predict
from tests.builders import Table, make_table
from tests.workers.parquet_tables import (
    Columns,
    columns_of,
    small_config,
    split_over_files,
    train_plan,
    train_table,
    write,
    write_row_groups,
)
from tests.workers.parquet_tables import plan_of as planned
from workers.errors import DataError
from workers.scoring import predict_table

NAN = float("nan")


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(150, 3, 3, seed=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, table: Table) -> Model:
    return train_table(tmp_path_factory.mktemp("scoring"), table, small_config(rounds=8))


@pytest.fixture
def columns(table: Table) -> Columns:
    return columns_of(table)


@pytest.fixture(scope="module")
def expected(model: Model, table: Table) -> list[int]:
    return predict(model, table.X).tolist()


def error_of(found: list[int], truth: Any) -> float:
    return float(np.mean(np.array(found) != np.array(truth)))


def test_labels_error_and_rows(tmp_path: Path, model: Model, table: Table, columns: Columns, expected: list[int]):
    found = predict_table(model, [write(tmp_path / "t.parquet", columns)])
    assert list(found.labels) == expected
    assert found.rows == 150
    assert found.error == error_of(expected, table.labels)
    assert 0 < found.error < 0.6
    assert found.seconds > 0


def test_rows_may_lie_in_any_files_and_row_groups(
    tmp_path: Path, model: Model, table: Table, columns: Columns, expected: list[int]
):
    paths = split_over_files(tmp_path, columns, [0, 40, 1, 109], row_group_size=17)
    hollow = pa.table(columns).slice(0, 0)
    paths += (write_row_groups(tmp_path / "hollow.parquet", [hollow, hollow]),)
    found = predict_table(model, paths)
    assert list(found.labels) == expected
    assert found.error == error_of(expected, table.labels)


def test_columns_are_matched_by_name(tmp_path: Path, model: Model, columns: Columns, expected: list[int]):
    mixed = {"extra": pa.array(["text"] * 150), **dict(reversed(columns.items())), "f0.x": columns["f1"]}
    found = predict_table(model, [write(tmp_path / "t.parquet", mixed)])
    assert list(found.labels) == expected


def test_types_may_differ_from_training_where_values_agree(tmp_path: Path, model: Model, table: Table):
    """Small integers: as nullable ints, as floats of half the size."""
    answers = []
    for type_ in (pa.int8(), pa.float32(), pa.float64()):
        features = {f"f{k}": pa.array(column, from_pandas=True).cast(type_) for k, column in enumerate(table.X.T)}
        answers.append(predict_table(model, [write(tmp_path / "t.parquet", features)]).labels)
    assert answers[0] == answers[1] == answers[2]


def test_without_a_label_column_there_is_no_error(tmp_path: Path, model: Model, columns: Columns, expected: list[int]):
    del columns["label"]
    found = predict_table(model, [write(tmp_path / "t.parquet", columns)])
    assert (list(found.labels), found.error) == (expected, None)


def test_the_label_column_is_the_models_or_the_one_named(tmp_path: Path, model: Model, table: Table, columns: Columns):
    columns["kind"] = columns.pop("label")
    path = write(tmp_path / "t.parquet", columns)
    found = predict_table(model, [path], "kind")
    assert found.error == error_of(list(found.labels), table.labels)
    assert predict_table(model, [path]).error is None
    assert predict_table(replace(model, label="kind"), [path]).error == found.error


def test_files_without_the_label_are_not_counted(tmp_path: Path, model: Model, table: Table, columns: Columns):
    first = write(tmp_path / "a.parquet", pa.table(columns).slice(0, 50))
    second = write(tmp_path / "b.parquet", pa.table(columns).slice(50).drop_columns(["label"]))
    found = predict_table(model, [first, second])
    assert found.rows == 150
    assert found.error == error_of(list(found.labels[:50]), table.labels[:50])


def test_unknown_labels_are_errors(tmp_path: Path, model: Model, columns: Columns, expected: list[int]):
    truth = [99, -1, *expected[2:]]
    found = predict_table(model, [write(tmp_path / "t.parquet", columns | {"label": pa.array(truth)})])
    assert found.error == 2 / 150


@pytest.mark.parametrize("type_", [pa.float64(), pa.int64()])
def test_rows_without_a_label_are_predicted_and_not_counted(
    tmp_path: Path, model: Model, columns: Columns, expected: list[int], type_: pa.DataType
):
    truth = [None, None, 1 - min(expected[2], 1), *expected[3:]]
    found = predict_table(model, [write(tmp_path / "t.parquet", columns | {"label": pa.array(truth, type_)})])
    assert list(found.labels) == expected
    assert found.error == 1 / 148


@pytest.mark.parametrize("labels", [pa.nulls(150), pa.nulls(150, pa.int64()), pa.array([NAN] * 150)])
def test_no_label_at_all_gives_no_error(tmp_path: Path, model: Model, columns: Columns, labels: pa.Array):
    found = predict_table(model, [write(tmp_path / "t.parquet", columns | {"label": labels})])
    assert (found.rows, found.error) == (150, None)


@pytest.mark.parametrize(
    "labels",
    [
        lambda truth: pa.array(truth, pa.int64()),
        lambda truth: pa.array(truth, pa.uint8()),
        lambda truth: pa.array([float(value) for value in truth]),
        lambda truth: pa.array(truth).dictionary_encode(),
    ],
)
def test_labels_are_compared_as_values(
    tmp_path: Path, model: Model, table: Table, columns: Columns, labels: Any, expected: list[int]
):
    path = write(tmp_path / "t.parquet", columns | {"label": labels(table.labels.tolist())})
    assert predict_table(model, [path]).error == error_of(expected, table.labels)


def test_fractions_and_texts_are_no_class(tmp_path: Path, model: Model, columns: Columns, expected: list[int]):
    for labels in (pa.array([value + 0.5 for value in expected]), pa.array([str(value) for value in expected])):
        path = write(tmp_path / "t.parquet", columns | {"label": labels})
        assert predict_table(model, [path]).error == 1.0


@pytest.mark.parametrize(
    "names", [("ash", "birch", "cedar"), (3, 4, 5), (-1, 0, 1), (-0.5, 0.25, 1e9), ("", "0", "null")]
)
def test_labels_come_back_as_they_were_given(tmp_path: Path, table: Table, columns: Columns, names: tuple[Any, ...]):
    labels = pa.array([names[label] for label in table.labels])
    path = write(tmp_path / "t.parquet", columns | {"label": labels})
    found = predict_table(train_plan(planned(path)).model, [path])
    assert set(found.labels) <= set(names)
    assert {type(value) for value in found.labels} == {type(names[0])}
    assert found.error == error_of(list(found.labels), labels.to_pylist())


def test_a_yes_or_no_label(tmp_path: Path, table: Table, columns: Columns):
    path = write(tmp_path / "t.parquet", columns | {"label": pa.array(table.labels > 0)})
    model = train_plan(planned(path)).model
    assert set(predict_table(model, [path]).labels) == {False, True}
    numbers = write(tmp_path / "n.parquet", columns | {"label": pa.array(table.labels)})
    found = predict_table(model, [numbers])  # 0 and 1 are False and True, 2 is neither
    assert found.error == error_of([int(value) for value in found.labels], table.labels)


def refusal(model: Model, *paths: str) -> str:
    with pytest.raises(DataError) as caught:
        predict_table(model, paths)
    assert caught.value.loc == ("data",)
    return caught.value.message


def test_missing_features_are_named(tmp_path: Path, model: Model, columns: Columns):
    fine = write(tmp_path / "a.parquet", columns)
    del columns["f0"], columns["f2"]
    assert "'b.parquet' lacks features of the model: 'f0', 'f2'" in refusal(
        model, fine, write(tmp_path / "b.parquet", columns)
    )


def test_unsuitable_features_are_named(tmp_path: Path, model: Model, columns: Columns):
    columns["f1"] = pa.array(["1"] * 150)
    message = refusal(model, write(tmp_path / "t.parquet", columns))
    assert "'t.parquet' has columns that are not numeric as in training: 'f1' (string)" in message


@pytest.mark.parametrize(
    "labels", [pa.array([[0]] * 150), pa.array([date(2020, 1, 1)] * 150), pa.array([{"a": 0}] * 150)]
)
def test_a_column_that_cannot_be_the_label_is_named(tmp_path: Path, model: Model, columns: Columns, labels: pa.Array):
    message = refusal(model, write(tmp_path / "t.parquet", columns | {"label": labels}))
    assert "column 'label' has type" in message


def test_repeated_names_are_refused(tmp_path: Path, model: Model, columns: Columns):
    twice = pa.table(columns).append_column("f0", columns["f1"])
    assert "columns of the same name: 'f0'" in refusal(model, write(tmp_path / "t.parquet", twice))


def test_files_that_are_not_parquet_are_named(tmp_path: Path, model: Model):
    (tmp_path / "t.parquet").write_text("f0,f1,f2\n1,2,3\n")
    assert "'t.parquet' cannot be read as Parquet" in refusal(model, str(tmp_path / "t.parquet"))
    assert "'gone.parquet' cannot be read" in refusal(model, str(tmp_path / "gone.parquet"))


def test_damaged_pages_are_refused(tmp_path: Path, model: Model, columns: Columns):
    path = Path(write(tmp_path / "t.parquet", columns))
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    assert "'t.parquet' cannot be read as Parquet" in refusal(model, str(path))


def test_no_rows_give_an_empty_answer(tmp_path: Path, model: Model, columns: Columns):
    found = predict_table(model, [write(tmp_path / "t.parquet", pa.table(columns).slice(0, 0))])
    assert (found.labels, found.rows, found.error) == ((), 0, None)
